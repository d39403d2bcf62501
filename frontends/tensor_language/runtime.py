"""Kernels compiled into this process, called with numpy arrays.

    kernels = tl.compile("func @scale(%a: f32, %A: memref<f32x?x?>) { ... }")
    kernels.scale(2.0, array)                          one work-group
    kernels.fused(2.0, arrays, b, groups=(4, 2))       4 x 2 work-groups

`tlx.api.compiler` lowers, compiles and loads. Arrays and numbers become C parameters:

    A: memref<f32x8x?>                 an array of shape (8, n)   ->  address, n, stride of mode 1 in elements
    B: group<memref<f32x?>x?>          a list of n vectors        ->  addresses, extents, n
    c: c32                             1+2j                       ->  two floats

Machine code trusts its arguments; a wrong one would crash the process or give wrong results. So each is checked against
the type and the attributes of the parameter. Arrays are never copied.
"""

from __future__ import annotations

import math
import operator
import os
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, cast

import numpy as np

from tlx.api import compiler
from tlx.api.call import ALIGNED, WRITEABLE, ArgumentError, CompiledFunction, array_address
from tlx.api.compiler import Namespace
from tlx.api.device.functions import DeviceFunction
from tlx.api.device.host_copies import HostCopies, memory_bounds
from tlx.api.device.streams import between_events, stream_handle
from tlx.api.lowering import grid_of
from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.analysis import parameter_uses
from tlx.frontends.tensor_language.errors import counted
from tlx.frontends.tensor_language.signature import CParameter, c_parameters, signatures
from tlx.frontends.tensor_language.syntax.nodes import Attribute, Function, Parameter, Program
from tlx.frontends.tensor_language.translation import Standard, emitted, parse
from tlx.frontends.tensor_language.types import Extent, GroupType, MemrefType, ScalarType, number_of_kind
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.numpy_types import dtype_of as numpy_type
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, IntType
from tlx.llvm.openmp import Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.builder.kernel import Kernel
    from tlx.lower.options import Options
    from tlx.target.grid_unit import DeviceArray
    from tlx.target.target import Target

_MOST_LAYOUTS: Final = 256


@dataclass(slots=True)
class BoundArgument:
    """An argument, converted.

    Attributes:
        values: The value of each of its C parameters, by role and mode.
        keep: Objects that must live until the call returns.
    """

    values: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any])
    keep: list[Any] = field(default_factory=list[Any])


@dataclass(frozen=True, slots=True)
class ArgumentPlace:
    """The argument of a call that is checked.

    Attributes:
        position: Its position.
        parameter: The parameter.
        written: Whether the kernel changes its memory.
        tested: Whether the kernel compares it with null.
        member: Position in a group, None where it is not a member.
    """

    position: int
    parameter: Parameter
    written: bool
    tested: bool
    member: int | None = None

    def error(self, expected: str, got: str) -> ArgumentError:
        """An error with what was expected and what was passed."""
        member = "" if self.member is None else f", member {self.member}"
        name = f"argument {self.position} ({self.parameter.name}: {self.parameter.type}){member}"
        return ArgumentError(f"{name}: expected {expected}, got {got}")


def bind(place: ArgumentPlace, value: Any, offset: int = 0) -> BoundArgument:
    """Check an argument and convert it.

    Args:
        place: Which argument it is.
        value: The argument.
        offset: For groups whose offset is `?`: elements added to each address.

    Raises:
        ArgumentError: It does not fit.
    """
    type_ = place.parameter.type.type
    if isinstance(type_, GroupType):
        return _group(place, type_, value, offset)
    if isinstance(type_, MemrefType):
        address, extents = _memref(place, type_, value, 0)
        return BoundArgument({("pointer", 0): address, **extents}, [value])
    assert isinstance(type_, ScalarType), "the checker lets no cooperative matrix be a parameter"
    try:
        return BoundArgument({("scalar", 0): scalar_argument(type_, value)})
    except (TypeError, ValueError, OverflowError):
        raise place.error(f"a value of {type_}", describe(value)) from None


