"""Problems replaced by cheaper ones: transposed products, row sums, split fp16, fused rows, bfloat in float."""
