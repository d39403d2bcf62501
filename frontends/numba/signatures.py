"""Signatures of kernels: element type and shape of each argument, and of the results where they are written.

    float32[8,16], int32[8], float32                    two arrays and a number
    float32[8](float32[8,16], float32[16])              with the result
    (float32[8], int32[8])(float32[8,16])               with two results

Element types are named as in numpy and Numba.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np

from tlx.diagnostics import Source, UsageError, did_you_mean

_TOKEN: Final = re.compile(r"\s*(?:(\w+)|(\S))")
_NAMES: Final = {
    np.dtype(name).name: np.dtype(name)
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
}
_HALVES: Final = {"float16": "float16", "half": "float16", "f2": "float16", "bfloat16": "bfloat16", "bf16": "bfloat16"}
_SHORT: Final = {"boolean": np.dtype(np.bool_), "double": np.dtype(np.float64), "float": np.dtype(np.float32)} | {
    f"{dtype.kind}{dtype.itemsize}": dtype for dtype in _NAMES.values()
}


@dataclass(frozen=True, slots=True)
class NumbaType:
    """Element type and shape of an argument or a result; a number has the shape ()."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]" if self.shape else self.dtype.name


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """The types of the arguments, and of the results if they are written."""

    arguments: tuple[NumbaType, ...]
    results: tuple[NumbaType, ...] | None = None

    def __str__(self) -> str:
        return ", ".join(map(str, self.arguments))


def parse_signature(text: str) -> KernelSignature:
    """The signature that a text describes.

    Raises:
        UsageError: It is not a valid signature; the error points into it.
    """
    return _Parser(text).signature()


class _Parser:
    def __init__(self, text: str) -> None:
        self._source = Source("<signature>", text)
        self._tokens = [(m[1] or m[2], m.start(m.lastindex or 0)) for m in _TOKEN.finditer(text)]
        self._tokens.append(("", len(text.rstrip())))
        self._next = 0

    def signature(self) -> KernelSignature:
        first = self._types("" if self._peek() != "(" else ")")
        if self._peek() == "":
            return KernelSignature(first)
        self._expect("(", "',', or '(' before the arguments")
        arguments = self._types(")")
        self._expect(")", "',' or ')'")
        self._expect("", "the end")
        return KernelSignature(arguments, first)

    def _types(self, closing: str) -> tuple[NumbaType, ...]:
        """Types separated by commas; in parentheses if the first token is one."""
        in_parentheses = self._peek() == "(" and self._take() == "("
        types: list[NumbaType] = []
        while self._peek() not in {closing, ")"} or not types:
            types.append(self._type())
            if self._peek() != ",":
                break
            self._take()
        if in_parentheses:
            self._expect(")", "',' or ')'")
        return tuple(types)

    def _type(self) -> NumbaType:
        name = self._peek()
        dtype = _NAMES.get(name) or _SHORT.get(name)
        if name in _HALVES:
            self._fail(
                f"Numba has no arrays of {_HALVES[name]} on CPUs: declare float32 and convert in the kernel, "
                f'x.astype("{_HALVES[name]}")'
            )
        if dtype is None:
            hint = did_you_mean(name, _NAMES) if name else ""
            self._fail(f"expected an element type such as float32, got {_shown(name)}{hint}")
        self._take()
        return NumbaType(dtype, self._shape() if self._peek() == "[" else ())

    def _shape(self) -> tuple[int, ...]:
        self._take()
        extents: list[int] = []
        while True:
            token = self._peek()
            if token == ":":
                self._fail("expected an extent, got ':': kernels are compiled for shapes, so write numbers: [8,16]")
            if not token.isdecimal() or not int(token):
                self._fail(f"expected an extent of 1 or more, got {_shown(token)}")
            extents.append(int(self._take()))
            if self._peek() != ",":
                break
            self._take()
        self._expect("]", "',' or ']'")
        return tuple(extents)

    def _peek(self) -> str:
        return self._tokens[self._next][0]

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][0]

    def _expect(self, token: str, words: str) -> None:
        if self._peek() != token:
            self._fail(f"expected {words}, got {_shown(self._peek())}")
        if token:
            self._take()

    def _fail(self, message: str) -> NoReturn:
        token, start = self._tokens[self._next]
        raise UsageError(f"tlx.numba: {message}", self._source.span(start, start + max(len(token), 1)))


def _shown(token: str) -> str:
    return f"'{token}'" if token else "the end"
