"""Memory as all stages see it: strided views, alias analysis, lifetimes, private buffers and their allocation."""
