"""Problems replaced by cheaper equivalents: transposed products, row sums, fp16 by bf16 products, fused rows."""
