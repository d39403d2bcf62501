"""Random graphs of tensors, checked against JAX: `tlx fuzz --graphs`.

program      a graph as data: parameters, statements and results; its text, and how it is executed
drawing      draws operations, operands and attributes
generator    the graph of a seed
operations   the table: each operation once, with how it is drawn, what it is in JAX and what it is in `tlx.graph`
reference    the results in double precision by JAX, and how much rounding may change them
check        builds a graph by `tlx.graph` or `tlx.jax`, evaluates its stages, runs its code and compares
"""
