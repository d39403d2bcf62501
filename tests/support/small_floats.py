"""Programs that convert from and to formats of 8 bits."""

from __future__ import annotations

import re
from typing import Any, Final

import ml_dtypes
import numpy as np

from tlx.intrinsics.small_floats import E4M3, E5M2, SmallFloat

Array = np.ndarray[Any, Any]
FORMATS: Final = (E4M3, E5M2)
DTYPES: Final[dict[str, Any]] = {
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
    "float": np.float32,
    "double": np.float64,
}
MANGLED: Final = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_CALL: Final = re.compile(r"= call (?P<result>.+?) @(?P<name>llvm\.convert\.[\w.]+)\((?P<operands>.*)\)")
_VALUE: Final = re.compile(r"""\ (?:[%@][\w.]+|!"[\w.]+"|true|false)$""", re.VERBOSE)


def short_names(formats: SmallFloat | tuple[SmallFloat, ...]) -> str:
    """`e4m3-e5m2`, for names of tests."""
    return "-".join(f.short for f in (formats if isinstance(formats, tuple) else (formats,)))


def widened(name: str, vector: str, format_: SmallFloat, element: str, count: int) -> str:
    """Bytes as floats."""
    callee = f"llvm.convert.from.arbitrary.fp.v{count}{MANGLED[element]}.v{count}i8"
    return f"  %{name} = call <{count} x {element}> @{callee}(<{count} x i8> %{vector}, metadata {format_.metadata})\n"


def narrowed(name: str, vector: str, format_: SmallFloat, element: str, count: int, *, saturates: bool = False) -> str:
    """Floats as bytes."""
    callee = f"llvm.convert.to.arbitrary.fp.v{count}i8.v{count}{MANGLED[element]}"
    last = f'metadata {format_.metadata}, metadata !"round.tonearest", i1 {str(saturates).lower()}'
    return f"  %{name} = call <{count} x i8> @{callee}(<{count} x {element}> %{vector}, {last})\n"


def with_declarations(text: str) -> str:
    """The program, with the conversions that it calls declared."""
    declared: dict[str, str] = {}
    for call in _CALL.finditer(text):
        types = [_VALUE.sub("", operand) for operand in call["operands"].split(", ")]
        declared[call["name"]] = f"declare {call['result']} @{call['name']}({', '.join(types)})\n"
    return text + "".join(declared.values())


def edges(format_: SmallFloat, dtype: Any) -> Array:
    """Numbers of a type: all of the format, those between two of them, their neighbours, and others."""
    bytes_ = np.arange(256, dtype=np.uint8)
    numbers = format_.decoded(bytes_)
    finite = np.unique(np.abs(numbers[np.isfinite(numbers)]))
    middles = (finite[1:] + finite[:-1]) / 2
    beyond = [finite[-1] + (finite[-1] - finite[-2]) * step for step in (0.25, 0.5, 0.75, 1, 2)]
    others = [*beyond, finite[1] / 4, finite[1] / 1024, 65504, 3e38, 1e300, 1e-300, 1e-40, 5e-324, np.inf, np.nan]
    with np.errstate(all="ignore"):
        exact = np.concatenate([finite, middles, np.array(others)]).astype(dtype)
    width = np.dtype(dtype).itemsize
    bits = exact.view(f"u{width}")
    near = np.concatenate([bits, bits + 1, np.where(bits > 0, bits - 1, 0)]).astype(f"u{width}")
    infinity, nan = bits[-2:]
    near = near[(near <= infinity) | (near == nan)]  # numpy warns of signalling NaN
    return np.concatenate([near, near | 1 << (8 * width - 1)]).astype(f"u{width}").view(dtype)