class Binder:
    """Converts the arguments for one parameter.

    Arrays of the same element type, shape and strides have the same extents, which are cached; alignment and
    writability, which may differ between such arrays, are checked in every call.

    Args:
        place: The parameter.
        parameters: Its C parameters.

    Attributes:
        known: Cached extents and strides, by `common_layout`, or as `DeviceFunction.quick` gives it.
        flags: Flags that an array must have in addition to a known layout.
        align: Its alignment in bytes.
    """

    def __init__(self, place: ArgumentPlace, parameters: Iterable[CParameter]) -> None:
        self.known: dict[Any, tuple[int, ...]] = {}
        self.flags = ALIGNED | (WRITEABLE if place.written else 0)
        self._place, type_ = place, place.parameter.type.type
        self.align = max(dtype_of(type_.element).alignment if isinstance(type_, MemrefType) else 1, _alignment(place))
        self._keys = [(c.role, c.mode) for c in parameters]
        self._is_memref = isinstance(type_, MemrefType)

    def on_device(
        self, value: Any, offset: int, copies: HostCopies, function: DeviceFunction
    ) -> Callable[[], list[Any]]:
        """Check an argument for a device, and note which arrays have to be copied there.

        Args:
            value: The argument, an array of numpy or of the device, or a list of them.
            offset: As for `look`.
            copies: Copies the arrays of numpy.
            function: The function that is called.

        Returns:
            What copies, when all arguments are known, and returns the values: numbers, and addresses on the device.

        Raises:
            ArgumentError: It does not fit.
        """
        quick = function.quick(value, copies.stream) if self._is_memref else None
        if quick is not None and quick[1] in self.known and not quick[0] % self.align:
            values = [quick[0], *self.known[quick[1]]]
            return lambda: values
        members = list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else None
        known: dict[int, int] = {}

        def standing_for(one: Any) -> Any:
            array = None if one is None or isinstance(one, np.ndarray) else function.array_of(one, copies.stream)
            if array is None:
                return cast("Any", one)
            copies.take(array)
            view = as_numpy(array)
            known[array_address(view)] = array.address
            return view

        value = standing_for(value) if members is None else [standing_for(member) for member in members]
        bound = bind(self._place, value, offset)
        if quick is not None:
            self._remember(quick[1], [bound.values[key] for key in self._keys])
        copies.keep.append(bound)
        for array in bound.keep:
            if array is not None and array_address(array) not in known:
                copies.add(array, written=self._place.written, whole=self._moves(offset))

        def address_of(array: Any) -> int:
            return 0 if array is None else known.get(array_address(array)) or copies.address_of(array)

        def passed() -> list[Any]:
            values: list[Any] = []
            for key in self._keys:
                one = bound.values[key]
                if key[0] == "pointer":
                    one = address_of(bound.keep[0] if bound.keep else None)
                elif key[0] == "pointers" and isinstance(one, np.ndarray):
                    one = copies.table(np.array([address_of(member) for member in bound.keep], np.uintp))
                elif key[0] in ("shapes", "strides") and isinstance(one, np.ndarray):
                    one = copies.table(cast("Array", one))
                values.append(one)
            return values

        return passed

    def _moves(self, offset: int) -> bool:
        """Whether the kernel accesses what is an offset away from the arrays of a group."""
        type_ = self._place.parameter.type.type
        return isinstance(type_, GroupType) and (offset if type_.offset is None else type_.offset) != 0

    def look(self, value: Any, offset: int, passed: list[Any]) -> BoundArgument:
        """Check an argument in full, and append its values: numbers and addresses.

        Args:
            value: The argument.
            offset: For groups whose offset is `?`: elements added to each address.
            passed: The list to which they are appended.

        Returns:
            The converted argument, which must live until the call returns.

        Raises:
            ArgumentError: It does not fit.
        """
        bound = bind(self._place, value, offset)
        values = [bound.values[key] for key in self._keys]
        passed += [array_address(cast("Array", one)) if isinstance(one, np.ndarray) else one for one in values]
        if self._is_memref and type(value) is np.ndarray:
            self._remember(common_layout(value), values)
        return bound

    def _remember(self, layout: Hashable, values: Sequence[Any]) -> None:
        """Remember the extents and strides of arrays of some layout, which follow the address."""
        if len(self.known) >= _MOST_LAYOUTS:
            self.known.clear()
        self.known[layout] = tuple(values[1:])


