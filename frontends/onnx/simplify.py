"""Rewriting of a model's nodes before they are translated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tlx.frontends.onnx.model import Array, GraphDefinition, OnnxNode

if TYPE_CHECKING:
    from tlx.frontends.onnx.tensors import Tensor


def simplified(nodes: Sequence[OnnxNode], outputs: Sequence[str], named: dict[str, Tensor]) -> list[OnnxNode]:
    """The nodes, with normalizations after convolutions merged into their weights.

    Args:
        nodes: The nodes.
        outputs: Names of results that must stay.
        named: Constants; the new weights are added.

    Rewrite:
        y = Conv(x, w, b); z = BatchNormalization(y, scale, shift, mean, variance)
        ->
        z = Conv(x, w * factor, (b - mean) * factor + shift), factor = scale / sqrt(variance + epsilon)
    """
    uses = Counter(name for node in nodes for name in _names(node))
    uses.update(outputs)
    result: list[OnnxNode] = []
    convolutions: dict[str, int] = {}  # name of the result: position in `result`
    for node in nodes:
        position = convolutions.get(node.inputs[0]) if node.inputs else None
        if position is not None and uses[node.inputs[0]] == 1 and _is_normalization(node):
            merged = _merged(result[position], node, named)
            if merged is not None:
                result[position] = merged
                convolutions[merged.outputs[0]] = position
                continue
        if node.operator == "Conv" and not node.domain:
            convolutions[node.outputs[0]] = len(result)
        result.append(node)
    return result


def _is_normalization(node: OnnxNode) -> bool:
    is_training = node.get("training_mode", 0) or len(node.outputs) > 1
    return node.operator == "BatchNormalization" and not node.domain and not is_training and len(node.inputs) == 5


def _merged(convolution: OnnxNode, normalization: OnnxNode, named: dict[str, Tensor]) -> OnnxNode | None:
    """A convolution with other weights; None if some are not known, or of different types."""
    weights = [name for name in convolution.inputs[1:] if name]
    arrays = [named.get(name) for name in (*weights, *normalization.inputs[1:])]
    if not weights or not all(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in arrays):
        return None
    kernel, *bias = cast("list[Array]", arrays[: len(arrays) - 4])
    scale, shift, mean, variance = (a.astype(np.float64) for a in cast("list[Array]", arrays[-4:]))
    if not kernel.ndim or any(a.shape != kernel.shape[:1] for a in (*bias, scale, shift, mean, variance)):
        return None
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + normalization.number("epsilon", 1e-5))
        offset = ((bias[0] if bias else 0) - mean) * factor + shift
        scaled = kernel * factor.reshape(-1, *[1] * (kernel.ndim - 1))
    name = normalization.outputs[0]
    names = (f"{name}.weight", f"{name}.bias")
    if any(new in named for new in names):
        return None
    named.update(zip(names, (scaled.astype(np.float32), offset.astype(np.float32)), strict=True))
    return replace(convolution, inputs=(convolution.inputs[0], *names), outputs=normalization.outputs)


def _names(node: OnnxNode) -> list[str]:
    """The names that a node reads, those within its graphs included."""
    names = [name for name in node.inputs if name]
    for attribute in node.attributes.values():
        for graph in cast("list[Any]", attribute if isinstance(attribute, list) else [attribute]):
            if isinstance(graph, GraphDefinition):
                names += [o.name for o in graph.outputs]
                names += [name for inner in graph.nodes for name in _names(inner)]
    return names
