"""The typed syntax tree of the tensor language: a class each production, shared by both versions.

`base` has what all nodes have; `collective`, `mixed` and `spmd` the instructions, by where they may stand.
"""
