"""Translates a model to a TLX graph: node by node, each with its function in the table.

An operator that the table lacks is replaced by its definition, where the model or ONNX itself defines it by others.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tlx.diagnostics import TlxError, did_you_mean
from tlx.frontends.onnx.model import (
    Array,
    FunctionDefinition,
    GraphDefinition,
    ModelError,
    OnnxModel,
    OnnxNode,
    Reader,
)
from tlx.frontends.onnx.simplify import simplified
from tlx.frontends.onnx.table import Operator, operators
from tlx.frontends.onnx.tensors import Tensor, Tensors, TensorSequence
from tlx.graph import Value

if TYPE_CHECKING:
    from tlx.graph import Graph

_DEEPEST: Final = 50  # functions and graphs within each other
# What an operator's function raises if a node's attributes and operands do not fit each other in a way that it does not
# check.
_UNFIT: Final = (ArithmeticError, AssertionError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class ModelTranslation(Tensors):
    """A model that is translated.

    Args:
        model: The model.
        graph: The graph to write to.
        precision: Element type in which products and convolutions of float32 read their operands.
    """

    def __init__(self, model: OnnxModel, graph: Graph, precision: str = "float32") -> None:
        super().__init__(graph, precision)
        self.model = model
        self._scope: MutableMapping[str, Tensor] = {}
        self._depth = 0

    def outputs(self, inputs: Mapping[str, Tensor]) -> list[Tensor]:
        """The outputs of the model for its inputs.

        Raises:
            ModelError: Something in the model is wrong or not supported.
        """
        return self.translate(self.model.graph, inputs, {})

    def captured(self, graph: GraphDefinition) -> dict[str, Tensor]:
        """The results of other nodes that a graph reads.

        A loop carries them, so that they are in memory once, and not stored in each iteration.
        """
        names = set[str]().union(*map(_read, graph.nodes)).difference(i.name for i in graph.inputs)
        found = {name: self._scope[name] for name in sorted(names) if name in self._scope}
        return {name: x for name, x in found.items() if isinstance(x, Value) and x.shape and not x.buffer.in_memory}

    def subgraph(
        self, graph: GraphDefinition, operands: Sequence[Tensor], captured: Mapping[str, Tensor] | None = None
    ) -> list[Tensor]:
        """The outputs of a graph that is an attribute; it sees the names of the graph around it.

        Args:
            graph: The graph.
            operands: Its inputs.
            captured: Other tensors that take the place of those around it.
        """
        if len(operands) != len(graph.inputs):
            self.fail(f"its graph takes {len(graph.inputs)} operands, and {len(operands)} are passed")
        named = {argument.name: operand for argument, operand in zip(graph.inputs, operands, strict=True)}
        return self.translate(graph, {**(captured or {}), **named}, self._scope)

    def translate(
        self, graph: GraphDefinition, inputs: Mapping[str, Tensor], outer: MutableMapping[str, Tensor]
    ) -> list[Tensor]:
        """The outputs of a graph."""
        known: dict[str, Tensor] = {}
        for name, tensor in graph.tensors.items():
            if name not in inputs:
                known[name] = self.name(tensor.array, name, is_packed=tensor.is_packed)
        return self._body(graph.nodes, [o.name for o in graph.outputs], {**known, **inputs}, outer)

    def _body(
        self,
        nodes: Sequence[OnnxNode],
        outputs: Sequence[str],
        named: dict[str, Tensor],
        outer: MutableMapping[str, Tensor],
    ) -> list[Tensor]:
        if self._depth >= _DEEPEST:
            self.fail(f"graphs and functions are nested deeper than {_DEEPEST}")
        _check_outputs(nodes)
        needed = [node for node in _needed(nodes, outputs) if not self._constant(node, named)]
        remaining = simplified(needed, outputs, named)
        saved, self._scope, self._depth = self._scope, ChainMap(cast("Any", named), outer), self._depth + 1
        for node in remaining:
            named.update(self._results(node))
        results = [self._scope[name] if name in self._scope else self._undefined(name) for name in outputs]
        self._scope, self._depth = saved, self._depth - 1
        return results

    def _constant(self, node: OnnxNode, named: dict[str, Tensor]) -> bool:
        """Define a constant; whether the node is one."""
        if node.operator != "Constant" or node.domain or node.inputs:
            return False
        named.update(self._results(node))
        for name in node.outputs:
            self.name(cast("Array", named[name]), name)
        return True

    def _results(self, node: OnnxNode) -> dict[str, Tensor]:
        """The results of a node by name."""
        operands = [self._operand(node, name) for name in node.inputs]
        while operands and operands[-1] is None:
            operands.pop()
        entry = operators().get(f"{node.domain}.{node.operator}" if node.domain else node.operator)
        if (node.domain, node.operator) in self.model.functions:
            entry = None
        try:
            made = self._by_definition(node, operands) if entry is None else _called(entry, self, node, operands)
        except ModelError:
            raise
        except TlxError as error:
            raise node.error(error.message.removeprefix("tlx.graph: ")) from error
        except _UNFIT as error:
            shapes = ", ".join(map(_shown, operands))
            reason = str(error) or type(error).__name__
            raise node.error(f"cannot be translated with operands {shapes}: {reason}") from error
        results = cast("Sequence[Tensor | None]", made if isinstance(made, (tuple, list)) else (made,))
        if len(results) < len(node.outputs) and any(node.outputs[len(results) :]):
            raise node.error(f"output {len(results) + 1} is not supported")
        return {
            name: result for name, result in zip(node.outputs, results, strict=False) if name and result is not None
        }

    def _operand(self, node: OnnxNode, name: str) -> Tensor | None:
        if not name:
            return None
        if name not in self._scope:
            raise node.error(f"input '{name}' is not the output of an earlier node{did_you_mean(name, self._scope)}")
        return self._scope[name]

    def _undefined(self, name: str) -> Tensor:
        raise ModelError(
            f"output '{name}' is not computed by any node{did_you_mean(name, self._scope)}", name=self.model.name
        )

    # Operators that are defined by others ------------------------------------------------------------------------

    def _by_definition(self, node: OnnxNode, operands: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The results of a function."""
        function = self.model.functions.get((node.domain, node.operator)) or self._standard(node, operands)
        attributes = {**function.attributes, **node.attributes}
        reader = Reader(node.model, None, function.opsets, {k: v for k, v in attributes.items() if v is not None})
        # A parameter without operand has no name in the body.
        named = {p: x for p, x in zip(function.inputs, operands, strict=False) if x is not None}
        left_out = set(function.inputs) - set(named)
        nodes = [_without(inner, left_out) for inner in reader.nodes(function.proto.node)]
        wanted = [inner for inner, outer in zip(function.outputs, node.outputs, strict=False) if outer]
        found = dict(zip(wanted, self._body(nodes, wanted, cast("Any", named), {}), strict=True))
        return [found.get(name) for name in function.outputs[: len(node.outputs)]]

    def _standard(self, node: OnnxNode, operands: Sequence[Tensor | None]) -> FunctionDefinition:
        """The definition of an operator in ONNX itself."""
        import onnx

        unknown = node.error(f"operator {node.operator} is not supported{_nearest(node)}; see docs/front_ends/onnx.md")
        try:
            schema: Any = onnx.defs.get_schema(node.operator, node.opset, node.domain)
        except onnx.defs.SchemaError:
            raise unknown from None
        proto = onnx.FunctionProto()
        if schema.has_function:
            version = max((v for v in schema.function_opset_versions if v <= node.opset), default=0)
            data = schema.get_function_with_opset_version(version or schema.function_opset_versions[0])
        elif schema.has_context_dependent_function:
            versions = schema.context_dependent_function_opset_versions
            version = max((v for v in versions if v <= node.opset), default=versions[0])
            message = onnx.helper.make_node(node.operator, node.inputs, node.outputs, domain=node.domain)
            for key, found in node.attributes.items():
                message.attribute.append(onnx.helper.make_attribute(key, found))
            types = [_type(onnx, x).SerializeToString() for x in operands]
            data = schema.get_context_dependent_function_with_opset_version(version, message.SerializeToString(), types)
        else:
            raise unknown
        proto.ParseFromString(data)
        opsets = {"" if e.domain == "ai.onnx" else e.domain: e.version for e in proto.opset_import}
        function = Reader(node.model, None, {"": node.opset}).function(proto, opsets)
        defaults = {
            key: onnx.helper.get_attribute_value(a.default_value)
            for key, a in schema.attributes.items()
            if a.default_value.type
        }
        return replace(function, attributes={**function.attributes, **defaults})


