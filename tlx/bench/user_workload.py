"""A user's function as a workload: the tensors loaded and stored through a pointer determine its buffer.

Operations are counted for its tensor operations: 2 for each multiplication of elements in a matrix product,
contraction or convolution. The speed of a function without any is given in bytes per second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from tlx.api import files
from tlx.api.lowering import choose_function
from tlx.api.prototypes import prototypes
from tlx.api.signatures import CallParameter, Prototype
from tlx.bench.recognition import RecognisedWorkload, recognise
from tlx.diagnostics import UsageError
from tlx.intrinsics.products import axes_of
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import PointerType
from tlx.lower.pipeline import raise_front_ends
from tlx.tuning.workload import (
    BF16,
    F16,
    F32,
    F64,
    S8,
    S16,
    S32,
    S64,
    U8,
    Element,
    MemoryTraffic,
    Workload,
    WorkloadBuffer,
)

_ELEMENTS: Final = {element.llvm: element for element in (F64, F32, F16, BF16, U8, S8, S16, S32, S64)}
_NAMES: Final = {element.name: element for element in (*_ELEMENTS.values(), U8)}
_UNSIGNED: Final = {"umma": (U8, U8), "usmma": (U8, S8), "summa": (S8, U8)}
_MATRICES: Final = ("matmul", "umma", "smma", "usmma", "summa")
_SHAPE: Final = re.compile(r"([a-z]+\d+):(\d+(?:x\d+)*)")


def user_workload(
    path: str, name: str | None, arguments: Mapping[str, str], input_format: files.InputFormat = files.FORMAT_BY_NAME
) -> Workload:
    """The workload of a function in a file.

    Args:
        path: The file.
        name: The function; None where the file defines only one.
        arguments: Arguments by parameter name: a number, or for a pointer an array such as `f32:64x64`.
        input_format: Format of the file.

    Raises:
        TlxError: The file, the function or an argument is wrong.
    """
    source = files.ir_name(path, input_format)
    text = str(raise_front_ends(parse(files.read_ir(path, input_format=input_format), source)))
    module = parse_fully(text, source)
    prototype = _select_function(prototypes(module), name)
    function = next(f for f in module.functions if f.name.strip('"') == prototype.name)
    tensors = analyse(module, function)
    ops = tensors.ops
    unknown = set(arguments) - {p.name.removeprefix("%") for p in prototype.parameters}
    if unknown:
        raise UsageError(f"@{prototype.name} has no parameter '{min(unknown)}'; it has {_list_names(prototype)}")
    buffers: list[WorkloadBuffer] = []
    order: list[str | tuple[str, float]] = []
    for parameter in prototype.parameters:
        short = parameter.name.removeprefix("%")
        if isinstance(parameter.type, PointerType):
            buffers.append(_buffer(prototype, parameter, arguments.get(short)))
            order.append(short)
        else:
            order.append((str(parameter.type), _number(prototype, parameter, arguments.get(short))))
    traffic = sum(buffer.bytes for buffer in buffers)
    operations = sum(map(_operations, ops))
    known = recognise(function, tensors) if not arguments and all(isinstance(item, str) for item in order) else None
    if known is not None:
        return _known_workload(known, prototype, text, [str(item) for item in order])
    return Workload(
        row=prototype.name,
        types=next((buffer.element.name for buffer in buffers), ""),
        size="x".join(str(extent) for extent in buffers[0].shape) if buffers else "",
        buffers=tuple(buffers),
        text=lambda: text,
        expected=None,
        operations=operations or traffic,
        traffic=traffic,
        peak=_peak(ops) or _stream(buffers),
        problem=None,
        function=prototype.name,
        order=tuple(order),
    )


def _known_workload(known: RecognisedWorkload, prototype: Prototype, text: str, parameters: Sequence[str]) -> Workload:
    """The workload of a function that computes one of the table's, which numpy checks and other libraries measure."""
    work = known.workload
    return replace(
        work,
        row=prototype.name,
        text=lambda: text,
        function=prototype.name,
        order=tuple(known.roles[name] for name in parameters),
    )


def _select_function(functions: Mapping[str, Prototype], name: str | None) -> Prototype:
    return functions[choose_function(functions, name, "name the function to measure with --function=")]


