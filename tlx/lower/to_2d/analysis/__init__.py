"""Facts about a function before anything is changed: vectors, operations, shuffles, reads."""
