"""Software prefetch and non-temporal stores of products: which of them pay, and the code for them."""
