"""What a compiled kernel is called with: numpy arrays and numbers, checked and taken apart into its C parameters.

    A: memref<f32x8x?>                 an array of shape (8, n)   ->  address, n, stride of mode 1 in elements
    B: group<memref<f32x?>x?>          a list of n vectors        ->  addresses, extents, n
    c: c32                             1+2j                       ->  two floats

Machine code trusts its arguments; a wrong one would crash the process or return nonsense. So each is compared with the
parameter's type and attributes, and an error names both sides. Arrays are never copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from tlx.calls import ALIGNED, WRITEABLE, ArgumentError, Array, address_of
from tlx.frontends.tensor_language.ast.base import Attribute, Parameter
from tlx.frontends.tensor_language.scalars import dtype_of, passed_scalar
from tlx.frontends.tensor_language.signature import CParameter
from tlx.frontends.tensor_language.types import Extent, GroupType, MemrefType, ScalarType
from tlx.frontends.tensor_language.wording import counted

_MOST_LAYOUTS: Final = 256


@dataclass(slots=True)
class Bound:
    """An argument as a kernel takes it.

    Attributes:
        values: What each C parameter of it is given, by role and mode.
        keep: What must live as long as the call runs.
    """

    values: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any])
    keep: list[Any] = field(default_factory=list[Any])


@dataclass(frozen=True, slots=True)
class Place:
    """Which argument of a call is looked at.

    Attributes:
        position: Its position.
        parameter: The parameter.
        written: Whether the kernel changes its memory.
        tested: Whether the kernel asks if it is null.
        member: Position in a group, None where it is no member.
    """

    position: int
    parameter: Parameter
    written: bool
    tested: bool
    member: int | None = None

    def error(self, expected: str, got: str) -> ArgumentError:
        """The error that tells both sides."""
        member = "" if self.member is None else f", member {self.member}"
        name = f"argument {self.position} ({self.parameter.name}: {self.parameter.type}){member}"
        return ArgumentError(f"{name}: expected {expected}, got {got}")


def bind(place: Place, value: Any, offset: int = 0) -> Bound:
    """Check an argument and take it apart.

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
        return Bound({("pointer", 0): address, **extents}, [value])
    assert isinstance(type_, ScalarType), "the checker lets no cooperative matrix be a parameter"
    try:
        return Bound({("scalar", 0): passed_scalar(type_, value)})
    except (TypeError, ValueError, OverflowError):
        raise place.error(f"a value of {type_}", described(value)) from None


class Binder:
    """Takes the arguments for one parameter apart, one call after the other.

    Arrays of the same element type, shape and strides have the same extents, so those are worked out once; what may
    differ between such arrays (whether they are aligned and can be written) is looked at in every call.

    Args:
        place: The parameter.
        taken: What C parameters it becomes.

    Attributes:
        known: Extents and strides that the kernel is given, by `layout`.
        flags: Flags that an array must have, beyond a known layout.
        align: Bytes that its address must be a multiple of.
    """

    def __init__(self, place: Place, taken: Iterable[CParameter]) -> None:
        self.known: dict[Any, tuple[int, ...]] = {}
        self.flags = ALIGNED | (WRITEABLE if place.written else 0)
        self.align = max(1, _alignment(place))
        self._place = place
        self._keys = [(c.role, c.mode) for c in taken]
        self._is_memref = isinstance(place.parameter.type.type, MemrefType)

    def look(self, value: Any, offset: int, taken: list[Any]) -> Bound:
        """Look at an argument closely, and append what the kernel takes of it: numbers and addresses.

        Args:
            value: The argument.
            offset: For groups whose offset is `?`: elements added to each address.
            taken: Where that goes.

        Returns:
            What must live as long as the call.

        Raises:
            ArgumentError: It does not fit.
        """
        bound = bind(self._place, value, offset)
        values = [bound.values[key] for key in self._keys]
        taken += [address_of(cast("Array", one)) if isinstance(one, np.ndarray) else one for one in values]
        if self._is_memref and type(value) is np.ndarray:
            if len(self.known) >= _MOST_LAYOUTS:
                self.known.clear()
            self.known[layout(value)] = tuple(values[1:])
        return bound


def layout(array: Array) -> Any:
    """What arrays have in common that a kernel is given the same extents for."""
    return array.dtype, array.shape, array.strides


def _alignment(place: Place) -> int:
    """The alignment in bytes that the parameter's attribute promises; 0 if it has none."""
    alignment = place.parameter.attributes.get("alignment")
    return alignment.value if alignment is not None and isinstance(alignment.value, int) else 0


