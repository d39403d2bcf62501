"""The calling convention: which C parameters a kernel's parameters become.

    %A: memref<f32x8x?,strided<1,?>>          ->  float *A, int64_t A_shape1, int64_t A_stride1
    %B: group<memref<f32x8x?>x?,offset:?>     ->  float **B, int64_t *B_shape1, int64_t B_size, int64_t B_offset
    %c: c32                                   ->  two floats, as one vector by value

A memref is its pointer, then an i64 for each `?` of the shape and one for each `?` of the stride, left to right. A
group is a pointer to pointers, then for each `?` of shape and stride a pointer to an array with an entry each member,
then its size and its offset where they are `?`. Behind the kernel's own parameters come the numbers of groups; the
function that runs one group takes its id before them.

A function with the attribute `"groups_without_size"=true` gets no sizes of groups: programs converted from version 1
of the language have it, whose groups have none.

How a scalar is passed, and what a pointer to it is:

    type         LLVM parameter   LLVM element   C parameter   C element   aligned to, in memory
    bool         i1 zeroext       -              bool          -           -
    i8 ... i64   i8 ... i64       i8 ... i64     int8_t ...    int8_t ...  its size
    index        i64              i64            int64_t       int64_t     8
    bf16         i16 (its bits)   bfloat         tlx_bf16      tlx_bf16    2
    f16          i16 (its bits)   half           tlx_f16       tlx_f16     2
    f32, f64     float, double    float, double  float ...     float ...   its size
    c32          <2 x float>      two floats     tlx_c32       tlx_c32     4, as C's float _Complex
    c64          <2 x double>     two doubles    tlx_c64       tlx_c64     8, as C's double _Complex

`tlx_bf16` and `tlx_f16` are uint16_t: not every C compiler has types that it passes as LLVM passes `bfloat` and `half`.
`tlx_c32` and `tlx_c64` are vectors of two: clang and GCC pass these as LLVM passes `<2 x float>` and `<2 x double>`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from tlx.frontends.tensor_language.syntax.nodes import Function, Program
from tlx.frontends.tensor_language.types import I64, Extent, GroupType, MemrefType, ScalarType, Type

Role = Literal["scalar", "pointer", "pointers", "shape", "stride", "shapes", "strides", "size", "offset", "launch"]

_IDS: Final = ("group_id_x", "group_id_y", "group_id_z")
_COUNTS: Final = ("num_groups_x", "num_groups_y", "num_groups_z")
GROUP_SUFFIX: Final = ".group"
GROUPS_WITHOUT_SIZE: Final = "groups_without_size"  # a quoted attribute of functions

# What nothing may be called in C or C++: keywords, types that the header uses, macros that are always there.
_RESERVED: Final = frozenset(
    """alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case
    catch char char16_t char32_t char8_t class co_await co_return co_yield compl concept const const_cast
    consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit
    export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public reflexpr register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch synchronized template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
    volatile wchar_t while xor xor_eq int8_t int16_t int32_t int64_t uint16_t tlx_bf16 tlx_f16 tlx_c32 tlx_c64
    NULL linux unix i386""".split()
)


@dataclass(frozen=True, slots=True)
class CParameter:
    """One parameter of the compiled function.

    Attributes:
        name: Its name in C and in the LLVM function.
        role: What it carries. `pointer` and `pointers` point to elements of `type`, `shapes` and `strides` to i64
            with one entry each member of a group; all others are passed by value.
        type: The scalar type passed or pointed to.
        parameter: Position of the kernel's parameter that it belongs to, -1 for ids and numbers of groups.
        mode: Mode of a shape or stride, or the dimension of an id or number of groups, else 0.
    """

    name: str
    role: Role
    type: ScalarType
    parameter: int
    mode: int = 0


def c_parameters(function: Function, *, one_group: bool) -> list[CParameter]:
    """The parameters of a compiled kernel.

    Args:
        function: The kernel.
        one_group: Whether of the function that runs one work-group, or of the one that runs all.
    """
    names = unique_names([p.name.text for p in function.parameters], "arg")
    found = [
        c
        for i, (p, name) in enumerate(zip(function.parameters, names, strict=True))
        for c in _flattened(name, i, p.type.type)
        if c.role != "size" or not groups_without_size(function)
    ]
    launch = (*_IDS, *_COUNTS) if one_group else _COUNTS
    found += [CParameter(name, "launch", I64, -1, i % 3) for i, name in enumerate(launch)]
    return _made_unique(found, set(names))


def function_names(program: Program) -> list[tuple[str, str]]:
    """For each kernel the C identifiers of the function that runs all work-groups and of the one that runs one."""
    names = [function.name.text for function in program.functions]
    every = unique_names(names, "kernel")
    taken = set(every)
    groups = [_free(f"{_spelled(name, 'kernel')}_group", taken) for name in names]
    return list(zip(every, groups, strict=True))


def unique_names(names: list[str], prefix: str) -> list[str]:
    """Identifiers of the language as different identifiers of C: `%A` is `A`, `%0` is `arg0`, `%int` is `int_`."""
    taken = {name for name in names if _is_c_name(name)}
    return [name if _is_c_name(name) else _free(_spelled(name, prefix), taken) for name in names]


def _spelled(name: str, prefix: str) -> str:
    """A name with a letter at its start."""
    return f"{prefix}{name}" if name.isdigit() else name


def _is_c_name(name: str) -> bool:
    return not name.isdigit() and name not in _RESERVED


def _free(name: str, taken: set[str]) -> str:
    """The name, or one close to it that is still free; it is taken then."""
    while name in taken or name in _RESERVED:
        name += "_"
    taken.add(name)
    return name


def _made_unique(parameters: list[CParameter], taken: set[str]) -> list[CParameter]:
    """`%A_shape1` keeps its name, and the entry of the dope vector of `%A` gets another."""
    own = ("scalar", "pointer", "pointers")
    return [c if c.role in own else replace(c, name=_free(c.name, taken)) for c in parameters]


def groups_without_size(function: Function) -> bool:
    """Whether nobody passes the sizes of the function's groups; it cannot ask for them then."""
    attribute = function.attributes.get(GROUPS_WITHOUT_SIZE)
    return attribute is not None and attribute.value is True


