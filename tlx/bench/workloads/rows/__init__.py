"""The rows of the table: each module gives its workloads by `workloads()`."""
