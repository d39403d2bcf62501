"""Measure functions and quotients of unusual numbers: the time over that of ordinary numbers, as a table.

    taskset -c 1 python tools/measure/measure_arguments.py --target=avx2

Arrays of 4096 elements, which stay in L1; a loop of generated code calls the kernel. Of many rounds, in which all kinds
of numbers take turns, the shortest time counts. Every result is compared with numpy's first.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import tlx

Array = NDArray[Any]
SIZE: Final = 4096
CALLS: Final = 32
KINDS: Final[dict[str, tuple[Any, int, int]]] = {
    "float": (np.float32, 23, -126),
    "double": (np.float64, 52, -1022),
    "bfloat": (ml_dtypes.bfloat16, 7, -126),
    "half": (np.float16, 10, -14),
}
"""The types, the bits of their fractions, and the exponents of their least normal numbers."""
FUNCTIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "sigmoid": lambda x: np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x))),
    "silu": lambda x: x * FUNCTIONS["sigmoid"](x),
    "tanh": np.tanh,
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
}
LOAD: Final = """  %{name} = call token @llvm.tensor.load(ptr elementtype({element}) %{name}.at, {shape})
  %{name}.v = call {vector} @llvm.tensor.tovector(token %{name})
"""
PROGRAM: Final = """define void @kernel(ptr noalias %y, ptr noalias %a.at, ptr noalias %b.at) {{
{loads}  %r = {operation}
  store {vector} %r, ptr %y
  ret void
}}
define void @repeat(ptr noalias %y, ptr noalias %a, ptr noalias %b, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @kernel(ptr %y, ptr %a, ptr %b)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def compiled(name: str, element: str, target: str) -> Any:
    """A function that calls a kernel of division (`fdiv`), of a function or of x sigmoid(x) (`silu`) some times."""
    zeros = "<1 x i32> zeroinitializer"
    vector, shape = f"<{SIZE} x {element}>", f"<1 x i32> <i32 {SIZE}>, {zeros}, {zeros}, {zeros}"
    loads = "".join(LOAD.format(name=x, element=element, vector=vector, shape=shape) for x in "ab")
    operation = f"call {vector} @llvm.tensor.{name}(token %a)"
    if name == "silu":
        operation = f"fmul {vector} %a.v, %s"
        loads += f"  %s = call {vector} @llvm.tensor.sigmoid(token %a)\n"
    elif name == "fdiv":
        operation = f"fdiv {vector} %a.v, %b.v"
    return tlx.compile(PROGRAM.format(loads=loads, operation=operation, vector=vector), target)["repeat"]


class Numbers:
    """Random numbers of a floating-point type."""

    def __init__(self, element: str) -> None:
        kind, self.fraction, self.least = KINDS[element]
        self.kind, self.random = np.dtype(kind), np.random.default_rng(5)
        self.word: Any = np.dtype(f"u{self.kind.itemsize}").type
        self.sign = 1 << (8 * self.kind.itemsize - 1)

    def of_bits(self, start: int, stop: int) -> Array:
        """Numbers whose magnitudes' bits are in a range."""
        words: Array = self.random.integers(start, stop, SIZE, dtype=np.uint64)
        signs: Array = self.random.choice(np.array([0, self.sign], np.uint64), SIZE)
        return (words | signs).astype(self.word).view(self.kind)

    def near(self, start: int, stop: int) -> Array:
        """Numbers whose exponents are in a range."""
        significands = self.random.uniform(1, 2, SIZE) * self.random.choice([-1, 1], SIZE)
        return np.ldexp(significands, self.random.integers(start, stop, SIZE)).astype(self.kind)

    def subnormal(self) -> Array:
        """Subnormal numbers."""
        return self.of_bits(1, 1 << self.fraction)

    def all_exponents(self) -> Array:
        """Finite numbers whose exponents are distributed evenly."""
        infinity = (3 - 2 * self.least) << self.fraction
        return self.of_bits(0, infinity)

    def between(self, start: float, stop: float) -> Array:
        """Numbers distributed evenly."""
        return self.random.uniform(min(start, stop), max(start, stop), SIZE).astype(self.kind)

    def mixed(self, share: float, numbers: Array, others: Array) -> Array:
        """An array with a share of some numbers, and others."""
        return np.where(self.random.random(SIZE) < share, numbers, others)

    def only(self, number: float) -> Array:
        """An array of one number."""
        return np.full(SIZE, number, self.kind)


def quotients(n: Numbers) -> dict[str, tuple[Array, Array]]:
    """Numerators and divisors, ordinary ones first."""
    ordinary, low, subnormal = n.near(-3, 4), n.least // 2, n.subnormal
    small, large = n.near(low, low + 3), n.near(-low + 2, -low + n.fraction - 2)
    few = n.mixed(0.01, n.near(n.least + 2, n.least + 4), n.near(0, 4))
    return {
        "ordinary": (ordinary, n.near(-3, 4)),
        "subnormal quotients": (small, large),
        "one in a hundred of them": (few, n.near(6, 9)),
        "subnormal numerators": (subnormal(), n.near(-2, 3)),
        "one numerator in a hundred": (n.mixed(0.01, subnormal(), n.near(0, 4)), n.near(-3, 4)),
        "subnormal divisors": (ordinary, subnormal()),
        "one divisor in a hundred": (ordinary, n.mixed(0.01, subnormal(), ordinary)),
        "subnormal operands": (subnormal(), subnormal()),
        "subnormal quotients, half zeros": (n.mixed(0.5, n.only(0), small), large),
        "subnormal quotients, few NaN": (n.mixed(0.01, n.only(np.nan), small), large),
        "infinite": (n.only(np.inf), ordinary),
        "all exponents": (n.all_exponents(), n.all_exponents()),
    }


def exponents(n: Numbers, normal: float, end: float) -> dict[str, tuple[Array, Array]]:
    """Arguments of a function that tends to zero, ordinary ones first.

    Args:
        n: The numbers.
        normal: The argument of the least normal result.
        end: That of the least subnormal result.
    """
    margin = (end - normal) / 16
    subnormal, ordinary = n.between(normal + margin, end - margin), n.between(-1, 1)
    zero, overflow = n.between(1.5 * end, 1.2 * end), n.between(-1.2 * normal, -1.5 * normal)
    arguments = {
        "ordinary": ordinary,
        "subnormal results": subnormal,
        "one in a hundred of them": n.mixed(0.01, subnormal, ordinary),
        "zero results": zero,
        "infinite results": overflow,
        "subnormal": n.subnormal(),
        "zero": n.only(0),
        "infinite": n.mixed(0.5, n.only(np.inf), n.only(-np.inf)),
        "NaN": n.only(np.nan),
        "half of them": n.mixed(0.5, n.mixed(0.5, subnormal, n.mixed(0.5, zero, n.subnormal())), ordinary),
    }
    return {name: (x, x) for name, x in arguments.items()}


def positive(n: Numbers) -> dict[str, tuple[Array, Array]]:
    """Arguments of logarithms, ordinary ones first."""
    ordinary = n.between(0.1, 10)
    arguments = {
        "ordinary": ordinary,
        "subnormal": np.abs(n.subnormal()),
        "one in a hundred of them": n.mixed(0.01, np.abs(n.subnormal()), ordinary),
        "zero": n.only(0),
        "negative": -ordinary,
        "infinite": n.only(np.inf),
        "NaN": n.only(np.nan),
        "all exponents": np.abs(n.all_exponents()),
    }
    return {name: (x, x) for name, x in arguments.items()}


def arguments_of(name: str, n: Numbers) -> dict[str, tuple[Array, Array]]:
    """Arguments of a function, or of division."""
    if name == "fdiv":
        return quotients(n)
    if name.startswith("log"):
        return positive(n)
    powers = n.least, n.least - n.fraction
    if name == "erfc":
        return exponents(n, *map(argument_of_erfc, powers))
    return exponents(n, *(power if name == "exp2" else power * math.log(2) for power in powers))


def argument_of_erfc(power: float) -> float:
    """The x whose erfc is that power of two, by bisection."""
    low, high = 0.0, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle) > 2.0**power else (low, middle)
    return low