_FLOATS: Final = {str(type_): type_ for type_ in (BFLOAT, HALF, FLOAT, DOUBLE)}


def as_numpy(array: DeviceArray) -> Array:
    """An array of a device as one of numpy, whose elements must not be accessed: to check its shape and strides."""
    element = _FLOATS.get(array.element) or (IntType(array.element_bytes * 8) if array.element else None)
    dtype = np.dtype(f"V{array.element_bytes}") if element is None else numpy_type(element)
    plain = np.dtype(f"u{array.element_bytes}")
    interface = {"version": 3, "data": (array.address, False), "shape": array.shape, "typestr": plain.str}
    view = np.asarray(SimpleNamespace(__array_interface__=interface | {"strides": array.strides}))
    return cast("Array", view.view(dtype))


def common_layout(array: Array) -> Any:
    """The properties of an array that determine its extents and strides."""
    return array.dtype, array.shape, array.strides


def _alignment(place: ArgumentPlace) -> int:
    """The alignment in bytes that the parameter's attribute promises; 0 if it has none."""
    alignment = place.parameter.attributes.get("alignment")
    return alignment.value if alignment is not None and isinstance(alignment.value, int) else 0


def describe(value: object) -> str:
    """A value, as described in errors."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return f"{array.dtype} array of shape {array.shape}"
    return f"{type(value).__name__} {value!r}"[:80]


_Extents = dict[tuple[str, int], int]


def _group(place: ArgumentPlace, type_: GroupType, value: Any, offset: int) -> BoundArgument:
    if value is None:
        return _null_group(place, type_)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise place.error("a list of arrays", describe(value))
    members: list[Any] = list(cast("Iterable[Any]", value))
    if type_.size is not None and len(members) != type_.size:
        raise place.error(f"{type_.size} arrays", str(len(members)))
    offset = offset if type_.offset is None else type_.offset
    addresses: list[int] = []
    extents: list[_Extents] = []
    checked: dict[Any, _Extents] = {}
    quick = not offset and not _alignment(place)
    flags = ALIGNED | (WRITEABLE if place.written else 0)
    for k, member in enumerate(members):
        alike = quick and type(member) is np.ndarray and member.flags.num & flags == flags
        key = common_layout(member) if alike else None
        member_extents = checked.get(key)
        if member_extents is None:
            at = ArgumentPlace(place.position, place.parameter, place.written, place.tested, k)
            address, member_extents = _memref(at, type_.memref, member, offset)
        else:
            address = array_address(member)
        if key is not None:
            checked[key] = member_extents
        addresses.append(address)
        extents.append(member_extents)
    values: dict[tuple[str, int], Any] = {("size", 0): len(members), ("offset", 0): offset}
    values["pointers", 0] = np.array(addresses, np.uintp)
    for role, all_ in _roles(type_.memref):
        for mode, extent in enumerate(all_):
            if extent is None:
                values[f"{role}s", mode] = np.array([member[role, mode] for member in extents], np.int64)
    return BoundArgument(values, members)


def _null_group(place: ArgumentPlace, type_: GroupType) -> BoundArgument:
    if not place.tested:
        raise place.error("a list of arrays", "None, though the kernel does not test it with 'associated'")
    values: dict[tuple[str, int], Any] = {("pointers", 0): 0, ("size", 0): 0, ("offset", 0): 0}
    for role, extents in _roles(type_.memref):
        values |= {(f"{role}s", mode): 0 for mode in range(len(extents))}
    return BoundArgument(values)


def _roles(type_: MemrefType) -> tuple[tuple[str, tuple[Extent, ...]], ...]:
    return (("shape", type_.shape), ("stride", type_.stride))


def _memref(place: ArgumentPlace, type_: MemrefType, value: Any, offset: int) -> tuple[int, _Extents]:
    """Address and extents of an array; the kernel accesses it `offset` elements further."""
    if value is None:
        return _null(place, type_)
    array = _checked_array(place, type_, value)
    strides = _strides(place, type_, array)
    _check_attributes(place, array, strides)
    if offset:
        _check_offset(place, array, strides, offset)
    extents = {("shape", mode): extent for mode, extent in enumerate(array.shape)}
    return array_address(array), extents | {("stride", mode): stride for mode, stride in enumerate(strides)}


def _null(place: ArgumentPlace, type_: MemrefType) -> tuple[int, _Extents]:
    if not place.tested:
        raise place.error("a numpy array", "None, though the kernel does not test it with 'associated'")
    extents: _Extents = {("shape", mode): extent or 0 for mode, extent in enumerate(type_.shape)}
    return 0, extents | {("stride", mode): stride or 1 for mode, stride in enumerate(type_.stride)}


def _checked_array(place: ArgumentPlace, type_: MemrefType, value: Any) -> Array:
    dtype = dtype_of(type_.element)
    if not isinstance(value, np.ndarray):
        raise place.error(f"a numpy array of {dtype}", describe(value))
    array = cast("Array", value)
    if array.dtype != dtype:
        raise place.error(f"elements of {dtype}", describe(array))
    if array.ndim != type_.order:
        raise place.error(f"{type_.order} modes", describe(array))
    for mode, (extent, got) in enumerate(zip(type_.shape, array.shape, strict=True)):
        if extent not in (None, got):
            raise place.error(f"an extent of {extent} in mode {mode}", describe(array))
    if place.written and not array.flags.writeable:
        raise place.error("a writable array, since the kernel stores to it", "a read-only one")
    if not array.flags.aligned:
        raise place.error(f"an array aligned as {dtype} is", "one that is not")
    return array


def _strides(place: ArgumentPlace, type_: MemrefType, array: Array) -> list[int]:
    """The stride of each mode in elements; for a mode with at most one index that of the type."""
    strides: list[int] = []
    packed = 1
    for mode, (expected, step) in enumerate(zip(type_.stride, array.strides, strict=True)):
        stride = expected or packed if array.shape[mode] <= 1 or array.size == 0 else _elements(place, array, step)
        if expected is not None and expected != stride:
            raise place.error(f"a stride of {counted(expected, 'element')} in mode {mode}", f"{stride}{_advice(array)}")
        if stride < packed:
            least = f"a stride of at least {counted(packed, 'element')} in mode {mode}" if mode else "a positive stride"
            raise place.error(least, f"{stride}{_advice(array)}")
        strides.append(stride)
        packed = stride * max(1, array.shape[mode])
    return strides


def _elements(place: ArgumentPlace, array: Array, step: int) -> int:
    if step % array.itemsize:
        raise place.error(f"strides of whole elements ({array.itemsize} bytes)", f"strides of {array.strides} bytes")
    return step // array.itemsize


def _advice(array: Array) -> str:
    if array.ndim < 2 or not array.flags.c_contiguous:
        return ""
    return "; memrefs are column-major: make the array with order='F', or pass a transpose"


def _check_attributes(place: ArgumentPlace, array: Array, strides: list[int]) -> None:
    """Check the promises of the parameter's attributes."""
    attributes = place.parameter.attributes
    alignment = _alignment(place)
    if alignment and array_address(array) % alignment:
        raise place.error(f"an array aligned to {alignment} bytes", f"one at {array_address(array):#x}")
    _check_divisors(place, attributes.get("shape_gcd"), array.shape, "extent")
    _check_divisors(place, attributes.get("stride_gcd"), strides, "stride")


