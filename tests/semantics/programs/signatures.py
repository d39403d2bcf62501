"""Functions of random signatures: all kinds of arguments, in all calling conventions.

    define swiftcc zeroext i8 @f7(ptr nest %out, ptr byval({ i8, double }) align 16 %p1, i8 zeroext %p2, <8 x float> %v)

A function writes down each argument in 64 bytes of `%out`: integers extended by zeros and by their sign, 8 bytes of
what a pointer points to. Then it changes what the pointers point to, and returns one of its arguments.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.ir.abi import C_CALLABLE_CONVENTIONS
from tlx.ir.types import FloatType, IntType
from tlx.target.host import cpu_flags, has_feature

INTEGERS: Final = ("i1", "i8", "i16", "i32", "i64")
FEATURES: Final = ("avx", "avx2", "avx512f")
EXTENSIONS: Final = ("", "zeroext", "signext", "inreg", "inreg zeroext", "noundef signext")
NUMBERS: Final = ("float", "double", "half", "bfloat")
VECTORS: Final = ("<4 x float>", "<8 x float>", "<16 x i8>", "<2 x double>", "<3 x i32>", "<8 x i1>", "<16 x float>")
POINTEES: Final = ("<4 x float>", "[3 x i64]", "{ i8, double }", "<{ i8, i64 }>", "<16 x float>", "[70 x i8]", "%S")
POINTERS: Final = ("", "noalias", "inreg", "nest", "swiftself", "swiftasync", "sret", "byref", *["byval"] * 4)
_ONCE: Final = frozenset({"nest", "swiftself", "swiftasync", "sret"})
_SLOT: Final = 64
_ROOM: Final = 128
_MOST: Final = 14


@dataclass(frozen=True)
class Signature:
    """A function.

    Attributes:
        name: Its name.
        text: Its definition.
        types: Types of its parameters, behind `%out`.
    """

    name: str
    text: str
    types: tuple[str, ...]

    def arguments(self, seed: int) -> list[Any]:
        """Arguments for a call."""
        choose, generator = random.Random(seed), np.random.default_rng(seed)
        out = np.zeros(_SLOT * (1 + len(self.types)), np.uint8)
        return [_aligned(out), *(_argument(type_, choose, generator) for type_ in self.types)]


def module(seed: int, count: int) -> tuple[str, list[Signature]]:
    """A module of random functions, for this machine: which registers vectors are passed in depends on its features."""
    choose = random.Random(seed)
    flags = cpu_flags()
    features = ["", *(f'"target-features"="+{feature}"' for feature in FEATURES if has_feature(feature, flags))]
    made = [_signature(choose, f"f{index}", features) for index in range(count)]
    return "%S = type { i16, [3 x float], ptr }\n\n" + "\n".join(signature.text for signature in made), made


def _signature(choose: random.Random, name: str, features: list[str]) -> Signature:
    convention = choose.choice(["", "", *sorted(C_CALLABLE_CONVENTIONS)])
    once = {"swiftself", "swiftasync"} if convention == "preserve_nonecc" else set[str]()  # LLVM has no registers left
    parameters = [f"ptr {_pointer(choose, once, ('byval', 'byref', 'sret'))} %out"]
    types: list[str] = []
    body = ["store i8 1, ptr %out"]  # the elements may be of any type
    for index in range(choose.randrange(_MOST)):
        kind = choose.choice([INTEGERS, INTEGERS, NUMBERS, VECTORS, ("ptr",), ("ptr",)])
        type_ = choose.choice(kind)
        words = _words(choose, type_, once, index)
        parameters.append(f"{type_} {words} %p{index}")
        types.append(type_)
        body += [f"%o{index} = getelementptr i8, ptr %out, i64 {_SLOT * index}", *_noted(type_, words, index)]
    values = [] if "sret" in once else [k for k, type_ in enumerate(types) if type_ != "ptr"]
    returned = choose.choice([None, *values, *values])
    result = "void" if returned is None else types[returned]
    extension = choose.choice(EXTENSIONS) if result in INTEGERS else ""
    body.append("ret void" if returned is None else f"ret {result} %p{returned}")
    variadic = ["..."] if not convention and choose.random() < 0.2 else []
    head = f"define {convention} {extension} {result} @{name}({', '.join(parameters + variadic)})"
    after = f"{choose.choice(['', 'noinline', 'optnone noinline'])} {choose.choice(features)}"
    lines = "".join(f"  {line}\n" for line in body)
    return Signature(name, f"{' '.join(head.split())} {after} {{\n{lines}}}\n", tuple(types))


def _words(choose: random.Random, type_: str, once: set[str], index: int) -> str:
    """Attributes of a parameter."""
    if type_ == "ptr":
        return _pointer(choose, once, ("sret",) if index else ())
    return choose.choice(EXTENSIONS if type_ in INTEGERS else ("", "", "inreg", "noundef"))


def _pointer(choose: random.Random, once: set[str], but: tuple[str, ...]) -> str:
    """Attributes of a pointer; some may be given only once, `sret` only to one of the first two parameters."""
    word = choose.choice([word for word in POINTERS if word not in once and word not in but])
    once |= {word} & _ONCE
    if word not in ("byval", "byref", "sret"):
        return word
    return f"{word}({choose.choice(POINTEES)}) {choose.choice(['', 'align 1', 'align 8', 'align 64'])}"


def _noted(type_: str, words: str, index: int) -> list[str]:
    """What a function does with an argument: `%o` is where it is written down."""
    value, to = f"%p{index}", f"ptr %o{index}"
    if type_ == "i64" or type_ in NUMBERS or type_ in VECTORS:
        return [f"store {type_} {value}, {to}, align 1"]
    if type_ in INTEGERS:
        return [
            f"%z{index} = zext {type_} {value} to i64",
            f"%s{index} = sext {type_} {value} to i64",
            f"%t{index} = getelementptr i8, {to}, i64 8",
            f"store i64 %z{index}, {to}, align 1",
            f"store i64 %s{index}, ptr %t{index}, align 1",
        ]
    lines = [f"%w{index} = load i64, ptr {value}, align 1", f"store i64 %w{index}, {to}, align 1"]
    if "byref" in words:
        return lines
    return [*lines, f"%x{index} = xor i64 %w{index}, -1", f"store i64 %x{index}, ptr {value}, align 1"]


def _argument(type_: str, choose: random.Random, generator: np.random.Generator) -> Any:
    if type_ == "ptr":
        return _aligned(generator.integers(0, 256, _ROOM, np.uint8)).view(np.int64)
    if type_ in INTEGERS:
        bits = int(type_[1:])
        return choose.choice([-(1 << (bits - 1)), (1 << bits) - 1, -1, 0, 1, choose.getrandbits(bits)])
    if type_ in NUMBERS:
        return choose.randint(-64, 64) / 4
    count, element = type_[1:-1].split(" x ")
    dtype = dtype_of(IntType(int(element[1:])) if element in INTEGERS else FloatType(element))
    return generator.integers(0, 2 if element == "i1" else 100, int(count)).astype(dtype)


def _aligned(array: Array) -> Array:
    """A copy at an address that any of the parameters allows."""
    room = np.empty(array.size + _SLOT, np.uint8)
    start = -room.ctypes.data % _SLOT
    room[start : start + array.size] = array
    return room[start : start + array.size]
