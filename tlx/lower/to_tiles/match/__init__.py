"""Pattern matching: the tree behind a store becomes a problem, and its operands pointers."""