def _check_divisors(place: ArgumentPlace, divisors: Attribute | None, extents: Iterable[int], what: str) -> None:
    if divisors is None or not isinstance(divisors.value, tuple):
        return
    for mode, (divisor, extent) in enumerate(zip(divisors.value, extents, strict=False)):
        if isinstance(divisor.value, int) and divisor.value and extent % divisor.value:
            raise place.error(f"a multiple of {divisor.value} as {what} of mode {mode}", str(extent))


def _check_offset(place: ArgumentPlace, array: Array, strides: list[int], offset: int) -> None:
    """Check that the part that the kernel accesses lies in the memory of the array's base."""
    if array.size == 0:
        return
    start = array_address(array) + offset * array.itemsize
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, strides, strict=True))
    low, high = memory_bounds(array)
    if start < low or start + (last + 1) * array.itemsize > high:
        raise place.error(f"an array whose memory goes on for {offset} elements more", "one that ends before")


_FORMATS: Final = {"f16": struct.Struct("<e"), "f32": struct.Struct("<f"), "f64": struct.Struct("<d")}
_INFINITE: Final = 0x7F80  # of bf16
_DTYPES: Final[dict[str, Any]] = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c32": np.complex64,
    "c64": np.complex128,
}


def dtype_of(type_: ScalarType) -> np.dtype[Any]:
    """The element type of arrays for a memref; for bf16 that of ml_dtypes, or uint16 without it."""
    if type_.name != "bf16":
        return np.dtype(_DTYPES[type_.name])
    dtype = numpy_type(BFLOAT)
    return dtype if dtype.itemsize == 2 else np.dtype(np.uint16)