def _list_names(prototype: Prototype) -> str:
    return ", ".join(parameter.name.removeprefix("%") for parameter in prototype.parameters) or "none"


def _buffer(prototype: Prototype, parameter: CallParameter, text: str | None) -> WorkloadBuffer:
    short = parameter.name.removeprefix("%")
    if text is not None:
        match = _SHAPE.fullmatch(text)
        if match is None or match[1] not in _NAMES:
            raise UsageError(f"'{text}' is not an array for {parameter.name}; write TYPE:SHAPE, such as f32:64x64")
        shape = tuple(int(extent) for extent in match[2].split("x"))
        _check_array(prototype, parameter, _NAMES[match[1]], prod(shape), text)
        return WorkloadBuffer(short, _NAMES[match[1]], shape, parameter.written)
    element = _ELEMENTS.get(str(parameter.element))
    if element is None or parameter.count is None or not parameter.is_bounded:
        what = "what" if element is None else f"how many elements of {element.name}"
        raise UsageError(
            f"@{prototype.name} does not say {what} {parameter.name} points to; give it with --args={short}=f32:64x64"
        )
    return WorkloadBuffer(short, element, (parameter.count,), parameter.written)


def _check_array(prototype: Prototype, parameter: CallParameter, element: Element, count: int, text: str) -> None:
    """Refuse an array that is smaller than the function's accesses or has another element type."""
    expected, least = _ELEMENTS.get(str(parameter.element)), parameter.count or 1
    if count < 1 or (expected is not None and (element.llvm != expected.llvm or count < least)):
        needs = f"{least} elements of {expected.name}" if expected else "elements"
        raise UsageError(f"'{text}' does not fit {parameter.name}: @{prototype.name} needs {needs} there")


def _number(prototype: Prototype, parameter: CallParameter, text: str | None) -> float:
    short = parameter.name.removeprefix("%")
    if text is None:
        raise UsageError(f"@{prototype.name} takes {parameter.type} {parameter.name}; give it with --args={short}=1")
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise UsageError(f"'{text}' is not a number for {parameter.name}") from None


def _operations(op: TensorOp) -> int:
    """Number of additions and multiplications."""
    name, result = op.intrinsic.name.removeprefix("llvm.tensor."), op.result
    if result is None:
        return 0
    extents = [tensor.type.extents for tensor in op.tensors]
    if name in _MATRICES:
        return 2 * prod(result.extents) * extents[-1][-2]
    if name == "contract":
        return 2 * prod(result.extents) * prod(extents[0][axis] for axis in axes_of(op.dims)[0])
    if name == "convolution":
        return 2 * prod(result.extents) * prod(extents[1][1:] if len(extents[1]) > 2 else extents[1])
    return 0


def _peak(ops: list[TensorOp]) -> tuple[Element, Element, Element] | None:
    """Element types (lhs, rhs, sum) of the first product; None without one."""
    for op in ops:
        if not _operations(op) or op.result is None:
            continue
        name = op.intrinsic.name.removeprefix("llvm.tensor.")
        lhs, rhs = (_ELEMENTS.get(str(tensor.type.element)) for tensor in op.tensors[-2:])
        out = _ELEMENTS.get(str(op.result.element))
        if lhs is None or rhs is None or out is None:
            return None
        if rhs is S8 or rhs is U8:
            lhs, rhs = _UNSIGNED.get(name, (S8, S8))
        return lhs, rhs, F32 if out.is_float and out is not F64 else out
    return None


def _stream(buffers: list[WorkloadBuffer]) -> MemoryTraffic:
    written = sum(buffer.output for buffer in buffers)
    largest = max((buffer.bytes for buffer in buffers), default=64)
    return MemoryTraffic(largest, max(1, len(buffers) - written), written)


def parse_arguments(words: tuple[str, ...]) -> dict[str, str]:
    """Parse arguments such as `x=f32:64x64` and `n=5`.

    Raises:
        UsageError: A word has no `=`.
    """
    for word in words:
        if "=" not in word:
            raise UsageError(f"'{word}' in --args is not NAME=VALUE")
    return {name.removeprefix("%"): value for name, _, value in (word.partition("=") for word in words)}
