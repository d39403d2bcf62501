"""Facts about a kernel, computed from its syntax tree: uses of parameters, divergence, first writes."""
