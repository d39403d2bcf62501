"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlx.frontends.onnx.model import Node
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors


def spatial(node: Node, name: str, rank: int, default: int = 1) -> list[int]:
    """An attribute that has a number for each spatial dimension."""
    numbers = node.integers(name)
    if numbers is None:
        return [default] * rank
    if len(numbers) != rank:
        raise node.error(f"attribute '{name}' must have {rank} numbers, not {len(numbers)}")
    if min(numbers, default=1) < (0 if name == "output_padding" else 1):
        raise node.error(f"attribute '{name}' must have positive numbers, not {numbers}")
    return numbers


def borders(node: Node, extents: Sequence[int], reach: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Padding of each spatial dimension, for windows that reach over some positions."""
    rank = len(extents)
    automatic = node.text("auto_pad", "NOTSET")
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        missing = [max(0, (-(-e // s) - 1) * s + r - e) for e, r, s in zip(extents, reach, strides, strict=True)]
        halves = [m // 2 if automatic == "SAME_UPPER" else m - m // 2 for m in missing]
        return [(half, m - half) for half, m in zip(halves, missing, strict=True)]
    if automatic not in ("NOTSET", "VALID", ""):
        raise node.error(f"auto_pad {automatic!r} is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    pads = node.integers("pads")
    if pads is None or automatic == "VALID":
        return [(0, 0)] * rank
    if len(pads) != 2 * rank:
        raise node.error(f"attribute 'pads' must have {2 * rank} numbers, not {len(pads)}")
    if min(pads, default=0) < 0:
        raise node.error(f"attribute 'pads' must not be negative: {pads}")
    return list(zip(pads[:rank], pads[rank:], strict=True))


def biased(t: Tensors, x: Tensor, bias: Tensor | None) -> Tensor:
    """A tensor with a number added to each channel."""
    return x if bias is None else t.add(x, t.reshape(bias, (*bias.shape, *[1] * (len(x.shape) - 2))))


@operator("Conv")
def conv(t: Tensors, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """Sums of products of windows."""
    return biased(t, convolved(t, node, t.rounded(x), t.rounded(w), x.dtype), bias)


def convolved(t: Tensors, node: Node, x: Tensor, w: Tensor, dtype: np.dtype[np.generic]) -> Tensor:
    """The convolution without its bias, with sums of some type."""
    rank = len(x.shape) - 2
    if rank < 1 or len(w.shape) != len(x.shape):
        t.fail(f"input {x.shape} and kernel {w.shape} must have one rank, 3 or more")
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    padding = borders(node, x.shape[2:], reach, strides)
    _check_output(t, x.shape[2:], reach, padding)
    groups = node.integer("group", 1)
    t.checked([x.shape[0], w.shape[0], *(e + a + b for e, (a, b) in zip(x.shape[2:], padding, strict=True))])
    return t.graph.convolution(
        t.value(x), t.value(w), strides, padding, kernel_dilation=dilations, groups=groups, dtype=dtype
    )


def _check_output(t: Tensors, extents: Sequence[int], reach: Sequence[int], padding: Sequence[tuple[int, int]]) -> None:
    for d, (e, r, (a, b)) in enumerate(zip(extents, reach, padding, strict=True)):
        if r > e + a + b:
            t.fail(f"the kernel spans {r} positions of spatial dimension {d}, which has {e + a + b}")


@operator("ConvTranspose")
def conv_transpose(t: Tensors, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """The transpose of a convolution: a convolution of a dilated input with the kernel reversed."""
    rank = len(x.shape) - 2
    if rank < 1 or len(w.shape) != len(x.shape):
        t.fail(f"input {x.shape} and kernel {w.shape} must have one rank, 3 or more")
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    extra = spatial(node, "output_padding", rank, 0)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    whole = [(e - 1) * s + r + o for e, s, r, o in zip(x.shape[2:], strides, reach, extra, strict=True)]
    groups = node.integer("group", 1)
    if groups < 1 or x.shape[1] % groups or x.shape[1] != w.shape[0]:
        t.fail(f"kernel {w.shape} in {groups} groups does not fit an input of {x.shape[1]} channels")
    crop = _cropped(node, x.shape[2:], strides, whole)
    # (C, O / groups, ...) -> (O, C / groups, ...), reversed
    inner, outer = x.shape[1] // groups, w.shape[1]
    apart = t.reshape(w, (groups, inner, outer, *w.shape[2:]))
    kernel = t.reshape(t.transpose(apart, (0, 2, 1, *range(3, 3 + rank))), (groups * outer, inner, *w.shape[2:]))
    last = [e - 1 for e in kernel.shape]
    kernel = t.slice(kernel, [0, 0, *last[2:]], [*kernel.shape[:2], *[-1] * rank], [1, 1, *[-1] * rank])
    padding = [(r - 1 - low, r - 1 - high + o) for r, (low, high), o in zip(reach, crop, extra, strict=True)]
    t.checked([x.shape[0], groups * outer, *whole])
    result = t.graph.convolution(
        t.value(t.rounded(x)),
        t.value(t.rounded(kernel)),
        1,
        padding,
        input_dilation=strides,
        kernel_dilation=dilations,
        groups=groups,
        dtype=x.dtype,
    )
    return biased(t, result, bias)


def _cropped(node: Node, extents: Sequence[int], strides: Sequence[int], whole: Sequence[int]) -> list[tuple[int, int]]:
    """How much of the whole result is cut off before and after each dimension."""
    shape = node.integers("output_shape")
    automatic = node.text("auto_pad", "NOTSET")
    if shape is None and automatic in ("SAME_UPPER", "SAME_LOWER"):
        shape = [e * s for e, s in zip(extents, strides, strict=True)]
    if shape is None:
        return borders(node, extents, extents, strides)
    totals = [w - s for w, s in zip(whole, shape[-len(whole) :], strict=True)]
    upper = automatic == "SAME_UPPER"
    return [(n // 2, n - n // 2) if upper else (n - n // 2, n // 2) for n in totals]
