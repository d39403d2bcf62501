"""BLAS instructions: `axpby`, `cumsum`, `sum`, `gemm`, `gemv`, `ger` and `hadamard`.

dispatch        the rules, which choose one of the strategies below; code for first strides that turn out to be 1
terms           what an instruction multiplies and sums, and its epilogue `alpha * value + beta * output`
first_writes    where the output need not be read, and where local memory is made zero
tensors         known shapes: one expression of tensors
dynamic         products with strides or extents known only when the kernel runs: packed copies, dynamic tensors
loops           everything else: loops over the elements of the output, running sums, atomic updates
"""
