"""A C header that declares the tensor intrinsics, so that C programs can call them."""