def _check_outputs(nodes: Sequence[OnnxNode]) -> None:
    """Check that each name is the output of one node."""
    computed: set[str] = set()
    for node in nodes:
        for name in filter(None, node.outputs):
            if name in computed:
                raise node.error(f"output '{name}' is already the output of an earlier node")
            computed.add(name)


def _called(entry: Operator, translation: ModelTranslation, node: OnnxNode, operands: Sequence[Tensor | None]) -> Any:
    """What an operator's function returns."""
    present = operands[: entry.required]
    if len(present) < entry.required or any(x is None for x in present):
        raise node.error(f"has too few inputs: {entry.name} needs {entry.required}")
    if len(operands) > entry.most:
        raise node.error(f"has {len(operands)} inputs, of which at most {entry.most} are supported")
    if any(isinstance(x, TensorSequence) for x in operands) and not entry.takes_sequences:
        raise node.error("an operand is a sequence of tensors instead of a tensor")
    return entry.translate(translation, node, *operands)


def _shown(x: Tensor | None) -> str:
    """An operand in messages."""
    if x is None or isinstance(x, TensorSequence):
        return "none" if x is None else "a sequence"
    return f"{x.dtype.name}{list(x.shape)}"


def _needed(nodes: Sequence[OnnxNode], outputs: Sequence[str]) -> list[OnnxNode]:
    """The nodes on whose results the outputs depend."""
    wanted = set(outputs)
    found: list[OnnxNode] = []
    for node in reversed(nodes):
        if wanted.intersection(node.outputs):
            found.append(node)
            wanted.update(_read(node))
    return found[::-1]


def _read(node: OnnxNode) -> set[str]:
    """The names that a node reads, those within its graphs included."""
    names = set(node.inputs)
    for attribute in node.attributes.values():
        for graph in cast("list[Any]", attribute if isinstance(attribute, list) else [attribute]):
            if isinstance(graph, GraphDefinition):
                names.update(o.name for o in graph.outputs)
                for inner in graph.nodes:
                    names |= _read(inner)
    return names


def _without(node: OnnxNode, names: set[str]) -> OnnxNode:
    """A node without the operands of some names."""
    return replace(node, inputs=tuple("" if name in names else name for name in node.inputs))


def _nearest(node: OnnxNode) -> str:
    return did_you_mean(node.operator, operators(), cutoff=0.8)


def _type(onnx: Any, x: Tensor | None) -> Any:
    """The message for the type of an operand."""
    if x is None:
        return onnx.TypeProto()
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype)), x.shape)
