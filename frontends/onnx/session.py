"""Sessions: a model as a function on numpy arrays, with onnxruntime's interface."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack, cast

import numpy as np

from tlx.api.arguments import ArgumentError
from tlx.api.compiler import check_settings
from tlx.api.device.arrays import is_on_device
from tlx.api.device.streams import CallOrder
from tlx.diagnostics import TlxError, UsageError, did_you_mean
from tlx.frontends.onnx.model import Array, ModelMetadata, OnnxModel, ValueInfo, read_model
from tlx.frontends.onnx.tensors import BFLOAT16, LARGEST, Tensor, TensorSequence
from tlx.frontends.onnx.translate import ModelTranslation
from tlx.graph import Graph, GraphFunction, Value

if TYPE_CHECKING:
    from onnx import ModelProto

    from tlx.target.target import Target

PRECISIONS: Final = ("float32", BFLOAT16)
_OPTIONS_OF_ONNXRUNTIME: Final = ("sess_options", "providers", "provider_options")
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model, as onnxruntime describes it.

    Attributes:
        name: Its name.
        shape: Its extents; a name or None for those that are not fixed.
        type: Its type, such as `tensor(float)`.
    """

    name: str
    shape: list[int | str | None]
    type: str


@dataclass(frozen=True, slots=True)
class TranslatedModel:
    """A model as a graph for some shapes.

    Attributes:
        graph: The graph.
        inputs: Names of the inputs that it reads, in the order of its parameters.
        outputs: The outputs that are known without running it; None for those that the graph computes.
        name: The name of the model's file, for errors.
    """

    graph: Graph
    inputs: tuple[str, ...]
    outputs: tuple[Array | None, ...]
    name: str

    def text(self) -> str:
        """The graph as TLX IR, with a line for each parameter that is a weight.

        Raises:
            UsageError: All outputs are known: there is nothing to run.
        """
        if self.is_constant:
            message = "all outputs of the model are constants: there is nothing to translate"
            raise UsageError(message, name=self.name)
        weights = [i for i in self.graph.inputs if i.array is not None]
        notes = "".join(f"; %{i.name}: weight {i.dtype.name}{list(i.shape)}\n" for i in weights)
        return f"{notes}{self.graph.text()}"

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to run."""
        return all(output is not None for output in self.outputs)


class InferenceSession:
    """A model, compiled for the shapes of its inputs.

    Extents that the model does not fix are those of the first call, or of `shapes`; a call with other shapes compiles
    the model again, and what was compiled is kept.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes | ModelProto | OnnxModel,
        *,
        shapes: Mapping[str, Sequence[int]] | None = None,
        constants: Mapping[str, Any] | None = None,
        precision: str = "float32",
        lazy: bool = False,
        target: Target | str = "native",
        **settings: Any,
    ) -> None:
        """Read a model; compile it if the shapes of its inputs are known.

        Args:
            model: The path of the file, its contents, an `onnx.ModelProto`, or what `read_model` returned.
            shapes: Shapes of inputs, for extents that the model does not fix.
            constants: Inputs whose value never changes: they are no longer passed, and the model is compiled for them.
            precision: Element type in which products and convolutions of float32 read their operands: `float32`, or
                `bfloat16`, which is faster on a machine that multiplies it; sums are in float32. Then
                `bf16_intermediates` is `float` by default.
            lazy: Whether to compile at the first call even if all shapes are known.
            target: The machine to aim at, which must be this one.
            **settings: As for `tlx.compile`: `threads="openmp"`, `cache=True`, ...

        Raises:
            ModelError: The file is not a model, is damaged, or has an operator that is not supported.
            TlxError: An argument is wrong.
        """
        if precision not in PRECISIONS:
            raise UsageError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
        for name in _OPTIONS_OF_ONNXRUNTIME:
            if name in settings:
                remedy = "leave it out; target, threads and cache say how the model is compiled"
                raise UsageError(f"option '{name}' is onnxruntime's: {remedy}")
        check_settings(target, settings)
        self._model = model if isinstance(model, OnnxModel) else read_model(model)
        self._precision = precision
        if precision == BFLOAT16:
            settings.setdefault("bf16_intermediates", "float")
        self._settings = {"target": target, **settings}
        graph = self._model.graph
        for what, named in (("shapes", shapes), ("constants", constants)):
            if named is not None and not isinstance(named, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ArgumentError(f"{what}: expected a dict by the names of inputs, got {type(named).__name__}")
        self._constants = {name: np.asarray(array) for name, array in (constants or {}).items()}
        self._inputs = [i for i in graph.inputs if i.name not in graph.tensors and i.name not in self._constants]
        self._check_names(self._constants, [i.name for i in graph.inputs], "constants")
        for argument in graph.inputs:
            if argument.name in self._constants:
                self._check(argument, self._constants[argument.name])
        self._check_names(shapes or {}, [i.name for i in self._inputs], "shapes")
        given = {name: _extents(name, shape) for name, shape in (shapes or {}).items()}
        self._shapes = {i.name: self._fixed(i, given.get(i.name)) for i in self._inputs}
        self._compiled: dict[tuple[Shape, ...], _CompiledModel] = {}
        self._lock = threading.Lock()
        fixed = [shape for shape in self._shapes.values() if shape is not None]
        if len(fixed) == len(self._shapes) and not lazy:
            self._compiled_for(tuple(fixed))

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a call passes."""
        return [_described(i, self._shapes[i.name]) for i in self._inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return [_described(o, None) for o in self._model.graph.outputs]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model's file says about the model."""
        return self._model.metadata

    def run(
        self, output_names: Sequence[str] | None, inputs: Mapping[str, Any], **order: Unpack[CallOrder]
    ) -> list[Array]:
        """The outputs for some inputs.

        Args:
            output_names: Names of the outputs; None for all of them.
            inputs: An array for each input, by name; on a GPU, arrays in its memory have outputs there.
            **order: On a GPU, `stream=`, `wait_for=` and `record=`: see `tlx.api.device.streams.CallOrder`.

        Raises:
            ArgumentError: An input is missing or unknown, or has another element type or shape.
            TlxError: The model cannot be translated for these shapes.
        """
        names = [o.name for o in self._model.graph.outputs]
        wanted = names if output_names is None else list(output_names)
        if isinstance(output_names, str):
            raise ArgumentError(f"outputs: expected a list of names, got {output_names!r}")
        if not isinstance(inputs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"inputs: expected a dict of arrays by name, got {type(inputs).__name__}")
        self._check_names(wanted, names, "outputs")
        self._check_inputs(inputs)
        missing = [i.name for i in self._inputs if i.name not in inputs]
        if missing:
            raise ArgumentError(f"no array for input '{missing[0]}'; the inputs are {self._described_inputs()}")
        arrays = {i.name: self._check(i, inputs[i.name]) for i in self._inputs}
        compiled = self._compiled_for(tuple(tuple(array.shape) for array in arrays.values()))
        results = dict(zip(names, compiled(arrays, order), strict=True))
        return [results[name] for name in wanted]

    def translate(self, shapes: Sequence[Shape] | None = None) -> TranslatedModel:
        """The model as a graph, for the shapes of the inputs, or those that are fixed."""
        known = [self._shapes[i.name] for i in self._inputs] if shapes is None else list(shapes)
        graph = Graph(self._model.graph.name or "model")
        inputs: dict[str, Tensor] = dict(self._constants)
        parameters: list[str] = []
        for argument, shape in zip(self._inputs, known, strict=True):
            if shape is None:
                names = ", ".join(str(e) if e is not None else "?" for e in argument.shape or ["?"])
                raise UsageError(
                    f"input '{argument.name}' has shape ({names}), which is not fixed: translate it with "
                    f"tlx.onnx.lower and shapes={{'{argument.name}': (...)}}",
                    name=self._model.name,
                )
            inputs[argument.name] = self._declared(graph, argument, shape)
            if 0 not in shape:
                parameters.append(argument.name)
        results = ModelTranslation(self._model, graph, self._precision).outputs(inputs)
        for argument, result in zip(self._model.graph.outputs, results, strict=True):
            if isinstance(result, TensorSequence):
                raise UsageError(
                    f"output '{argument.name}' is a sequence, which is not supported", name=self._model.name
                )
            if isinstance(result, Value):
                graph.output(result, argument.name)
        known_outputs = tuple(None if isinstance(result, Value) else result for result in results)
        return TranslatedModel(graph, tuple(parameters), known_outputs, self._model.name)

    def _declared(self, graph: Graph, argument: ValueInfo, shape: Shape) -> Tensor:
        dtype, named = argument.dtype, f"input '{argument.name}'"
        if dtype is None:
            raise UsageError(f"{named} has type {argument.type}, which is not supported", name=self._model.name)
        if math.prod(shape) > LARGEST:
            message = f"{named} has shape {shape}: at most 2^31 elements are supported"
            raise UsageError(message, name=self._model.name)
        return graph.parameter(argument.name, shape, dtype) if 0 not in shape else np.empty(shape, dtype)

    def _compiled_for(self, shapes: tuple[Shape, ...]) -> _CompiledModel:
        found = self._compiled.get(shapes)
        if found is None:
            with self._lock:
                found = self._compiled.get(shapes)
                if found is None:
                    found = self._compiled[shapes] = self._compile(shapes)
        return found

    def _compile(self, shapes: tuple[Shape, ...]) -> _CompiledModel:
        translated = self.translate(shapes)
        if translated.is_constant:
            return _CompiledModel(translated, None)
        try:
            return _CompiledModel(translated, translated.graph.compile(**self._settings))
        except TlxError as error:
            if error.span is None:
                raise
            # The place is in the IR that the user has not seen.
            raise type(error)(f"compilation failed: {error.message}", name=self._model.name) from error

    def _fixed(self, argument: ValueInfo, given: Shape | None) -> Shape | None:
        """The shape of an input, if it is fixed by the model or the user."""
        shape = argument.shape
        if given is not None:
            self._check_shape(argument, given)
            return given
        extents = [e for e in shape or () if isinstance(e, int)]
        return tuple(extents) if shape is not None and len(extents) == len(shape) else None

    def _check(self, argument: ValueInfo, given: Any) -> Array:
        try:
            array = given if is_on_device(given) else np.asarray(given)
        except (ValueError, TypeError, RuntimeError) as error:  # PyTorch's, of tensors that require gradients
            raise ArgumentError(f"input '{argument.name}' is not an array: {error}") from None
        got = str(array.dtype).removeprefix("torch.")
        if argument.dtype is None or got != argument.dtype.name:
            expected = argument.type if argument.dtype is None else argument.dtype.name
            raise ArgumentError(f"input '{argument.name}': expected an array of {expected}, got {got}")
        self._check_shape(argument, tuple(array.shape))
        return array

    def _check_shape(self, argument: ValueInfo, shape: Shape) -> None:
        expected = argument.shape
        if expected is None:
            return
        fits = len(expected) == len(shape) and all(
            not isinstance(e, int) or e == n for e, n in zip(expected, shape, strict=True)
        )
        if not fits:
            text = ", ".join("?" if e is None else str(e) for e in expected)
            raise ArgumentError(f"input '{argument.name}': expected shape ({text}), got {tuple(shape)}")

    def _check_inputs(self, inputs: Mapping[str, Any]) -> None:
        passed = [i.name for i in self._inputs]
        for name in inputs:
            if name not in passed and any(i.name == name for i in self._model.graph.inputs):
                remedy = f"to change it, create the session with constants={{'{name}': ...}}"
                raise ArgumentError(f"inputs: '{name}' has a value that calls do not pass; {remedy}")
        self._check_names(inputs, passed, "inputs")

    def _check_names(self, names: Any, known: Sequence[str], what: str) -> None:
        for name in names:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise ArgumentError(f"{what}: there is no '{name}'; there are {listed}{did_you_mean(str(name), known)}")

    def _described_inputs(self) -> str:
        return ", ".join(f"{i.name}: {i.type}" for i in self._inputs)


class _CompiledModel:
    """A compiled model: arrays in, arrays out."""

    def __init__(self, translated: TranslatedModel, function: GraphFunction | None) -> None:
        self._translated = translated
        self._function = function

    def __call__(self, arrays: Mapping[str, Array], order: CallOrder) -> list[Array]:
        computed: list[Array] = []
        if self._function is not None:
            made = self._function(*(arrays[name] for name in self._translated.inputs), **order)
            computed = list(cast("tuple[Array, ...]", made)) if isinstance(made, tuple) else [made]
        rest = iter(computed)
        return [next(rest) if known is None else known.copy() for known in self._translated.outputs]


def _extents(name: str, shape: Any) -> Shape:
    """A shape that the user gives for an input."""
    try:
        extents = tuple(map(index, shape))
    except TypeError:
        extents = (-1,)
    if min(extents, default=0) < 0:
        raise ArgumentError(f"shapes: expected the extents of input '{name}', such as (8, 16), got {shape!r}")
    return extents


def _described(argument: ValueInfo, shape: Shape | None) -> NodeArg:
    extents: list[int | str | None] = [*(argument.shape or () if shape is None else shape)]
    return NodeArg(argument.name, extents, argument.type)


def lower(
    model: str | os.PathLike[str] | bytes,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    precision: str = "float32",
) -> str:
    """The TLX IR of a model: a function of its inputs, its weights, and its outputs; see `InferenceSession`.

    Raises:
        TlxError: The model is damaged or not supported, or an input has a shape that is not fixed.
    """
    session = InferenceSession(model, shapes=shapes, constants=constants, precision=precision, lazy=True)
    return session.translate().text()


def translated_text(data: bytes, filename: str) -> str:
    """The TLX IR of a model whose inputs have fixed shapes.

    Args:
        data: The contents of the file.
        filename: Its name; external data lies in the same folder.
    """
    path = Path(filename)
    model = read_model(data, filename, path.parent if path.is_file() else None)
    return f"; {filename}\n{InferenceSession(model, lazy=True).translate().text()}"
