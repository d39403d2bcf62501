"""Stage 1: tensors of any rank, layout and padding become loops over 2-D tensors in memory."""
