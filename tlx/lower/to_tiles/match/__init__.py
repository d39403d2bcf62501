"""Pattern matching: the tree rooted at a store becomes a problem, with the pointers and scalars of its kernel."""
