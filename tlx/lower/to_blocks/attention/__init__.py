"""Attention as one kernel: finding it among the trees, its plan, copies of its operands, softmax, and its code."""