def scalar_argument(type_: ScalarType, value: Any) -> Any:
    """A number in the form of the compiled function: bits for bf16 and f16, an array of two parts for complex types.

    Raises:
        TypeError: It is not a number of that kind.
        OverflowError: The type has no such value.
    """
    number = number_of_kind(value, type_)
    if isinstance(number, complex):
        parts = [_rounded(type_.part, number.real), _rounded(type_.part, number.imag)]
        return np.array(parts, _DTYPES[type_.part.name])
    if isinstance(number, float):
        return _bits(type_, number) if type_.is_narrow_float else _rounded(type_, number)
    return number


def _rounded(type_: ScalarType, number: float) -> float:
    """A number rounded to f16, f32 or f64; overflow raises an OverflowError in `struct`."""
    form = _FORMATS[type_.name]
    return form.unpack(form.pack(number))[0]


def _bits(type_: ScalarType, number: float) -> int:
    """The bits of a 16-bit number, as a signed integer."""
    if type_.name == "f16":
        return int.from_bytes(_FORMATS["f16"].pack(number), "little", signed=True)
    rounded = _bfloat16(number)
    if rounded & 0x7FFF == _INFINITE and not math.isinf(number):
        raise OverflowError
    return int(np.array([rounded], np.uint16).view(np.int16)[0])


def _bfloat16(number: float) -> int:
    """The bits of the nearest bfloat16, ties to even; through f32 rounded to odd, which avoids double rounding."""
    with np.errstate(over="ignore"):
        single = np.float32(number)
    bits = int(np.array([single]).view(np.uint32)[0])
    if math.isnan(number):
        return (bits >> 16) | 0x40
    if math.isfinite(number) and float(single) != number:
        away = abs(float(single)) > abs(number)
        bits = (bits - 1 if away else bits) | 1
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


Groups = SupportsIndex | Sequence[SupportsIndex]
_MAX_GROUPS: Final = 1 << 62


