"""Tensor calls in a module: their forms, types, canonical names, verification; static and run-time extents."""
