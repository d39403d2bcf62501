"""Products of matrices, determinants, and transforms by matrices."""

from __future__ import annotations

import math
import string

import numpy as np

from tlx.frontends.onnx.model import Array, OnnxNode, element_type
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


@operator("com.microsoft.FusedMatMul")
def fused_matmul(t: Tensors, node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    """`alpha x @ y`; the last dimensions of an operand may be exchanged, and the batch come after the rows."""

    def operand(x: Tensor, side: str) -> Tensor:
        *batch, rows, columns = range(len(x.shape))
        if node.integer(f"transBatch{side}", 0):  # (rows, batch, columns)
            rows, *batch = (*batch, rows)
        if node.integer(f"trans{side}", 0):
            rows, columns = columns, rows
        return t.transpose(x, [*batch, rows, columns])

    if min(len(x.shape), len(y.shape)) < 2:
        t.fail(f"shapes {x.shape} and {y.shape} must be matrices")
    result = product(t, operand(x, "A"), operand(y, "B"))
    alpha = node.number("alpha", 1.0)
    return result if alpha == 1 else t.multiply(result, alpha)


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


@operator("Einsum")
def einsum(t: Tensors, node: OnnxNode, *operands: Tensor) -> Tensor:
    """Products and sums by names of dimensions, from left to right."""
    equation = node.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands) or not operands:
        t.fail(f"equation {equation!r} has {len(terms)} operands, but the node has {len(operands)}")
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
    if any(len(term) != len(x.shape) for term, x in zip(terms, operands, strict=True)):
        t.fail(f"equation {equation!r} does not fit the operands")
    operands, terms = zip(*(_diagonal(t, x, term) for x, term in zip(operands, terms, strict=True)), strict=True)
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


def _diagonal(t: Tensors, x: Tensor, names: str) -> tuple[Tensor, str]:
    """An operand with each index once: of an index that it has twice, the diagonal of both dimensions."""
    for name in names:
        while (second := names.rfind(name)) != (first := names.index(name)):
            extent = x.shape[first]
            if x.shape[second] != extent:
                t.fail(f"index {name!r} has extents {extent} and {x.shape[second]}")
            others = [d for d in range(len(names)) if d not in (first, second)]
            squares = t.transpose(x, [*others, first, second])
            outer = squares.shape[:-2]
            flat = t.reshape(squares, (*outer, extent * extent))
            places = np.arange(extent) * (extent + 1)
            x = t.take(flat, places, len(outer))
            names = "".join(names[d] for d in others) + name
    return x, names


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


@operator("Det")
def det(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """The determinants of matrices, by LU factors."""
    _ = node
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        t.fail(f"shape {x.shape} has no square matrices")
    count, outer = x.shape[-1], x.shape[:-2]
    if not count or not math.prod(outer):
        return np.ones(outer, x.dtype)
    factors, pivots = t.graph.lu(t.value(t.widened(x)))
    places = np.arange(count) * (count + 1)
    diagonal = t.take(t.reshape(factors, (*outer, count * count)), places, len(outer))
    stays = t.compare("eq", pivots, np.arange(count, dtype=np.int32))
    signs = t.where(stays, 1.0, np.asarray(-1.0, diagonal.dtype))
    return t.convert(t.reduce("product", t.multiply(diagonal, signs), [len(outer)]), x.dtype)


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
    sign = 1 if inverse else -1
    weights = np.full((terms, 1), 1 / count if inverse else 1.0)
    if half_to_whole:  # the conjugates of the others follow from them
        weights[1 : (count + 1) // 2] *= 2
    matrix = _fourier_matrix(terms, results, count, sign) * weights[:, :, None, None]
    used = matrix[:, :parts, :, : 1 if half_to_whole else 2]
    order = [d for d in range(rank) if d not in (along, rank - 1)]
    rows = t.transpose(t.part(x, along, 0, terms), [*order, along, rank - 1])
    flat = t.reshape(rows, (*(x.shape[d] for d in order), terms * parts))
    found = along_axis(t, flat, used.reshape(terms * parts, -1), rank - 2)
    split = t.reshape(found, (*(x.shape[d] for d in order), results, used.shape[-1]))
    return t.transpose(split, [*range(along), rank - 2, *range(along, rank - 2), rank - 1])


def _fourier_matrix(terms: int, results: int, count: int, sign: int) -> Array:
    """The matrix of a Fourier transform: (terms, real or imaginary, results, real or imaginary)."""
    angles = sign * 2 * np.pi * np.outer(np.arange(terms), np.arange(results)) / count
    cosines, sines = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([cosines, sines], -1), np.stack([-sines, cosines], -1)], 1)


@operator("STFT", note="of known lengths")
def stft(
    t: Tensors, node: OnnxNode, x: Tensor, step: Tensor, window: Tensor | None = None, length: Tensor | None = None
) -> Tensor:
    """The discrete Fourier transforms of overlapping frames, each times a window: `(N, frames, results, 2)`."""
    if len(x.shape) == 2:
        x = t.expand(x, 2)
    samples, total, parts = x.shape
    hop = int(t.scalar(step, "frame_step"))
    size = int(t.scalar(length, "frame_length")) if length is not None else total if window is None else window.shape[0]
    if not (hop > 0 and 0 < size <= total) or (window is not None and window.shape != (size,)):
        t.fail(f"frame_length {size} and frame_step {hop} do not fit an input of shape {x.shape}")
    frames = (total - size) // hop + 1
    results = size // 2 + 1 if node.integer("onesided", 1) else size
    matrix: Tensor = _fourier_matrix(size, results, size, -1)[:, :parts].reshape(size, parts, results * 2)
    if window is not None:
        matrix = t.multiply(t.convert(matrix, window.dtype), t.reshape(window, (size, 1, 1)))
    places = (np.arange(frames) * hop)[:, None] + np.arange(size)
    rows = t.reshape(t.take(x, places, 1), (samples, frames, size * parts))
    spectra = along_axis(t, rows, t.reshape(matrix, (size * parts, results * 2)), 2)
    return t.reshape(spectra, (samples, frames, results, 2))


@operator("MelWeightMatrix", note="of known numbers")
def mel_weight_matrix(
    t: Tensors, node: OnnxNode, bins: Tensor, length: Tensor, rate: Tensor, lower: Tensor, upper: Tensor
) -> Tensor:
    """The matrix of triangular filters, equally wide on the mel scale, from frequencies to bands."""
    count, size, sampled = (int(t.scalar(x, "the number")) for x in (bins, length, rate))
    first, last = (float(t.scalar(x, "the frequency")) for x in (lower, upper))
    if min(count, size, sampled) < 1 or not 0 <= first <= last <= sampled / 2:
        t.fail(f"{count} bands from {first} to {last} Hz do not fit {size} samples at {sampled} Hz")
    low, high = (2595 * math.log10(1 + frequency / 700) for frequency in (first, last))
    mels = low + np.arange(count + 2) * (high - low) / (count + 2)
    edges: list[int] = ((size + 1) * 700 * (10 ** (mels / 2595) - 1) // sampled).astype(np.int64).tolist()
    matrix = np.zeros((size // 2 + 1, count))
    for band, (left, centre, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        rising = np.arange(left, centre + 1)
        matrix[rising, band] = (rising - left) / (centre - left) if centre > left else 1
        falling = np.arange(centre, right)
        matrix[falling, band] = (right - falling) / max(right - centre, 1)
    dtype = element_type(node.integer("output_datatype", 1))
    return matrix.astype(dtype or np.float32)
