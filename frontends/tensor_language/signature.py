"""The C interface of kernels: the parameters of the compiled functions, and a C header that declares them.

    %A: memref<f32x8x?,strided<1,?>>          ->  float *A, int64_t A_shape1, int64_t A_stride1
    %B: group<memref<f32x8x?>x?,offset:?>     ->  float **B, int64_t *B_shape1, int64_t B_size, int64_t B_offset
    %c: c32                                   ->  two floats, as one vector by value

A memref is its pointer, then an i64 for each `?` of the shape and one for each `?` of the stride, left to right. A
group is a pointer to pointers, then for each `?` of shape and stride a pointer to an array with an entry each member,
then its size and its offset where they are `?`. After the kernel's own parameters come the numbers of work-groups;
the function that runs one work-group takes its id before them.

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

The header is valid C11 and C++. A kernel may have a name that C cannot spell; its declaration then gives the symbol in
an `__asm__` label.

    func @scale(%alpha: f32, %A: memref<f32x8x?>) { ... }
    ->
    /* @scale
     *
     *   alpha         %alpha: f32
     *   A             %A: memref<f32x8x?>, address of its first element
     *   A_shape1      %A: extent of mode 1, elements
     *   num_groups_x  number of work-groups along x
     *   ...
     */
    void scale(float alpha, float *A, int64_t A_shape1, int64_t num_groups_x, ...);

    /* One work-group of @scale ... */
    void scale_group(...) __asm__("scale.group");
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from tlx.frontends.tensor_language.analysis.uses import parameter_uses
from tlx.frontends.tensor_language.syntax.nodes import GROUPS_WITHOUT_SIZE, Function, Program
from tlx.frontends.tensor_language.types import I64, Extent, GroupType, MemrefType, ScalarType, Type

Role = Literal["scalar", "pointer", "pointers", "shape", "stride", "shapes", "strides", "size", "offset", "launch"]

_IDS: Final = ("group_id_x", "group_id_y", "group_id_z")
_COUNTS: Final = ("num_groups_x", "num_groups_y", "num_groups_z")
GROUP_SUFFIX: Final = ".group"

# Names that C and C++ reserve: keywords, types that the header uses, predefined macros.
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
        role: Its meaning. `pointer` and `pointers` point to elements of `type`, `shapes` and `strides` to i64
            with one entry each member of a group; all others are passed by value.
        type: The scalar type passed or pointed to.
        parameter: Position of the kernel's parameter, -1 for ids and numbers of work-groups.
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
        one_group: Whether the function runs one work-group or all of them.
    """
    names = unique_names([p.name.text for p in function.parameters], "arg")
    parameters = [
        c
        for i, (p, name) in enumerate(zip(function.parameters, names, strict=True))
        for c in _flattened(name, i, p.type.type)
        if c.role != "size" or not function.attributes.is_set(GROUPS_WITHOUT_SIZE)
    ]
    launch = (*_IDS, *_COUNTS) if one_group else _COUNTS
    parameters += [CParameter(name, "launch", I64, -1, i % 3) for i, name in enumerate(launch)]
    return _with_unique_names(parameters, set(names))


def function_names(program: Program) -> list[tuple[str, str]]:
    """For each kernel the C identifiers of the function that runs all work-groups and of the one that runs one."""
    names = [function.name.text for function in program.functions]
    kernels = unique_names(names, "kernel")
    used = set(kernels)
    groups = [_free(f"{_spelled(name, 'kernel')}_group", used) for name in names]
    return list(zip(kernels, groups, strict=True))


def unique_names(names: list[str], prefix: str) -> list[str]:
    """Identifiers of the language as different identifiers of C: `%A` is `A`, `%0` is `arg0`, `%int` is `int_`."""
    used = {name for name in names if _is_c_name(name)}
    return [name if _is_c_name(name) else _free(_spelled(name, prefix), used) for name in names]


def _spelled(name: str, prefix: str) -> str:
    """A name that starts with a letter."""
    return f"{prefix}{name}" if name.isdigit() else name


def _is_c_name(name: str) -> bool:
    return not name.isdigit() and name not in _RESERVED


def _free(name: str, used: set[str]) -> str:
    """The name, or a similar one that is free; it is reserved."""
    while name in used or name in _RESERVED:
        name += "_"
    used.add(name)
    return name


def _with_unique_names(parameters: list[CParameter], used: set[str]) -> list[CParameter]:
    """Parameters keep their names; generated ones such as `A_shape1` are renamed if they collide."""
    own = ("scalar", "pointer", "pointers")
    return [c if c.role in own else replace(c, name=_free(c.name, used)) for c in parameters]


def _flattened(name: str, position: int, type_: Type) -> list[CParameter]:
    if isinstance(type_, MemrefType):
        return [CParameter(name, "pointer", type_.element, position), *_extents(name, position, type_, grouped=False)]
    if isinstance(type_, GroupType):
        parameters = [CParameter(name, "pointers", type_.memref.element, position)]
        parameters += _extents(name, position, type_.memref, grouped=True)
        if type_.size is None:
            parameters.append(CParameter(f"{name}_size", "size", I64, position))
        if type_.offset is None:
            parameters.append(CParameter(f"{name}_offset", "offset", I64, position))
        return parameters
    assert isinstance(type_, ScalarType), "the checker lets no cooperative matrix be a parameter"
    return [CParameter(name, "scalar", type_, position)]


def _extents(name: str, position: int, type_: MemrefType, *, grouped: bool) -> list[CParameter]:
    def dynamic(role: Role, word: str, extents: tuple[Extent, ...]) -> list[CParameter]:
        return [CParameter(f"{name}_{word}{m}", role, I64, position, m) for m, e in enumerate(extents) if e is None]

    shape: Role = "shapes" if grouped else "shape"
    stride: Role = "strides" if grouped else "stride"
    return dynamic(shape, "shape", type_.shape) + dynamic(stride, "stride", type_.stride)


