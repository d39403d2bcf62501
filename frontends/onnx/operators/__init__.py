"""The table of operators: a function that translates each, by subject."""
