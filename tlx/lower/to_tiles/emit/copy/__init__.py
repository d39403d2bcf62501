"""The copy engine: moving tiles from one layout to another, and the kernels of copies."""
