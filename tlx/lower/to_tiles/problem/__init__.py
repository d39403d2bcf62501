"""What a kernel computes: products, copies, shuffles, expressions and reductions on 2-D views; data only."""
