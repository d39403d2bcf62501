"""A C header that declares the kernels of a program.

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

It serves C11 and C++. The names of the compiled functions are those of the kernels, which C may not be able to spell:
each declaration then gives its symbol by a label.
"""

from __future__ import annotations

import re
from typing import Final

from tlx.frontends.tensor_language.analysis import parameter_uses
from tlx.frontends.tensor_language.calling.signature import GROUP_SUFFIX, CParameter, c_parameters, function_names
from tlx.frontends.tensor_language.syntax.nodes import Function, Program
from tlx.frontends.tensor_language.types import ScalarType

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


def header(program: Program, name: str, guard: str | None = None) -> str:
    """The text of a header.

    Args:
        program: A checked program.
        name: What the header says it was made from.
        guard: The macro that guards against including it twice; made of the name by default.
    """
    guard = guard or guard_name(name)
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
    """Each kernel's prototype in C, and what each parameter is."""
    parts: list[str] = []
    for function, (name, _) in zip(program.functions, function_names(program), strict=True):
        lines = [f"  {left:<{_left_width(function)}}  {right}" for left, right in _meanings(function)]
        parts.append("\n".join([_prototype(function, name, one_group=False).rstrip("\n"), *lines]))
    return "\n\n".join(parts) + "\n" if parts else ""


def guard_name(name: str) -> str:
    """A macro name made of a file's name."""
    return "TLX_" + re.sub(r"\W", "_", name, flags=re.ASCII).upper() + "_H"


def _in_comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")


def _comment(function: Function) -> str:
    lines = [f" *   {left:<{_left_width(function)}}  {right}\n" for left, right in _meanings(function)]
    return f"/* @{function.name.text}\n *\n{''.join(lines)} */\n"


def _left_width(function: Function) -> int:
    return max(len(left) for left, _ in _meanings(function))


def _meanings(function: Function) -> list[tuple[str, str]]:
    return [(c.name, _meaning(c, function)) for c in c_parameters(function, one_group=False)]


def _meaning(c: CParameter, function: Function) -> str:
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
    if c.role == "pointers":  # C converts no `float **` to `const float *const *`
        return f"{type_} *const *{c.name}"
    if c.role in ("shapes", "strides"):
        return f"const {type_} *{c.name}"
    return f"{type_} {c.name}"


def c_type(type_: ScalarType) -> str:
    """A scalar type in C."""
    return _C_TYPES[type_.name]


def _wrapped(start: str, items: list[str], end: str) -> str:
    """Items separated by commas, in lines that are not too long."""
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