def llvm_name(function: Function, suffix: str = "") -> str:
    """The LLVM name of a kernel's function, without `@`; numbers are quoted, as they denote unnamed functions."""
    name = function.name.text + suffix
    return f'"{name}"' if name[0].isdigit() else name


_C_TYPES: Final = {
    "bool": "bool",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "index": "int64_t",
    "bf16": "tlx_bf16",
    "f16": "tlx_f16",
    "f32": "float",
    "f64": "double",
    "c32": "tlx_c32",
    "c64": "tlx_c64",
}

_SCALARS: Final = """\
#ifndef TLX_SCALARS
#define TLX_SCALARS
typedef uint16_t tlx_bf16;                                    /* the bits of a bfloat16 */
typedef uint16_t tlx_f16;                                     /* the bits of an IEEE binary16 */
typedef float tlx_c32 __attribute__((__vector_size__(8)));   /* real and imaginary part */
typedef double tlx_c64 __attribute__((__vector_size__(16))); /* real and imaginary part */
#endif
"""

_WIDTH: Final = 120


def header(program: Program, name: str) -> str:
    """The text of a header.

    Args:
        program: A checked program.
        name: The name of the source in the header.
    """
    guard = _guard_name(name)
    prototypes = "\n".join(
        f"{_comment(function)}{_prototype(function, all_, one_group=False)}\n"
        f"/* Runs one work-group of @{function.name.text}, whose id comes before the numbers of work-groups. */\n"
        f"{_prototype(function, one, one_group=True)}"
        for function, (all_, one) in zip(program.functions, function_names(program), strict=True)
    )
    return (
        f"/* Kernels of {_in_comment(name)}. */\n"
        f"#ifndef {guard}\n#define {guard}\n\n"
        f"#include <stdbool.h>\n#include <stdint.h>\n\n{_SCALARS}\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n'
        f"{prototypes}\n"
        f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */\n"
    )


def signatures(program: Program) -> str:
    """The C prototype of each kernel, and the meaning of its parameters."""
    texts: list[str] = []
    for function, (name, _) in zip(program.functions, function_names(program), strict=True):
        lines = [f"  {left:<{_left_width(function)}}  {right}" for left, right in _meanings(function)]
        texts.append("\n".join([_prototype(function, name, one_group=False).rstrip("\n"), *lines]))
    return "\n\n".join(texts) + "\n" if texts else ""


def _guard_name(name: str) -> str:
    """A macro name derived from a file's name."""
    return "TLX_" + re.sub(r"\W", "_", name, flags=re.ASCII).upper() + "_H"


def _in_comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")


def _comment(function: Function) -> str:
    lines = [f" *   {left:<{_left_width(function)}}  {right}\n" for left, right in _meanings(function)]
    return f"/* @{function.name.text}\n *\n{''.join(lines)} */\n"


def _left_width(function: Function) -> int:
    return max(len(left) for left, _ in _meanings(function))


def _meanings(function: Function) -> list[tuple[str, str]]:
    return [(c.name, _description(c, function)) for c in c_parameters(function, one_group=False)]


def _description(c: CParameter, function: Function) -> str:
    if c.role == "launch":
        return f"number of work-groups along {'xyz'[c.mode]}"
    parameter = function.parameters[c.parameter]
    if c.role in ("scalar", "pointer", "pointers"):
        what = {
            "scalar": "",
            "pointer": ", address of its first element",
            "pointers": ", address of each member's first element",
        }
        return f"{parameter.name}: {parameter.type}{what[c.role]}"
    what = {
        "shape": f"extent of mode {c.mode}",
        "shapes": f"extent of mode {c.mode} of each member",
        "stride": f"stride of mode {c.mode}, in elements",
        "strides": f"stride of mode {c.mode} of each member, in elements",
        "size": "number of members",
        "offset": "elements added to each member's address",
    }
    return f"{parameter.name}: {what[c.role]}"


def _prototype(function: Function, name: str, *, one_group: bool) -> str:
    symbol = function.name.text + (GROUP_SUFFIX if one_group else "")
    label = "" if name == symbol else f' __asm__("{symbol}")'
    written = parameter_uses(function).written
    parameters = [_declared(c, c.parameter in written) for c in c_parameters(function, one_group=one_group)]
    return _wrapped(f"void {name}(", parameters, f"){label};\n")


def _declared(c: CParameter, written: bool) -> str:
    type_ = c_type(c.type)
    if c.role == "pointer":
        return f"{'' if written else 'const '}{type_} *{c.name}"
    if c.role == "pointers":  # C does not convert `float **` to `const float *const *`
        return f"{type_} *const *{c.name}"
    if c.role in ("shapes", "strides"):
        return f"const {type_} *{c.name}"
    return f"{type_} {c.name}"


def c_type(type_: ScalarType) -> str:
    """A scalar type in C."""
    return _C_TYPES[type_.name]


def _wrapped(start: str, items: list[str], end: str) -> str:
    """Items separated by commas, wrapped to the width of a line."""
    lines = [start + ", ".join(items) + end]
    if len(lines[0]) <= _WIDTH:
        return lines[0]
    lines = [start.rstrip()]
    for position, item in enumerate(items):
        text = item + ("," if position < len(items) - 1 else end.rstrip("\n"))
        if len(lines) == 1 or len(lines[-1]) + len(text) + 1 > _WIDTH:
            lines.append(f"    {text}")
        else:
            lines[-1] += f" {text}"
    return "\n".join(lines) + "\n"
