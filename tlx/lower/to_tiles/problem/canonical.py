"""Canonical forms of problems, and problems on some of their rows.

dense matrices, element by element              one long row
a reduction of dense matrices to one number     of one long row
a reduction of column-major matrices            transposed: A^T, reduced along the other axis
"""

from __future__ import annotations

from dataclasses import replace

from tlx.lower.to_tiles.problem.expression import Expression, MatrixLeaf
from tlx.lower.to_tiles.problem.problems import Elementwise, Reduction
from tlx.lower.to_tiles.problem.view import MatrixView


def as_long_row(problem: Elementwise) -> Elementwise:
    """The problem on one long row, where every matrix in it is dense."""
    value, to = problem.value, problem.destination
    if not to.is_dense or not all(_is_mergeable(leaf, value) for leaf in value.leaves()):
        return problem
    return replace(problem, destination=to.as_row(), value=_as_row(value))


def canonical_reduction(problem: Reduction) -> Reduction:
    """The problem on one long row where it may be, or transposed where all matrices in it are column-major."""
    value, to = problem.value, problem.destination
    if to.rows == to.cols == 1 and all(_is_mergeable(leaf, value) for leaf in value.leaves()):
        return replace(problem, value=_as_row(value), axis=1)
    transposed = _transposed(value)
    if transposed is None or not to.is_dense:
        return problem
    to = MatrixView(to.element, to.cols, to.rows, 1, 1)
    return replace(problem, destination=to, value=transposed, axis=1 - problem.axis)


def _is_mergeable(leaf: MatrixLeaf, value: Expression) -> bool:
    """Whether a leaf is dense or one number."""
    return (leaf.view.is_dense and value.is_full(leaf.view)) or leaf.view.rows * leaf.view.cols == 1


def _as_row(value: Expression) -> Expression:
    """The expression on dense leaves as one on long rows."""
    nodes = tuple(replace(n, view=n.view.as_row()) if isinstance(n, MatrixLeaf) else n for n in value.nodes)
    return Expression(1, value.rows * value.cols, nodes)


def _transposed(value: Expression) -> Expression | None:
    """The transposed expression, where every full matrix in it is column-major."""
    views = [leaf.view for leaf in value.leaves() if value.is_full(leaf.view) and min(value.rows, value.cols) > 1]
    rest = [leaf.view for leaf in value.leaves() if not value.is_full(leaf.view)]
    if not views or not all(view.row_stride == 1 and view.col_stride > 1 for view in views):
        return None
    if not all(view.rows == 1 or view.row_stride == 1 for view in rest):
        return None
    nodes = tuple(replace(n, view=_transposed_view(n.view)) if isinstance(n, MatrixLeaf) else n for n in value.nodes)
    return Expression(value.cols, value.rows, nodes)


def as_row_view(view: MatrixView) -> MatrixView:
    """A column, or what is a row already, as a row."""
    return _transposed_view(view) if view.rows > 1 else view.broadcast()


def _transposed_view(view: MatrixView) -> MatrixView:
    return MatrixView(view.element, view.cols, view.rows, view.col_stride, view.row_stride).broadcast()


def pointer_views(problem: Elementwise | Reduction) -> list[MatrixView]:
    """What the pointers of a problem point to: the result, then the leaves, each pointer's first one."""
    views = {leaf.pointer: leaf.view for leaf in reversed(list(problem.value.leaves()))}
    return [problem.destination, *(views[number] for number in sorted(views))]


def take_rows(problem: Elementwise | Reduction, rows: int) -> Elementwise | Reduction:
    """The problem with so many of its rows."""
    all_rows = problem.value.rows

    def cut(view: MatrixView) -> MatrixView:
        return replace(view, rows=rows).broadcast() if view.rows == all_rows else view

    nodes = tuple(replace(n, view=cut(n.view)) if isinstance(n, MatrixLeaf) else n for n in problem.value.nodes)
    value = Expression(rows, problem.value.cols, nodes)
    to = replace(problem.destination, rows=rows)
    if isinstance(problem, Elementwise):
        return Elementwise(to, value, problem.total_bytes or problem.bytes_moved)
    return Reduction(to, value, problem.operation, 1)
