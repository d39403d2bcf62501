"""The arguments of kernels: each is checked against its parameter, and becomes C parameters.

    A: memref<f32x8x?>                 an array of shape (8, n)   ->  address, n, stride of mode 1 in elements
    B: group<memref<f32x?>x?>          a list of n vectors        ->  addresses, extents, n
    c: c32                             1+2j                       ->  two floats

Machine code trusts its arguments; a wrong one would crash the process or give wrong results. So each is checked against
the type and the attributes of the parameter. Arrays are never copied.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tlx.api.arguments import ALIGNED, WRITEABLE, ArgumentError, array_address
from tlx.api.device.functions import DeviceFunction
from tlx.api.device.host_copies import HostCopies, memory_bounds
from tlx.diagnostics import counted
from tlx.frontends.tensor_language.signature import CParameter
from tlx.frontends.tensor_language.syntax.nodes import Attribute, Parameter
from tlx.frontends.tensor_language.types import Extent, GroupType, MemrefType, ScalarType, number_of_kind
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.numpy_types import dtype_of as numpy_type
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, IntType

if TYPE_CHECKING:
    from tlx.target.grid_unit import DeviceArray

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
        cached_layouts: Extents and strides by `common_layout`, or as `DeviceFunction.address_and_layout` gives them.
        flags: Flags that an array must have in addition to a known layout.
        align: Its alignment in bytes.
    """

    def __init__(self, place: ArgumentPlace, parameters: Iterable[CParameter]) -> None:
        self.cached_layouts: dict[Any, tuple[int, ...]] = {}
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
        found = function.address_and_layout(value, copies.stream) if self._is_memref else None
        if found is not None and found[1] in self.cached_layouts and not found[0] % self.align:
            values = [found[0], *self.cached_layouts[found[1]]]
            return lambda: values
        members = list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else None
        known: dict[int, int] = {}

        def standing_for(one: Any) -> Any:
            array = None if one is None or isinstance(one, np.ndarray) else function.array_of(one, copies.stream)
            if array is None:
                return cast("Any", one)
            copies.use(array)
            view = as_numpy(array)
            known[array_address(view)] = array.address
            return view

        value = standing_for(value) if members is None else [standing_for(member) for member in members]
        bound = bind(self._place, value, offset)
        if found is not None:
            self._remember(found[1], [bound.values[key] for key in self._keys])
        copies.references.append(bound)
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
                    one = copies.copy_read_only(np.array([address_of(member) for member in bound.keep], np.uintp))
                elif key[0] in ("shapes", "strides") and isinstance(one, np.ndarray):
                    one = copies.copy_read_only(cast("Array", one))
                values.append(one)
            return values

        return passed

    def _moves(self, offset: int) -> bool:
        """Whether the kernel accesses a group's arrays at an offset."""
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
        if len(self.cached_layouts) >= _MOST_LAYOUTS:
            self.cached_layouts.clear()
        self.cached_layouts[layout] = tuple(values[1:])


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
    is_aligned = not offset and not _alignment(place)
    flags = ALIGNED | (WRITEABLE if place.written else 0)
    for k, member in enumerate(members):
        alike = is_aligned and type(member) is np.ndarray and member.flags.num & flags == flags
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
