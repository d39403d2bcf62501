"""Memory as every stage sees it: strided views, alias analysis, private buffers."""
