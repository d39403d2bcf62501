"""What a statement of a dataflow function may be: tensor intrinsics, vector instructions, lane moves, control flow.

An operation adds its lines to a function and gives the new value; None where nothing fits, after which the function
is as good as before.
"""
