"""Products of matrices."""

from __future__ import annotations

import string

import numpy as np

from tlx.frontends.onnx.model import OnnxNode
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors


def product(t: Tensors, x: Tensor, y: Tensor) -> Tensor:
    """`x @ y` as in numpy, in the precision that was asked for, with a result of the type of `x`."""
    a, b = t.value(t.rounded(x)), t.value(t.rounded(y))
    return t.graph.matmul(a, b, dtype=x.dtype)


def along_axis(t: Tensors, x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    """Each row of a tensor along a dimension times a matrix: `(..., n, ...)` and `(n, m)` give `(..., m, ...)`."""
    value = t.value(x)
    weights = t.value(t.convert(matrix, x.dtype))
    if axis == len(x.shape) - 1:
        return t.graph.matmul(value, weights)
    made = t.graph.dot_general(weights, value, ([0], [axis]))
    order = list(range(1, len(x.shape)))
    return t.transpose(made, [*order[:axis], 0, *order[axis:]])


@operator("MatMul")
def matmul(t: Tensors, node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    """`x @ y` as in numpy."""
    _ = node
    return product(t, x, y)


@operator("Gemm")
def gemm(t: Tensors, node: OnnxNode, x: Tensor, y: Tensor, c: Tensor | None = None) -> Tensor:
    """`alpha x @ y + beta c`, with `x` and `y` transposed or not."""
    if len(x.shape) != 2 or len(y.shape) != 2:
        t.fail(f"shapes {x.shape} and {y.shape} must be matrices")
    a = t.transpose(x, (1, 0)) if node.integer("transA", 0) else x
    b = t.transpose(y, (1, 0)) if node.integer("transB", 0) else y
    result = product(t, a, b)
    if (alpha := node.number("alpha", 1.0)) != 1:
        result = t.multiply(result, _number(alpha, x))
    beta = node.number("beta", 1.0)
    if c is None or not beta:
        return result
    return t.add(result, c if beta == 1 else t.multiply(c, _number(beta, x)))


def _number(number: float, x: Tensor) -> float:
    return int(number) if x.dtype.kind in "iu" else number


@operator("Einsum", note="no index twice in an operand")
def einsum(t: Tensors, node: OnnxNode, *operands: Tensor) -> Tensor:
    """Products and sums by names of dimensions, from left to right."""
    equation = node.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands) or not operands:
        t.fail(f"equation {equation!r} is for {len(terms)} operands, and there are {len(operands)}")
    spare = [letter for letter in string.ascii_letters if letter not in equation]
    ranks = [len(x.shape) - len(term.replace("...", "")) for term, x in zip(terms, operands, strict=True)]
    most = max((n for n, term in zip(ranks, terms, strict=True) if "..." in term), default=0)
    dots = "".join(spare[:most])
    terms = [term.replace("...", dots[most - n :] if n else "") for term, n in zip(terms, ranks, strict=True)]
    if not arrow:
        letters = "".join(terms)
        right = dots + "".join(sorted(x for x in set(letters) if letters.count(x) == 1 and x not in dots))
    else:
        right = right.replace("...", dots)
    if any(len(set(term)) != len(term) or len(term) != len(x.shape) for term, x in zip(terms, operands, strict=True)):
        t.fail(f"equation {equation!r} does not fit the operands, or names an index twice in one of them")
    result, names = operands[0], terms[0]
    for k in range(1, len(operands)):
        later = set(right).union(*terms[k + 1 :])
        result, names = _contracted(t, (result, names), (operands[k], terms[k]), later)
    if alone := [names.index(letter) for letter in names if letter not in right]:
        result = t.reduce("sum", result, alone)
        names = "".join(letter for letter in names if letter in right)
    if sorted(names) != sorted(right):
        t.fail(f"equation {equation!r} has an output index that no operand has")
    return t.transpose(result, [names.index(letter) for letter in right])


def _contracted(t: Tensors, lhs: tuple[Tensor, str], rhs: tuple[Tensor, str], later: set[str]) -> tuple[Tensor, str]:
    """The product of two operands, summed over the indices that nothing later has."""
    (x, a), (y, b) = lhs, rhs
    extents = {letter: e for letter, e in (*zip(a, x.shape, strict=True), *zip(b, y.shape, strict=True)) if e != 1}
    x, y = (
        t.broadcast(
            v,
            [
                extents.get(letter, 1) if letter in a and letter in b else e
                for letter, e in zip(names, v.shape, strict=True)
            ],
        )
        for v, names in ((x, a), (y, b))
    )
    summed = [letter for letter in a if letter in b and letter not in later]
    batch = [letter for letter in a if letter in b and letter in later]
    contracting = ([a.index(s) for s in summed], [b.index(s) for s in summed])
    shared = ([a.index(s) for s in batch], [b.index(s) for s in batch])
    left, right = (t.value(t.rounded(v)) for v in (x, y))
    made = t.graph.dot_general(left, right, contracting, shared, dtype=x.dtype)
    used = {*summed, *batch}
    names = "".join([*batch, *(s for s in a if s not in used), *(s for s in b if s not in used)])
    return made, names


@operator("DFT", note="of a known length and axis")
def dft(t: Tensors, node: OnnxNode, x: Tensor, length: Tensor | None = None, axis: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along a dimension, by a matrix; the last one has real and imaginary parts."""
    rank = len(x.shape)
    given = node.integer("axis", 1) if node.opset < 20 else -2 if axis is None else int(t.scalar(axis, "axis"))
    along = t.axis(given, rank)
    parts = x.shape[-1]
    if along == rank - 1 or parts not in (1, 2):
        t.fail(f"axis {given} of shape {x.shape} does not fit: the last dimension has the one or two parts of a number")
    inverse, onesided = (bool(node.integer(name, 0)) for name in ("inverse", "onesided"))
    terms = x.shape[along]
    half_to_whole = inverse and onesided
    count = int(t.scalar(length, "dft_length")) if length is not None else 2 * (terms - 1) if half_to_whole else terms
    terms = min(terms, count // 2 + 1 if half_to_whole else count)
    if count < 1 or terms < 1:
        t.fail(f"dft_length {count} must be positive")
    results = count // 2 + 1 if onesided and not inverse else count
    angles = (1 if inverse else -1) * 2 * np.pi * np.outer(np.arange(terms), np.arange(results)) / count
    weights = np.full((terms, 1), 1 / count if inverse else 1.0)
    if half_to_whole:  # the conjugates of the others follow from them
        weights[1 : (count + 1) // 2] *= 2
    cosines, sines = np.cos(angles) * weights, np.sin(angles) * weights
    # (terms, real or imaginary, results, real or imaginary)
    matrix = np.stack([np.stack([cosines, sines], -1), np.stack([-sines, cosines], -1)], 1)
    kept = matrix[:, :parts, :, : 1 if half_to_whole else 2]
    order = [d for d in range(rank) if d not in (along, rank - 1)]
    rows = t.transpose(t.part(x, along, 0, terms), [*order, along, rank - 1])
    flat = t.reshape(rows, (*(x.shape[d] for d in order), terms * parts))
    found = along_axis(t, flat, kept.reshape(terms * parts, -1), rank - 2)
    split = t.reshape(found, (*(x.shape[d] for d in order), results, kept.shape[-1]))
    return t.transpose(split, [*range(along), rank - 2, *range(along, rank - 2), rank - 1])