def check(name: str, n: Numbers, x: Array, y: Array, result: Array) -> None:
    """Compare results with numpy's: quotients exactly, functions to a few last places.

    Raises:
        ValueError: A result is wrong.
    """
    wide = np.float64 if x.itemsize > 2 or name != "fdiv" else np.float32
    a, b, got = (z.astype(wide) for z in (x, y, result))
    expected = (a / b if name == "fdiv" else FUNCTIONS[name](a)).astype(x.dtype).astype(wide)
    if name == "fdiv" and x.dtype == np.float32:
        expected = (x / y).astype(wide)
    last_place = np.abs(expected) * 2.0**-n.fraction + 2.0 ** (n.least - n.fraction)
    if name == "silu":
        last_place += np.abs(a) * 2.0 ** (n.least - n.fraction)  # the sigmoid's, multiplied by x
    error = 0.0 if name == "fdiv" else 8 * last_place
    is_right = (got == expected) | (np.isnan(got) & np.isnan(expected)) | (np.abs(got - expected) <= error)
    if not is_right.all():
        at = int(np.flatnonzero(~is_right)[0])
        msg = f"{name}({x[at]}, {y[at]}) is {expected[at]}, not {got[at]}"
        raise ValueError(msg)


def measured(name: str, element: str, target: str, rounds: int) -> Mapping[str, float]:
    """Seconds for an element, by the kind of numbers."""
    repeat, n = compiled(name, element, target), Numbers(element)
    cases, best = arguments_of(name, n), dict[str, float]()
    result = np.empty(SIZE, n.kind)
    for kind, (x, y) in cases.items():
        repeat(result, x, y, 1)
        check(name, n, x, y, result)
        best[kind] = np.inf
    for _ in range(rounds):
        for kind, (x, y) in cases.items():
            start = time.perf_counter()
            repeat(result, x, y, CALLS)
            best[kind] = min(best[kind], (time.perf_counter() - start) / CALLS / SIZE)
    return best


def main() -> None:
    """Print a Markdown table for each function."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", default=["fdiv", *FUNCTIONS], help="functions; 'fdiv' is division, 'silu' x sigmoid(x)"
    )
    parser.add_argument("--target", default="native", help="target to generate code for (default: native)")
    parser.add_argument("--types", default=",".join(KINDS), help="element types (default: all)")
    parser.add_argument("--rounds", type=int, default=40, help="samples of each measurement (default: 40)")
    options = parser.parse_args()
    elements = options.types.split(",")
    with np.errstate(all="ignore"):
        for name in options.names:
            times = [measured(name, element, options.target, options.rounds) for element in elements]
            nanoseconds = (f"{1e9 * best['ordinary']:.2f}" for best in times)
            print(f"\n| {name} | " + " | ".join(elements) + " |")
            print("| --- |" + " --- |" * len(elements))
            print("| ordinary, ns | " + " | ".join(nanoseconds) + " |")
            for kind in list(times[0])[1:]:
                print(f"| {kind} | " + " | ".join(f"{b[kind] / b['ordinary']:.2f}" for b in times) + " |")


if __name__ == "__main__":
    main()
