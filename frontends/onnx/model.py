"""Models as data: the contents of an ONNX file, checked as far as reading it requires.

Only the file and its external data are read; the data must be in the file's folder or below it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tlx.diagnostics import TlxError, UsageError
from tlx.intrinsics.numpy_types import named_dtype, small_float_of
from tlx.intrinsics.small_floats import E4M3, E5M2

if TYPE_CHECKING:
    import onnx

Array = np.ndarray[Any, np.dtype[Any]]

ELEMENT_TYPES: Final[dict[int, str]] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
    17: E4M3.dtype,
    19: E5M2.dtype,
}
"""Numbers of ONNX's element types and their names in numpy."""

_PACKED: Final = {21: ("uint8", 4), 22: ("int8", 4), 25: ("uint8", 2), 26: ("int8", 2)}
_SPELLED: Final = {
    "float32": "float",
    "float64": "double",
    E4M3.dtype: "float8e4m3fn",
    E5M2.dtype: "float8e5m2",
}
_OLDEST_OPSET: Final = 7


class ModelError(TlxError):
    """A file is not an ONNX model, is damaged, or uses something that is not supported."""


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a model's file says about the model, by onnxruntime's names.

    Attributes:
        producer_name: The program that wrote it.
        domain: Its namespace.
        version: Its version.
        description: Its description.
        graph_name: Name of the graph.
        graph_description: Description of the graph.
        custom_metadata_map: Further entries, such as the characters that a text recogniser knows.
    """

    producer_name: str = ""
    domain: str = ""
    version: int = 0
    description: str = ""
    graph_name: str = ""
    graph_description: str = ""
    custom_metadata_map: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor of the file; its elements are read when they are first needed.

    Attributes:
        proto: Its message.
        folder: The model's folder, for external data; None if the model came as bytes.
        model: The model's name, for errors.
    """

    proto: onnx.TensorProto
    folder: Path | None
    model: str

    @property
    def is_packed(self) -> bool:
        """Whether the elements have fewer than 8 bits."""
        return self.proto.data_type in _PACKED

    @cached_property
    def array(self) -> Array:
        """The elements.

        Raises:
            ModelError: They are damaged, or of a type that is not supported.
        """
        proto = self.proto
        shape = tuple(proto.dims)
        if any(extent < 0 for extent in shape):
            raise self._error(f"has a negative extent: {shape}")
        if proto.data_type in _PACKED:
            return self._packed(shape)
        dtype = element_type(proto.data_type)
        if dtype is None:
            raise self._error(f"has element type {type_name(proto.data_type)}, which is not supported")
        count = math.prod(shape)
        if proto.data_location == 1:
            data = self._external(count * dtype.itemsize)
        elif proto.raw_data:
            data = proto.raw_data
        else:
            return self._typed(dtype, shape)
        if len(data) != count * dtype.itemsize:
            raise self._error(f"has {len(data)} bytes; shape {shape} of {dtype.name} needs {count * dtype.itemsize}")
        if dtype.kind == "b":
            return np.frombuffer(data, np.uint8).astype(np.bool_).reshape(shape)
        return np.frombuffer(data, dtype).reshape(shape)

    def _typed(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Elements in a field of their type; small types are in that of 32-bit integers, floats as bits."""
        proto = self.proto
        fields = {"float32": proto.float_data, "float64": proto.double_data, "int64": proto.int64_data}
        unsigned = {"uint32": proto.uint64_data, "uint64": proto.uint64_data}
        numbers = cast("Sequence[float]", {**fields, **unsigned}.get(dtype.name, proto.int32_data))
        if len(numbers) != math.prod(shape):
            raise self._error(f"has {len(numbers)} elements; shape {shape} needs {math.prod(shape)}")
        if dtype.name in ("float16", "bfloat16"):
            return np.array(numbers, np.int64).astype(np.uint16).view(dtype).reshape(shape)
        if small_float_of(dtype) is not None:
            return np.array(numbers, np.int64).astype(np.uint8).view(dtype).reshape(shape)
        return np.array(numbers, None if numbers else dtype).astype(dtype).reshape(shape)

    def _packed(self, shape: tuple[int, ...]) -> Array:
        """Integers of 4 or 2 bits, the first in the low bits of a byte, as 8-bit integers."""
        name, bits = _PACKED[self.proto.data_type]
        count, per_byte = math.prod(shape), 8 // bits
        size = -(-count // per_byte)
        data = self.proto.raw_data or bytes(number & 255 for number in self.proto.int32_data)
        if self.proto.data_location == 1:
            data = self._external(size)
        if len(data) != size:
            raise self._error(f"has {len(data)} bytes; shape {shape} of {bits}-bit integers needs {size}")
        shifts = np.arange(per_byte, dtype=np.uint8) * bits
        numbers = ((np.frombuffer(data, np.uint8)[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
        if name == "int8":
            top = 1 << (bits - 1)
            return ((numbers ^ top).astype(np.int8) - np.int8(top)).reshape(shape)
        return numbers.reshape(shape)

    def _external(self, size: int) -> bytes:
        """The bytes of a tensor that is stored in another file."""
        entries = {_text(entry.key): _text(entry.value) for entry in self.proto.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            raise self._error("is stored in another file: pass the model's path instead of its bytes")
        if not location or Path(location).is_absolute() or ".." in Path(location).parts or "\0" in location:
            raise self._error(f"is stored in {location!r}: the path must be relative, and have no '..'")
        path = self.folder / location
        try:
            offset, length = int(entries.get("offset", "0")), int(entries.get("length", str(size)))
            is_inside = path.resolve().is_relative_to(self.folder.resolve())
            available = path.stat().st_size if is_inside and path.is_file() else -1
        except (OSError, ValueError) as error:
            raise self._error(f"is stored in {location!r}, which cannot be read: {error}") from None
        if available < 0:
            raise self._error(f"is stored in {location!r}, which is not a file in the folder of the model")
        if length != size or offset < 0 or offset + length > available:
            what = f"bytes {offset} to {offset + length} of {location!r}, which has {available}"
            raise self._error(f"is stored in {what}; {size} bytes are needed")
        with path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(length)

    def _error(self, message: str) -> ModelError:
        return ModelError(f"tensor {self.proto.name!r} {message}", name=self.model)


Attribute = int | float | str | bytes | StoredTensor | Sequence[Any] | Any


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One operation.

    Attributes:
        operator: Its type, `Conv`.
        domain: The operator's domain; empty for ONNX's own.
        name: The node's name, or the first of its outputs.
        inputs: Names of the operands; empty for one that is left out.
        outputs: Names of the results.
        attributes: Numbers, strings, tensors, graphs, or lists of them.
        opset: Version of the domain's operators.
        model: The model's name, for errors.
    """

    operator: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    opset: int
    model: str

    def error(self, message: str) -> ModelError:
        """An error at this node."""
        return ModelError(message, name=f"{self.model}: {self.operator} {self.name!r}")

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default."""
        return self.attributes.get(name, default)

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        return self._typed(name, default, int, "an integer")

    def number(self, name: str, default: float) -> float:
        """A number."""
        return float(self._typed(name, default, (int, float), "a number"))

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        return self._typed(name, default, str, "a string")

    def integers(self, name: str) -> list[int] | None:
        """A list of integers; None if the attribute is not there."""
        found = self.attributes.get(name)
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(n, int) for n in cast("list[Any]", found)):
            raise self.error(f"attribute '{name}' must be a list of integers")
        return cast("list[int]", found)

    def numbers(self, name: str) -> list[float] | None:
        """A list of numbers; None if the attribute is not there."""
        found = self.attributes.get(name)
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(n, (int, float)) for n in cast("list[Any]", found)):
            raise self.error(f"attribute '{name}' must be a list of numbers")
        return cast("list[float]", found)

    def subgraph(self, name: str) -> GraphDefinition:
        """A graph."""
        found = self.attributes.get(name)
        if not isinstance(found, GraphDefinition):
            raise self.error(f"attribute '{name}' must be a graph")
        return found

    def _typed(self, name: str, default: Any, kind: Any, what: str) -> Any:
        found = self.attributes.get(name, default)
        if not isinstance(found, kind):
            raise self.error(f"attribute '{name}' must be {what}")
        return found


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """An input or output of a model.

    Attributes:
        name: Its name.
        element: Number of its element type; 0 if it is not given.
        shape: Its extents, names of those that are not fixed, None for those that are not known at all; None if even
            the rank is not known.
    """

    name: str
    element: int
    shape: tuple[int | str | None, ...] | None

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The element type in numpy; None if it is not supported."""
        return element_type(self.element)

    @property
    def type(self) -> str:
        """The type as onnxruntime writes it: `tensor(float)`."""
        return f"tensor({type_name(self.element)})"


@dataclass(frozen=True, slots=True)
class GraphDefinition:
    """A graph: inputs, constants, nodes in order, outputs."""

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    tensors: Mapping[str, StoredTensor]
    nodes: tuple[OnnxNode, ...]


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """An operator that the model, or ONNX itself, defines by others.

    Attributes:
        inputs: Names of the operands in the body.
        outputs: Names of the results.
        attributes: Attributes that the body refers to, with their defaults.
        proto: The message; its nodes are read for each use, as they refer to the attributes of the use.
        opsets: Versions of the domains that it uses.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    proto: onnx.FunctionProto
    opsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model: its graph, the functions that it defines by domain and name, and what it says about itself."""

    name: str
    graph: GraphDefinition
    functions: Mapping[tuple[str, str], FunctionDefinition] = field(default_factory=dict[Any, Any])
    metadata: ModelMetadata = field(default_factory=ModelMetadata)


def element_type(number: int) -> np.dtype[Any] | None:
    """The numpy type of an element type's number; None if it is not supported, or needs ml_dtypes, which is missing."""
    name = ELEMENT_TYPES.get(number)
    try:
        return None if name is None else named_dtype(name)
    except TypeError:
        return None


def type_name(number: int) -> str:
    """ONNX's name of an element type."""
    import onnx

    if number in ELEMENT_TYPES:
        return _SPELLED.get(ELEMENT_TYPES[number], ELEMENT_TYPES[number])
    try:
        return onnx.TensorProto.DataType.Name(cast("Any", number)).lower()
    except ValueError:
        return f"number {number}"


def read_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto, name: str = "<bytes>", folder: Path | None = None
) -> OnnxModel:
    """Read a model.

    Args:
        source: The path of a file, its contents, or the decoded message.
        name: What to call contents in errors.
        folder: The folder that the external data of contents is in.

    Raises:
        UsageError: The file cannot be read, or the package onnx is not installed.
        ModelError: It is not a model, is damaged, or uses something that is not supported.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise UsageError("reading ONNX models needs the package onnx: pip install 'tlx-ir[onnx]'") from None
    if isinstance(source, onnx.ModelProto):
        proto = source
    else:
        data = source
        if not isinstance(data, bytes):
            try:
                path = Path(data)
            except TypeError:
                raise UsageError(f"expected the path of a model, its bytes or its message, got {data!r}") from None
            name, folder = str(path), path.absolute().parent  # external data is read later
            try:
                data = path.read_bytes()
            except OSError as error:
                raise UsageError(error.strerror or str(error), name=name) from None
        proto = onnx.ModelProto()
        try:
            proto.ParseFromString(data)
        except DecodeError:
            raise ModelError("this is not an ONNX model, or it is damaged", name=name) from None
    opsets = {_domain(entry.domain): entry.version for entry in proto.opset_import}
    if not proto.HasField("graph") or "" not in opsets:
        raise ModelError(
            "this is not an ONNX model: it has no graph, or does not state the version of its operators", name=name
        )
    if not _OLDEST_OPSET <= opsets[""] <= onnx.defs.onnx_opset_version():
        newest = onnx.defs.onnx_opset_version()
        raise ModelError(
            f"operators of version {opsets['']} are not supported: versions {_OLDEST_OPSET} to {newest} are; "
            "convert the model with onnx.version_converter",
            name=name,
        )
    reader = Reader(name, folder, opsets)
    functions = {
        (_domain(f.domain), _text(f.name)): reader.function(f, {_domain(e.domain): e.version for e in f.opset_import})
        for f in proto.functions
    }
    return OnnxModel(name, reader.graph(proto.graph), functions, _metadata(proto))


def _metadata(proto: onnx.ModelProto) -> ModelMetadata:
    return ModelMetadata(
        _text(proto.producer_name),
        _text(proto.domain),
        proto.model_version,
        _text(proto.doc_string),
        _text(proto.graph.name),
        _text(proto.graph.doc_string),
        {_text(entry.key): _text(entry.value) for entry in proto.metadata_props},
    )


@dataclass(frozen=True, slots=True)
class Reader:
    """Reader of the messages of one model.

    Attributes:
        model: The model's name, for errors.
        folder: Where its external data is.
        opsets: Versions of the domains.
        references: Attributes of a function's use, to which nodes of its body refer.
    """

    model: str
    folder: Path | None
    opsets: Mapping[str, int]
    references: Mapping[str, Attribute] = field(default_factory=dict[str, Any])

    def graph(self, proto: onnx.GraphProto) -> GraphDefinition:
        """A graph."""
        tensors = {_text(tensor.name): StoredTensor(tensor, self.folder, self.model) for tensor in proto.initializer}
        if proto.sparse_initializer:
            raise ModelError("sparse tensors are not supported: store them as dense ones", name=self.model)
        return GraphDefinition(
            _text(proto.name),
            tuple(_argument(i) for i in proto.input),
            tuple(_argument(o) for o in proto.output),
            tensors,
            self.nodes(proto.node),
        )

    def nodes(self, protos: Iterable[onnx.NodeProto]) -> tuple[OnnxNode, ...]:
        """Nodes in their order."""
        return tuple(self._node(proto, number) for number, proto in enumerate(protos))

    def function(self, proto: onnx.FunctionProto, opsets: Mapping[str, int]) -> FunctionDefinition:
        """A function."""
        attributes: dict[str, Attribute] = dict.fromkeys(map(_text, proto.attribute))
        attributes |= {_text(a.name): self._attribute(a) for a in proto.attribute_proto}
        return FunctionDefinition(
            tuple(map(_text, proto.input)),
            tuple(map(_text, proto.output)),
            attributes,
            proto,
            {**self.opsets, **opsets},
        )

    def _node(self, proto: onnx.NodeProto, number: int) -> OnnxNode:
        domain = _domain(proto.domain)
        inputs, outputs = tuple(map(_text, proto.input)), tuple(map(_text, proto.output))
        name = _text(proto.name) or next(iter(outputs), f"node {number}")
        attributes = {_text(a.name): self._attribute(a) for a in proto.attribute}
        present = {key: value for key, value in attributes.items() if value is not None}
        opset = self.opsets.get(domain, 1)
        return OnnxNode(_text(proto.op_type), domain, name, inputs, outputs, present, opset, self.model)

    def _attribute(self, proto: onnx.AttributeProto) -> Attribute:
        """The value of an attribute; None if it refers to one that the use of the function does not have."""
        if proto.ref_attr_name:
            return self.references.get(_text(proto.ref_attr_name))
        readers: dict[int, Any] = {
            1: lambda: float(proto.f),
            2: lambda: int(proto.i),
            3: lambda: proto.s.decode(errors="replace"),
            4: lambda: StoredTensor(proto.t, self.folder, self.model),
            5: lambda: self.graph(proto.g),
            6: lambda: list(proto.floats),
            7: lambda: list(proto.ints),
            8: lambda: [text.decode(errors="replace") for text in proto.strings],
            9: lambda: [StoredTensor(tensor, self.folder, self.model) for tensor in proto.tensors],
            10: lambda: [self.graph(graph) for graph in proto.graphs],
        }
        if proto.type not in readers:
            raise ModelError(f"attribute {proto.name!r} has a type that is not supported", name=self.model)
        return readers[proto.type]()


def _text(name: Any) -> str:
    """A string; one that is not UTF-8, in a damaged file, comes as bytes."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def _domain(name: Any) -> str:
    return "" if name == "ai.onnx" else _text(name)


def _argument(proto: onnx.ValueInfoProto) -> ValueInfo:
    tensor = proto.type.tensor_type
    if not tensor.HasField("shape"):
        return ValueInfo(_text(proto.name), tensor.elem_type, None)
    extents = (d.dim_value if d.HasField("dim_value") else _text(d.dim_param) or None for d in tensor.shape.dim)
    # Some exporters write 0 or -1 for an extent that is not fixed.
    shape = tuple(None if isinstance(e, int) and e < 1 else e for e in extents)
    return ValueInfo(_text(proto.name), tensor.elem_type, shape)