class CompiledKernel:
    """A kernel that can be called.

    Attributes:
        function: Its syntax tree.
    """

    def __init__(self, function: Function, call: CompiledFunction) -> None:
        self.function = function
        self._call = call
        used = parameter_uses(function)
        parameters = c_parameters(function, one_group=False)
        self._names = [p.name.text for p in function.parameters]
        self._binders = [
            Binder(
                ArgumentPlace(k, p, k in used.written, k in used.tested), [c for c in parameters if c.parameter == k]
            )
            for k, p in enumerate(function.parameters)
        ]
        self._offsets = {
            f"{p.name.text}_offset": k
            for k, p in enumerate(function.parameters)
            if isinstance(p.type.type, GroupType) and p.type.type.offset is None
        }
        self.__doc__ = signatures(Program([function]))

    def __repr__(self) -> str:
        parameters = ", ".join(f"{p.name}: {p.type}" for p in self.function.parameters)
        return f"<compiled @{self.function.name.text}({parameters})>"

    def __call__(self, *arguments: Any, groups: Groups = 1, **named: Any) -> None:
        """Run the kernel.

        Args:
            arguments: An array for a memref, a list of arrays for a group, a number for a scalar.
            groups: The number of work-groups along x, or along x, y and z.
            named: Arguments by the parameters' names; for a group `%A` with a dynamic offset also `A_offset`, which is
                0 by default.

        Raises:
            ArgumentError: An argument does not fit.
        """
        counts = _counts(groups)
        offsets = self._taken_offsets(named) if named else {}
        values = self._ordered(arguments, named)
        passed: list[Any] = []
        bound: list[BoundArgument] = []
        for k, (value, binder) in enumerate(zip(values, self._binders, strict=True)):
            if type(value) is np.ndarray and value.flags.num & binder.flags == binder.flags:
                known = binder.known.get(common_layout(value))
                address = array_address(value)
                if known is not None and not address % binder.align:
                    passed.append(address)
                    passed += known
                    continue
            bound.append(binder.look(value, offsets.get(k, 0), passed))
        self._call.unchecked(*passed, *counts)
        del bound  # until here it keeps the memory alive that the code accesses

    def _taken_offsets(self, named: dict[str, Any]) -> dict[int, int]:
        """The offsets of groups, taken out of the named arguments."""
        return {self._offsets[n]: _offset(n, named.pop(n)) for n in [*named] if n in self._offsets}

    def _ordered(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Sequence[Any]:
        """The arguments in the order of the parameters."""
        names = self._names
        if not named and len(arguments) == len(names):
            return arguments
        listed = ", ".join(f"%{name}" for name in names)
        kernel = f"@{self.function.name.text} takes {counted(len(names), 'argument')} ({listed})"
        if unknown := [name for name in named if name not in names]:
            raise ArgumentError(f"{kernel}, none of them called {unknown[0]}")
        if twice := [name for name in names[: len(arguments)] if name in named]:
            raise ArgumentError(f"{kernel}, got %{twice[0]} twice")
        missing = [name for name in names[len(arguments) :] if name not in named]
        if len(arguments) > len(names) or missing:
            got = f"got {len(arguments) + len(named)}"
            raise ArgumentError(f"{kernel}, {f'%{missing[0]} is missing' if named else got}")
        return [*arguments, *(named[name] for name in names[len(arguments) :])]


class DeviceKernel(CompiledKernel):
    """A kernel for a device, which takes arrays in its memory, and numpy arrays, which are copied."""

    def __init__(self, function: Function, call: DeviceFunction) -> None:
        super().__init__(function, call)
        self._on_device = call

    def __call__(
        self,
        *arguments: Any,
        groups: Groups = 1,
        stream: object = None,
        wait_for: object = None,
        record: object = None,
        **named: Any,
    ) -> None:
        """Run the kernel; the call waits for it only if numpy arrays are copied.

        Args:
            arguments: As for `CompiledKernel`, or arrays of the device.
            groups: The number of work-groups along x, or along x, y and z.
            stream: The stream in whose order the kernel runs and memory is copied.
            wait_for: An event, or a sequence of events, after which they do.
            record: An event, or a sequence of events, to record behind them.
            named: As for `CompiledKernel`.

        Raises:
            ArgumentError: An argument does not fit.
            TlxError: The device refuses the kernel.
        """
        counts = _counts(groups)
        offsets = self._taken_offsets(named)
        values = self._ordered(arguments, named)
        function = self._on_device
        handle = stream_handle(stream)
        code = function.device
        with between_events(code, handle, wait_for, record), code.current(), HostCopies(code, handle) as copies:
            checked = [
                binder.on_device(value, offsets.get(k, 0), copies, function)
                for k, (value, binder) in enumerate(zip(values, self._binders, strict=True))
            ]
            passed = [value for values_of in checked for value in values_of()]
            function.launch([*passed, *counts], handle)


def _compiled_kernel(function: Function, call: CompiledFunction) -> CompiledKernel:
    return DeviceKernel(function, call) if isinstance(call, DeviceFunction) else CompiledKernel(function, call)


class CompiledKernels(Namespace[CompiledKernel]):
    """Compiled kernels, as attributes, or as items if the name is no Python identifier.

    Attributes:
        program: The syntax tree.
        lowered: The LLVM IR that was compiled.
    """

    def __init__(self, program: Program, compiled: compiler.CompiledModule) -> None:
        self.program = program
        self.lowered = compiled.lowered
        super().__init__({f.name.text: _compiled_kernel(f, compiled[f.name.text]) for f in program.functions})

    def __getitem__(self, name: str) -> CompiledKernel:
        """The kernel of that name.

        Raises:
            UsageError: There is none.
        """
        if name not in self._named:
            known = ", ".join(f"@{known}" for known in self._named) or "none"
            raise UsageError(f"there is no kernel @{name}; the program has {known}")
        return self._named[name]


def compile(  # noqa: A001 (named as tlx.compile)
    source: str | os.PathLike[str] | Program | Kernel,
    target: Target | str = "native",
    *,
    std: Standard = "v2",
    threads: Threads = "none",
    opt_level: int = 2,
    options: Options | None = None,
) -> CompiledKernels:
    """Compile kernels; the result has a function for each, which takes numpy arrays, and for a GPU also its arrays.

    Args:
        source: A text, the path of a file, a syntax tree, or a kernel written in Python.
        target: The target, which must run on this machine; a target or its name, such as "nvidia".
        std: Version of the language that a text is written in.
        threads: The library that runs work-groups in parallel on a CPU; a GPU needs none.
        opt_level: LLVM's optimisation level, 0 to 3.
        options: How to lower.

    Raises:
        TlxError: The source is wrong, or cannot be lowered.
    """
    program, name = _program(source, std)
    module = emitted(program, threads=grid_of(target) or threads, name=name)
    compiled = compiler.compile(module, target, opt_level=opt_level, options=options)
    return CompiledKernels(program, compiled)


def _program(source: str | os.PathLike[str] | Program | Kernel, std: Standard) -> tuple[Program, str]:
    """The syntax tree of a source, and its name in diagnostics."""
    if isinstance(source, Program):
        return source, "<program>"
    from tlx.frontends.tensor_language.builder.kernel import Kernel

    if isinstance(source, Kernel):
        return Program([source.function]), f"@{source.name}"
    if isinstance(source, str) and ("\n" in source or "{" in source or not source):
        return parse(source, std=std), "<string>"
    from tlx.api import files

    path = os.fspath(source)
    return parse(files.decode(files.read_bytes(path), path, hint=""), path, std=std), path


def _counts(groups: Groups) -> tuple[int, int, int]:
    """Numbers of work-groups along x, y and z."""
    if type(groups) is int and 0 <= groups < _MAX_GROUPS:
        return groups, 1, 1
    entries: Sequence[SupportsIndex] = groups if isinstance(groups, Sequence) else (groups,)
    try:
        counts = [operator.index(count) for count in entries]
    except TypeError:
        raise ArgumentError(f"groups: expected up to three integers, got {describe(groups)}") from None
    if not 1 <= len(counts) <= 3 or not all(0 <= count < _MAX_GROUPS for count in counts):
        raise ArgumentError(f"groups: expected up to three numbers of work-groups, got {describe(groups)}")
    x, y, z = [*counts, 1, 1][:3]
    return x, y, z


def _offset(name: str, value: Any) -> int:
    try:
        offset = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: expected a number of elements, got {describe(value)}") from None
    if offset < 0:
        raise ArgumentError(f"{name}: expected a number of elements that is not negative, got {offset}")
    return offset
