"""Reader of StableHLO, as a portable artifact or MLIR text, by the MLIR bindings that jaxlib ships.

MLIR's reader is not safe for damaged files: it may crash its process. `tlx.frontends.jax.files` therefore calls it in a
process of its own; `tlx.jax.jit` passes what JAX has just written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from tlx.diagnostics import UsageError
from tlx.frontends.jax.erfc import with_erfc
from tlx.frontends.jax.program import (
    DType,
    Location,
    StablehloFunction,
    StablehloModule,
    StablehloOperation,
    StablehloRegion,
    ValueType,
)
from tlx.intrinsics.numpy_types import named_dtype, small_float_of
from tlx.intrinsics.small_floats import E4M3, E5M2

BYTECODE: Final = b"ML\xefR"
_EXPORTER: Final = str(Path(__file__).with_name("compilation.py"))
_PLACE: Final = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (?::(\d+))?)?')
_NAME: Final = re.compile(r'loc\("((?:[^"\\]|\\.)*)"(?!:\d)')
_BYTES: Final = 'dense<"0x'
_MESSAGE: Final = re.compile(r'error: (?:"-":)?(.*)')
_ELEMENTS: Final = {
    "i1": "bool",
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"ui{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    "f8E4M3FN": E4M3.dtype,
    "f8E5M2": E5M2.dtype,
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
}
_DIMENSIONS: Final = {  # properties of StableHLO's attributes of dimension numbers
    "DotDimensionNumbers": (
        "lhs_batching_dimensions",
        "rhs_batching_dimensions",
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
    ),
    "ConvDimensionNumbers": (
        "input_batch_dimension",
        "input_feature_dimension",
        "input_spatial_dimensions",
        "kernel_input_feature_dimension",
        "kernel_output_feature_dimension",
        "kernel_spatial_dimensions",
        "output_batch_dimension",
        "output_feature_dimension",
        "output_spatial_dimensions",
    ),
    "GatherDimensionNumbers": (
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
        "index_vector_dim",
    ),
    "ScatterDimensionNumbers": (
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scattered_dims_to_operand_dims",
        "index_vector_dim",
    ),
}
_ENUMS: Final = (
    "ComparisonDirectionAttr",
    "ComparisonTypeAttr",
    "RngAlgorithmAttr",
    "RngDistributionAttr",
    "FftTypeAttr",
    "TransposeAttr",
)


def read(data: bytes, name: str) -> StablehloModule:
    """The program in a portable artifact or in MLIR text.

    Raises:
        UsageError: The data is not valid StableHLO, or jaxlib is missing.
    """
    try:
        import jaxlib.mlir.ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import sdy, stablehlo
    except ImportError as error:
        raise UsageError(f"StableHLO is read by jaxlib ({error}): pip install 'tlx-ir[jax]'") from None
    ir: Any = jaxlib.mlir.ir
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    sdy.register_dialect(context)
    messages: list[str] = []

    def note(diagnostic: Any) -> bool:
        messages.append(diagnostic.message)
        return True  # it is not printed

    context.attach_diagnostic_handler(note)
    try:
        with context:
            if data.startswith(BYTECODE):
                module = stablehlo.deserialize_portable_artifact(context, data)
            else:
                module = ir.Module.parse(data.decode(), context)
            module.operation.verify()
            return _Reader(ir, stablehlo, name).program(module)
    except UnicodeDecodeError:
        raise UsageError("this is neither a portable artifact of StableHLO nor MLIR text", name=name) from None
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        found = _MESSAGE.search(str(error))
        reason = messages[0] if messages else found[1] if found else str(error).strip()
        raise UsageError(f"this is not valid StableHLO ({reason}): write it again with jax.export", name=name) from None


class _Reader:
    """Turns an MLIR module into a `StablehloModule`."""

    def __init__(self, ir: Any, stablehlo: Any, name: str) -> None:
        self._ir = ir
        self._source = name
        self._numbers: dict[Any, int] = {}
        self._types: dict[Any, ValueType] = {}
        self._locations: dict[Any, Location] = {}
        self._dimensions = [(getattr(stablehlo, name), fields) for name, fields in _DIMENSIONS.items()]
        self._enums = [getattr(stablehlo, name) for name in _ENUMS]

    def program(self, module: Any) -> StablehloModule:
        """The functions of a module."""
        functions: dict[str, StablehloFunction] = {}
        for operation in module.body.operations:
            if operation.operation.name == "func.func" and len(operation.operation.regions[0].blocks):
                function = self._function(operation)
                functions[function.name] = function
        if not functions:
            raise ValueError("the module has no function")
        return StablehloModule(functions)

    def _function(self, operation: Any) -> StablehloFunction:
        block = operation.operation.regions[0].blocks[0]
        types = operation.attributes["function_type"].value
        names = [_name(str(argument.location)) for argument in block.arguments]
        return StablehloFunction(
            operation.attributes["sym_name"].value,
            tuple(self._type(type_) for type_ in types.inputs),
            tuple(names),
            tuple(self._type(type_) for type_ in types.results),
            with_erfc(self._region(block)),
        )

    def _region(self, block: Any) -> StablehloRegion:
        parameters = tuple(self._number(argument) for argument in block.arguments)
        *operations, last = [self._operation(operation) for operation in block.operations]
        return StablehloRegion(parameters, tuple(operations), last.operands)

    def _operation(self, view: Any) -> StablehloOperation:
        operation = view.operation
        if any(len(region.blocks) != 1 for region in operation.regions):
            raise ValueError(f"{operation.name}: a region of several blocks")
        attributes = operation.attributes
        return StablehloOperation(
            operation.name,
            tuple(self._number(value) for value in operation.operands),
            tuple(self._type(value.type) for value in operation.operands),
            tuple(self._number(value) for value in operation.results),
            tuple(self._type(value.type) for value in operation.results),
            {name: self._named(attributes, name) for name in attributes},
            tuple(self._region(region.blocks[0]) for region in operation.regions),
            self._location(operation.location),
        )

    def _number(self, value: Any) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _type(self, type_: Any) -> ValueType:
        if type_ not in self._types:
            self._types[type_] = self._value_type(type_)
        return self._types[type_]

    def _value_type(self, type_: Any) -> ValueType:
        text = str(type_)
        ranked = type_.maybe_downcast()
        if not isinstance(ranked, self._ir.RankedTensorType):
            return ValueType(None, None, text)
        shape = tuple(ranked.shape) if ranked.has_static_shape else None
        return ValueType(shape, _dtype(str(ranked.element_type)), text)

    def _named(self, attributes: Any, name: str) -> Any:
        try:
            return self._attribute(attributes[name])
        except TypeError:  # an attribute that MLIR's bindings do not know, such as complex numbers
            return None

    def _attribute(self, attribute: Any) -> Any:
        ir = self._ir
        attribute = attribute.maybe_downcast()
        if isinstance(attribute, (ir.DenseElementsAttr, ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)):
            return self._array(attribute)
        if isinstance(attribute, (ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr, ir.DenseBoolArrayAttr)):
            return tuple(attribute)
        if isinstance(attribute, ir.ArrayAttr):
            return tuple(self._attribute(item) for item in attribute)
        if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr, ir.StringAttr, ir.FlatSymbolRefAttr, ir.FloatAttr)):
            return attribute.value
        if isinstance(attribute, ir.DictAttr):
            return {item.name: self._attribute(item.attr) for item in attribute}
        for kind, fields in self._dimensions:
            if kind.isinstance(attribute):
                known = kind(attribute)
                values = {field: getattr(known, field) for field in fields}
                return {k: v if isinstance(v, int) else tuple(v) for k, v in values.items()}
        for kind in self._enums:
            if kind.isinstance(attribute):
                return kind(attribute).value
        return str(attribute)

    def _array(self, attribute: Any) -> np.ndarray[Any, Any]:
        type_ = self._type(attribute.type)
        if type_.dtype is None or type_.shape is None:
            return np.zeros(0)
        if attribute.is_splat:
            return np.broadcast_to(np.array(attribute.get_splat_value().value, type_.dtype), type_.shape)
        if small_float_of(type_.dtype) is not None:
            return _small_floats(attribute, type_.dtype).reshape(type_.shape)
        if type_.dtype.name == "bfloat16":
            return _bfloats(attribute).astype(type_.dtype).reshape(type_.shape)
        return np.array(attribute).astype(type_.dtype).reshape(type_.shape)

    def _location(self, location: Any) -> Location:
        """A location; the operations of a function share theirs, whose texts hold the whole stack of calls."""
        key = location.attr  # a location is equal to others, but does not hash
        if key not in self._locations:
            self._locations[key] = self._place(str(location))
        return self._locations[key]

    def _place(self, text: str) -> Location:
        place = _PLACE.search(text)
        name = _name(text)
        if place is None:
            return Location(name=name)
        file, line, start, end = place.groups()
        if file == _EXPORTER:  # the caller of `jax.export`, which is not where the user wrote the operation
            return Location(name=name)
        if file == "-":  # MLIR text, whose columns begin with 1
            return Location(self._source, int(line), int(start), 0, name)
        return Location(_unescaped(file), int(line), int(start) + 1, int(end) + 1 if end else 0, name)


def _name(location: str) -> str:
    match = _NAME.match(location)
    return match[1] if match else ""


def _bfloats(attribute: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The elements of a dense attribute of bfloat, which has no buffer in Python, from its text."""
    data, numbers = _elements(attribute)
    if data is not None:
        return _widened(np.frombuffer(data, np.uint16))
    return np.array([_widened(np.array([int(n, 16)]))[0] if n.startswith("0x") else float(n) for n in numbers], "f4")


