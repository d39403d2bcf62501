"""Pattern matching: turns the tree behind a store into a problem, and its operands into pointers."""
