"""Pattern matching: the tree that a store is the root of becomes a problem, and its operands pointers."""