def _small_floats(attribute: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """The elements of a dense attribute of 8-bit floats, likewise."""
    data, numbers = _elements(attribute)
    if data is not None:
        return np.frombuffer(data, np.uint8).view(dtype)
    read = [np.uint8(int(n, 16)).view(dtype) if n.startswith("0x") else dtype.type(float(n)) for n in numbers]
    return np.array(read, dtype)


def _elements(attribute: Any) -> tuple[bytes | None, list[str]]:
    """The bytes of a dense attribute whose text is in hexadecimal; else its numbers, as spelled."""
    text = str(attribute)
    if text.startswith(_BYTES):
        return bytes.fromhex(text[len(_BYTES) : text.index('"', len(_BYTES))]), []
    return None, re.findall(r"0x[0-9A-F]+|[-+.\deE]+", text[text.index("<") + 1 : text.index(">")])


def _widened(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The floats of bfloats that are given as their bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _dtype(element: str) -> DType | None:
    return named_dtype(_ELEMENTS[element]) if element in _ELEMENTS else None


def _unescaped(text: str) -> str:
    r"""A string of MLIR, in which `\\`, `\"` and bytes in hexadecimal are escaped."""
    escape = re.compile(rb"\\(?:([0-9A-F]{2})|(.))")
    data = escape.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else m[2], text.encode())
    return data.decode(errors="replace")
