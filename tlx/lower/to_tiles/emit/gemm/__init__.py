"""The kernels of matrix products: loop nest, register tile, K loop, epilogue, N tail, matrix unit, streaming."""