def _flattened(name: str, position: int, type_: Type) -> list[CParameter]:
    if isinstance(type_, MemrefType):
        return [CParameter(name, "pointer", type_.element, position), *_extents(name, position, type_, grouped=False)]
    if isinstance(type_, GroupType):
        found = [CParameter(name, "pointers", type_.memref.element, position)]
        found += _extents(name, position, type_.memref, grouped=True)
        if type_.size is None:
            found.append(CParameter(f"{name}_size", "size", I64, position))
        if type_.offset is None:
            found.append(CParameter(f"{name}_offset", "offset", I64, position))
        return found
    assert isinstance(type_, ScalarType), "the checker lets no cooperative matrix be a parameter"
    return [CParameter(name, "scalar", type_, position)]


def _extents(name: str, position: int, type_: MemrefType, *, grouped: bool) -> list[CParameter]:
    def dynamic(role: Role, word: str, extents: tuple[Extent, ...]) -> list[CParameter]:
        return [CParameter(f"{name}_{word}{m}", role, I64, position, m) for m, e in enumerate(extents) if e is None]

    shape: Role = "shapes" if grouped else "shape"
    stride: Role = "strides" if grouped else "stride"
    return dynamic(shape, "shape", type_.shape) + dynamic(stride, "stride", type_.stride)


def llvm_name(function: Function, suffix: str = "") -> str:
    """The name of a function for a kernel, without `@`, as LLVM reads it: numbers would be unnamed ones."""
    name = function.name.text + suffix
    return f'"{name}"' if name[0].isdigit() else name