def described(value: object) -> str:
    """A value in the words of an error."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return f"{array.dtype} array of shape {array.shape}"
    return f"{type(value).__name__} {value!r}"[:80]


_Extents = dict[tuple[str, int], int]


def _group(place: Place, type_: GroupType, value: Any, offset: int) -> Bound:
    if value is None:
        return _null_group(place, type_)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise place.error("a list of arrays", described(value))
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
        key = layout(member) if alike else None
        found = checked.get(key)
        if found is None:
            at = Place(place.position, place.parameter, place.written, place.tested, k)
            address, found = _memref(at, type_.memref, member, offset)
        else:
            address = address_of(member)
        if key is not None:
            checked[key] = found
        addresses.append(address)
        extents.append(found)
    values: dict[tuple[str, int], Any] = {("size", 0): len(members), ("offset", 0): offset}
    values["pointers", 0] = np.array(addresses, np.uintp)
    for role, all_ in _roles(type_.memref):
        for mode, extent in enumerate(all_):
            if extent is None:
                values[f"{role}s", mode] = np.array([found[role, mode] for found in extents], np.int64)
    return Bound(values, members)


def _null_group(place: Place, type_: GroupType) -> Bound:
    if not place.tested:
        raise place.error("a list of arrays", "None, though the kernel does not ask by 'associated'")
    values: dict[tuple[str, int], Any] = {("pointers", 0): 0, ("size", 0): 0, ("offset", 0): 0}
    for role, extents in _roles(type_.memref):
        values |= {(f"{role}s", mode): 0 for mode in range(len(extents))}
    return Bound(values)


def _roles(type_: MemrefType) -> tuple[tuple[str, tuple[Extent, ...]], ...]:
    return (("shape", type_.shape), ("stride", type_.stride))


def _memref(place: Place, type_: MemrefType, value: Any, offset: int) -> tuple[int, _Extents]:
    """Address and extents of an array; the kernel is going to look `offset` elements further."""
    if value is None:
        return _null(place, type_)
    array = _checked_array(place, type_, value)
    strides = _strides(place, type_, array)
    _check_attributes(place, array, strides)
    if offset:
        _check_offset(place, array, strides, offset)
    extents = {("shape", mode): extent for mode, extent in enumerate(array.shape)}
    return address_of(array), extents | {("stride", mode): stride for mode, stride in enumerate(strides)}


def _null(place: Place, type_: MemrefType) -> tuple[int, _Extents]:
    if not place.tested:
        raise place.error("a numpy array", "None, though the kernel does not ask by 'associated'")
    extents: _Extents = {("shape", mode): extent or 0 for mode, extent in enumerate(type_.shape)}
    return 0, extents | {("stride", mode): stride or 1 for mode, stride in enumerate(type_.stride)}


def _checked_array(place: Place, type_: MemrefType, value: Any) -> Array:
    wanted = dtype_of(type_.element)
    if not isinstance(value, np.ndarray):
        raise place.error(f"a numpy array of {wanted}", described(value))
    array = cast("Array", value)
    if array.dtype != wanted:
        raise place.error(f"elements of {wanted}", described(array))
    if array.ndim != type_.order:
        raise place.error(f"{type_.order} modes", described(array))
    for mode, (extent, got) in enumerate(zip(type_.shape, array.shape, strict=True)):
        if extent not in (None, got):
            raise place.error(f"an extent of {extent} in mode {mode}", described(array))
    if place.written and not array.flags.writeable:
        raise place.error("an array that can be written, since the kernel stores to it", "a read-only one")
    if not array.flags.aligned:
        raise place.error(f"an array aligned as {wanted} is", "one that is not")
    return array


def _strides(place: Place, type_: MemrefType, array: Array) -> list[int]:
    """The stride of each mode in elements; that of a mode with at most one index is free, and what the type wants."""
    found: list[int] = []
    packed = 1
    for mode, (wanted, step) in enumerate(zip(type_.stride, array.strides, strict=True)):
        stride = wanted or packed if array.shape[mode] <= 1 or array.size == 0 else _elements(place, array, step)
        if wanted is not None and wanted != stride:
            raise place.error(f"a stride of {counted(wanted, 'element')} in mode {mode}", f"{stride}{_advice(array)}")
        if stride < packed:
            least = f"a stride of at least {counted(packed, 'element')} in mode {mode}" if mode else "a positive stride"
            raise place.error(least, f"{stride}{_advice(array)}")
        found.append(stride)
        packed = stride * max(1, array.shape[mode])
    return found


def _elements(place: Place, array: Array, step: int) -> int:
    if step % array.itemsize:
        raise place.error(f"strides of whole elements ({array.itemsize} bytes)", f"strides of {array.strides} bytes")
    return step // array.itemsize


def _advice(array: Array) -> str:
    if array.ndim < 2 or not array.flags.c_contiguous:
        return ""
    return "; memrefs are column-major: make the array with order='F', or pass a transpose"


def _check_attributes(place: Place, array: Array, strides: list[int]) -> None:
    """What the parameter's attributes promise."""
    attributes = place.parameter.attributes
    alignment = _alignment(place)
    if alignment and address_of(array) % alignment:
        raise place.error(f"an array aligned to {alignment} bytes", f"one at {address_of(array):#x}")
    _check_divisors(place, attributes.get("shape_gcd"), array.shape, "extent")
    _check_divisors(place, attributes.get("stride_gcd"), strides, "stride")


def _check_divisors(place: Place, divisors: Attribute | None, extents: Iterable[int], what: str) -> None:
    if divisors is None or not isinstance(divisors.value, tuple):
        return
    for mode, (divisor, extent) in enumerate(zip(divisors.value, extents, strict=False)):
        if isinstance(divisor.value, int) and divisor.value and extent % divisor.value:
            raise place.error(f"a multiple of {divisor.value} as {what} of mode {mode}", str(extent))


def _check_offset(place: Place, array: Array, strides: list[int], offset: int) -> None:
    """The part that the kernel sees lies in the memory that the array is a view of."""
    if array.size == 0:
        return
    start = address_of(array) + offset * array.itemsize
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, strides, strict=True))
    low, high = _bounds(array)
    if start < low or start + (last + 1) * array.itemsize > high:
        raise place.error(f"an array whose memory goes on for {offset} elements more", "one that ends before")


def _bounds(array: Array) -> tuple[int, int]:
    """First and one past the last byte of the memory that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    steps = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    low = address_of(array) + sum(step for step in steps if step < 0)
    return low, address_of(array) + sum(step for step in steps if step > 0) + array.itemsize
