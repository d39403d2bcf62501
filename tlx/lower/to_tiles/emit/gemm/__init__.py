"""The kernels of matrix products: loop nests, operands, register tiles, K loops, epilogue and stores, N tail."""
