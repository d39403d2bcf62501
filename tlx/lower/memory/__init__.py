"""Memory as every stage sees it: strided views, alias analysis, lifetimes, private buffers and where they come from."""
