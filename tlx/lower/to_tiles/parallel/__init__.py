"""Work split among threads: parallel cost, partition, teams, work stealing, worksharing loops."""
