"""Graphs of tensor operations, written by hand or by a front end for a graph format.

    g = Graph()
    x = g.parameter("x", (8, 16))
    w = g.weight("w", array)
    g.output(g.relu(x @ w + 1.0))
    f = g.compile()

A graph is one function of TLX IR under construction. Its methods write operations, in these files, each of which adds a
class that `Graph` inherits:

value         `Value`: shape, element type, and Python's operators
view          strided views: what transposes, broadcasts, slices and reshapes are until an operation reads them
contraction/  products of matrices: `dot_general`, `matmul`; convolutions in any order of dimensions
core          constants, tokens and vectors of values, errors at the line of the user's call
elementwise   arithmetic, comparisons, functions, conversions
shapes        transpose, reshape, broadcast, slice, pad, concatenate, ...
reductions    over dimensions and windows
indexing      slices at run-time positions, gather, scatter
composites    softmax, normalisation, activations
control_flow  loops and branches, cumulative operations
algorithms/   sorting, random numbers, factors of matrices
graph         `Graph`: parameters, outputs, text, compilation
"""

from tlx.graph.graph import Graph, GraphFunction
from tlx.graph.value import Value

__all__ = ["Graph", "GraphFunction", "Value"]
