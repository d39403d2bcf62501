"""The launch table: which kernels a function of the input became, and how each is launched.

The table is a constant of the lowered module, `@tlx_launches`, in JSON, so that it stays in every form of the module,
assembly included:

    {"version": 2, "functions": [{
      "name": "mlp",
      "parameters": ["ptr", "ptr", "float"],              types of the function's parameters
      "temporaries": [4096],                              bytes; each is aligned to 256
      "launches": [{                                      in order
        "kernel": "mlp_0_matmul", "grid": 64, "block": 256, "shared": 49152,       or "grid": [3, 4, 5]
        "arguments": [{"parameter": 0, "offset": 0},      a pointer, some bytes after a parameter
                      {"temporary": 0, "offset": 256},
                      {"parameter": 2},                   a scalar, passed on
                      {"parameter": 1, "offset": 0, "map": {            a tensor map, passed by value
                        "element": "bfloat",
                        "extents": [4096, 1024],          elements; the first dimension is contiguous
                        "strides": [8192],                bytes, of the other dimensions
                        "box": [64, 128],                 elements that a copy reads
                        "swizzle": 128}}]}]}]}            bytes of a line in shared memory

Pointer parameters are addresses of the device's memory, aligned to 16 bytes. `shared` is the bytes of dynamic shared
memory. Grids and blocks have one dimension. A grid that is a list is the product of these parameters.

A tensor map describes the tensor that begins at the address. What a copy reads outside of it is zero.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

SYMBOL: Final = "tlx_launches"
VERSION: Final = 2
ALIGNMENT: Final = 16
"""Alignment in bytes of the pointers that a function is passed."""
TEMPORARY_ALIGNMENT: Final = 256


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor in memory whose boxes a kernel copies to shared memory.

    Attributes:
        element: Element type in LLVM's spelling.
        extents: Extents; the first dimension is contiguous.
        strides: Bytes from an element to the next, in each dimension but the first.
        box: Extents of a box.
        swizzle: Bytes of a line of a box in shared memory, whose chunks of 16 bytes are exchanged by the line's number.
    """

    element: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


@dataclass(frozen=True, slots=True)
class LaunchArgument:
    """An argument of a kernel.

    Attributes:
        parameter: The number of the function's parameter that it is, or that it points into; None for a temporary.
        temporary: The number of the temporary that it points into.
        offset: Bytes from there; None for a scalar.
        map: What is passed instead of the pointer: the map of the tensor that it points to.
    """

    parameter: int | None = None
    temporary: int | None = None
    offset: int | None = None
    map: TensorMap | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of a kernel: blocks, threads of each, bytes of dynamic shared memory, and arguments.

    The number of blocks is known, or the product of some parameters, whose numbers are given.
    """

    kernel: str
    grid: int | tuple[int, ...]
    block: int
    shared: int
    arguments: tuple[LaunchArgument, ...]


@dataclass(frozen=True, slots=True)
class FunctionLaunches:
    """The launches of a function, in order; see the module's description."""

    name: str
    parameters: tuple[str, ...]
    temporaries: tuple[int, ...]
    launches: tuple[Launch, ...]


def to_json(functions: list[FunctionLaunches]) -> str:
    """The table as JSON."""
    table = [asdict(function) for function in functions]
    for function in table:
        for launch in function["launches"]:
            launch["arguments"] = [
                {key: value for key, value in argument.items() if value is not None} for argument in launch["arguments"]
            ]
    return json.dumps({"version": VERSION, "functions": table}, separators=(",", ":"))


def from_json(text: str) -> list[FunctionLaunches]:
    """The table in a JSON text.

    Raises:
        ValueError: It is of another version.
    """
    table = cast("dict[str, Any]", json.loads(text))
    if table["version"] != VERSION:
        message = f"launch table of version {table['version']}; this is version {VERSION}"
        raise ValueError(message)
    return [
        FunctionLaunches(
            function["name"],
            tuple(function["parameters"]),
            tuple(function["temporaries"]),
            tuple(
                Launch(
                    launch["kernel"],
                    tuple(launch["grid"]) if isinstance(launch["grid"], list) else launch["grid"],
                    launch["block"],
                    launch["shared"],
                    tuple(map(_argument, launch["arguments"])),
                )
                for launch in function["launches"]
            ),
        )
        for function in table["functions"]
    ]


def _argument(argument: dict[str, Any]) -> LaunchArgument:
    facts = argument.pop("map", None)
    if facts is None:
        return LaunchArgument(**argument)
    extents, strides, box = (tuple(facts[key]) for key in ("extents", "strides", "box"))
    return LaunchArgument(**argument, map=TensorMap(facts["element"], extents, strides, box, facts["swizzle"]))


_CONSTANT: Final = re.compile(rf'@{SYMBOL} = [^\n]*? c"([^"]*)"')


def table_of(module: str) -> list[FunctionLaunches]:
    """The launch table of a lowered module in LLVM assembly; empty if it has none."""
    match = _CONSTANT.search(module)
    if match is None:
        return []
    text = re.sub(r"\\([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), match[1])
    return from_json(text.rstrip("\0"))


def constant_text(functions: list[FunctionLaunches], qualifiers: str) -> str:
    """The definition of the table's constant.

    Args:
        functions: The table.
        qualifiers: The words before its type, such as `constant`.
    """
    data = to_json(functions) + "\0"
    spelled = "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\{ord(c):02X}" for c in data)
    return f'\n\n@{SYMBOL} = {qualifiers} [{len(data)} x i8] c"{spelled}", align 16\n'
