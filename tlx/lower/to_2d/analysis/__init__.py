"""Facts about a function before anything is changed: values, operations, liveness, reads."""
