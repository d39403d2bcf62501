"""Convolutions: those of ResNet-50, each once, and depthwise ones, on one image whose border is padded beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tlx.intrinsics.numpy_types import Array
from tlx.tuning.workload import (
    BF16,
    F32,
    S8,
    S32,
    ConvolutionProblem,
    Element,
    ElementwiseCheck,
    Workload,
    WorkloadBuffer,
    WorkloadBuilder,
    dense_tensor_type,
)

_CONVOLUTION_TYPES: Final[dict[str, tuple[Element, Element, Element]]] = {
    "f32": (F32, F32, F32),
    "bf16": (BF16, BF16, F32),
    "s8": (S8, S8, S32),
}

# (channels, filters, rows and columns of the image, window, stride)
LAYERS: Final = (
    (3, 64, 224, 7, 2),
    (64, 64, 56, 1, 1),
    (64, 64, 56, 3, 1),
    (64, 256, 56, 1, 1),
    (256, 64, 56, 1, 1),
    (256, 128, 56, 1, 1),
    (128, 128, 56, 3, 2),
    (128, 512, 28, 1, 1),
    (256, 512, 56, 1, 2),
    (512, 128, 28, 1, 1),
    (128, 128, 28, 3, 1),
    (512, 256, 28, 1, 1),
    (256, 256, 28, 3, 2),
    (256, 1024, 14, 1, 1),
    (512, 1024, 28, 1, 2),
    (1024, 256, 14, 1, 1),
    (256, 256, 14, 3, 1),
    (1024, 512, 14, 1, 1),
    (512, 512, 14, 3, 2),
    (512, 2048, 7, 1, 1),
    (1024, 2048, 14, 1, 2),
    (2048, 512, 7, 1, 1),
    (512, 512, 7, 3, 1),
)
# The same, with fewer than 16 channels or filters: first and last layers, small networks
NARROW: Final = (
    (1, 32, 28, 5, 1),
    (3, 16, 64, 3, 1),
    (3, 64, 64, 3, 1),
    (3, 32, 64, 3, 2),
    (4, 16, 64, 5, 2),
    (8, 16, 64, 3, 1),
    (12, 32, 64, 3, 1),
    (16, 1, 64, 3, 1),
    (16, 8, 64, 5, 2),
    (64, 3, 64, 5, 1),
)
DEPTHWISE: Final = ((64, 112), (128, 56), (256, 28), (512, 14))


def convolution_types(*elements: Element) -> str | None:
    """The name of the types of a convolution: of the images, the filters and the result; None if there is none."""
    return next((name for name, types in _CONVOLUTION_TYPES.items() if types == elements), None)


def convolution_workloads() -> Iterator[Workload]:
    """All convolutions of the table."""
    for name in _CONVOLUTION_TYPES:
        for channels, filters, side, window, stride in LAYERS:
            yield convolution(name, channels, filters, side, window, stride)
        for channels, filters, side, window, stride in NARROW:
            yield convolution(name, channels, filters, side, window, stride, row="narrow")
        for channels, side in DEPTHWISE:
            yield convolution(name, channels, channels, side, 3, 1, channels, row="depthwise")


def convolution(
    name: str,
    channels: int,
    filters: int,
    side: int,
    window: int,
    stride: int,
    groups: int = 1,
    row: str = "convolution",
) -> Workload:
    """One convolution of a `side` x `side` image with a border of half a window."""
    padded = side + 2 * (window // 2)
    conv = ConvolutionProblem(1, channels, padded, padded, filters, window, stride, groups, *_CONVOLUTION_TYPES[name])
    return convolution_of(conv, name, f"{channels}-{filters}.{side}.{window}s{stride}", row)


def convolution_of(conv: ConvolutionProblem, types: str, size: str, row: str) -> Workload:
    """A convolution in a row of the table; its types and size have these names."""
    each = conv.channels // conv.groups
    buffers = (
        WorkloadBuffer("y", conv.out, (conv.images, conv.filters, conv.out_rows, conv.out_columns), output=True),
        WorkloadBuffer("x", conv.lhs, (conv.images, conv.channels, conv.rows, conv.columns)),
        WorkloadBuffer("w", conv.rhs, (conv.filters, each, conv.window, conv.window)),
    )
    return Workload(
        row=row,
        types=types,
        size=size,
        buffers=buffers,
        text=lambda: _convolution_text(conv, buffers),
        expected=lambda arrays: _convolution_expected(conv, arrays),
        operations=2 * conv.images * conv.filters * conv.out_rows * conv.out_columns * each * conv.window**2,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(conv.lhs, conv.rhs, conv.out),
        problem=conv,
    )


def _convolution_text(conv: ConvolutionProblem, buffers: tuple[WorkloadBuffer, ...]) -> str:
    b = WorkloadBuilder(buffers)
    result = dense_tensor_type(conv.out, buffers[0].shape)
    windows = ((conv.stride,) * 2, (0, 0), (0, 0))
    value = b.convolution(b.load_buffer("x"), b.load_buffer("w"), windows, result)
    return b.store_buffer("y", b.typeinfo(value, result))


def _convolution_expected(conv: ConvolutionProblem, arrays: dict[str, Array]) -> ElementwiseCheck:
    x, w = (e.widen(arrays[n]).astype(np.float64) for e, n in ((conv.lhs, "x"), (conv.rhs, "w")))
    values = _convolved(conv, x, w)
    magnitude = _convolved(conv, np.abs(x), np.abs(w)) if conv.out.is_float else None
    return ElementwiseCheck(values, magnitude, w[0].size)


def _convolved(conv: ConvolutionProblem, x: Array, w: Array) -> Array:
    """The result, by products with the windows of each group of each image."""
    if len(x) > 1:
        return np.concatenate([_convolved(conv, x[image : image + 1], w) for image in range(len(x))])
    views = sliding_window_view(x[0], (conv.window, conv.window), (1, 2))[:, :: conv.stride, :: conv.stride]
    groups, each = conv.groups, conv.channels // conv.groups
    views = views.reshape(groups, each, *views.shape[1:]).transpose(0, 2, 3, 1, 4, 5)
    columns = views.reshape(groups, conv.out_rows * conv.out_columns, -1)
    filters = w.reshape(groups, conv.filters // groups, -1)
    sums = filters @ columns.transpose(0, 2, 1)
    return sums.reshape(1, conv.filters, conv.out_rows, conv.out_columns)
