"""Work split among threads: parallel cost, partition, teams, work stealing, shared loops."""
