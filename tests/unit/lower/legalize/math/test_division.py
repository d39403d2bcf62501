"""Division: the bits of the quotients are the instruction's, and none is slow because a number is subnormal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tests.unit.lower.legalize.math.functions import DTYPES, ELEMENTS, RUNNABLE, TYPE_NAMES, lanes_of
from tests.unit.lower.legalize.math.test_subnormal import logged, watched
from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import BFLOAT, FLOAT, I8, I16, FloatType, Type, VectorType
from tlx.lower.legalize.strength_reduction import divide_registers, divided
from tlx.lower.operations import ElementwiseOp
from tlx.target.lookup import find_target
from tlx.target.target import Target

Array = NDArray[Any]
TARGETS = tuple(find_target(name) for name in ("avx2", "avx512"))
REGISTERS = 2
KINDS: dict[Type, Any] = {**DTYPES, BFLOAT: np.dtype(ml_dtypes.bfloat16)}
FRACTIONS = {2: 7, 4: 23, 8: 52}
WORDS = {2: np.uint16, 4: np.uint32, 8: np.uint64}
SIZE = 1 << 14


def computed_in(element: Type) -> FloatType:
    """The type of the arithmetic that divides numbers of a type."""
    return element if isinstance(element, FloatType) and element != BFLOAT else FLOAT


def instrumented(
    element: FloatType, target: Target, *, by_product: bool = False, within: str | None = None
) -> tuple[str, int]:
    """`@f(out, in, by, log)`: quotients of some registers; operands and results of arithmetic are stored to `log`.

    All are by the first register of `by`, computed by products, if `by_product`. With `within`, only the arithmetic of
    the block with that name is stored.
    """
    module = parse("")
    pointer = module.pointer_to(I8)
    function = new_function(module, "f", [(pointer, "", p) for p in ("out", "in", "by", "log")], "nounwind", "")
    b = Builder(module, function)
    out, source, by, log = (argument.value for argument in function.arguments)
    register = VectorType(lanes_of(target, element), element)
    places = [i * target.vector_bytes for i in range(REGISTERS)]
    operands = [[b.load(register, b.gep(I8, x, place), 1) for place in places] for x in (source, by)]
    if by_product:
        quotients = divide_registers(b, target, element, operands[0], operands[1][0])
    else:
        quotients = divided(b, target, ElementwiseOp("fdiv"), element, *operands)
    for place, quotient in zip(places, quotients, strict=True):
        b.store(quotient, b.gep(I8, out, place), 1)
    b.ret()
    size = 0
    for block in function.blocks:
        for instruction in list(block.instructions):
            values = watched(instruction)
            if instruction.text.partition("@")[2].startswith("llvm.fma."):
                values = [*instruction.operands, instruction.value]
            values = [v for v in values if isinstance(v.type, VectorType) and v.type.element == computed_in(element)]
            if values and within in (None, block.name):
                after = Builder(module, function, block, block.instructions.index(instruction) + 1)
                size = logged(after, log, values, size)
    return str(module), size


def operands(kind: Any, size: int, seed: int, *, are_normal: bool = False) -> tuple[Array, Array]:
    """Numbers of any size, many with quotients near or below the least normal number, and every special one.

    If they are normal, no quotient is below the square of the least normal number.
    """
    random = np.random.default_rng(seed)
    bits, fraction = 8 * kind.itemsize, FRACTIONS[kind.itemsize]
    word = WORDS[kind.itemsize]
    infinity = ((1 << (bits - 1 - fraction)) - 1) << fraction
    special = [0, 1, 2, 3, (1 << fraction) - 1, 1 << fraction, infinity - 1, infinity, infinity | 1 << (fraction - 1)]

    def numbers() -> Array:
        exponents = random.integers(0, infinity >> fraction, size, dtype=word)
        # Few bits in many fractions: exact quotients, and the middle between two.
        masks = (word(1) << word(fraction)) - (word(1) << random.integers(0, fraction, size, dtype=word))
        words = (exponents << word(fraction)) | (random.integers(0, 1 << fraction, size, dtype=word) & masks)
        words = np.where(random.random(size) < 0.2, words & word((1 << fraction) - 1), words)
        words = np.where(random.random(size) < 0.1, random.choice(np.array(special, word), size), words)
        return words.astype(word) | (random.integers(0, 2, size, dtype=word) << word(bits - 1))

    def normal(least: int, most: int) -> Array:
        exponents = random.integers(least, most, size, dtype=word) << word(fraction)
        fractions = random.integers(0, 1 << fraction, size, dtype=word)
        return exponents | fractions | (random.integers(0, 2, size, dtype=word) << word(bits - 1))

    largest = (infinity >> fraction) - 1
    x, y = (numbers(), numbers()) if not are_normal else (normal(3, largest // 2), normal(largest // 2 - 8, largest))
    x, y = x.view(kind), y.view(kind)
    if fraction > 7:
        # A multiple of half the least subnormal number, times the divisor: quotients that are halfway or next to it.
        least = np.ldexp(kind.type(1), 2 - (1 << (bits - 2 - fraction)) - fraction)
        with np.errstate(all="ignore"):
            middle = (random.integers(1, 1 << 20, size) * kind.type(0.5) * y * least).astype(kind)
        middle = (middle.view(word) + random.integers(0, 3, size, dtype=word) - word(1)).view(kind)
        is_allowed = (not are_normal) | ((np.abs(middle) > 4 * np.finfo(kind).tiny) & np.isfinite(middle))
        x = np.where(is_allowed & (random.random(size) < 0.5), middle, x)
    return x, y


@pytest.mark.parametrize("target", TARGETS, ids=[t.name for t in TARGETS])
@pytest.mark.parametrize("element", [*ELEMENTS, BFLOAT], ids=str)
@pytest.mark.parametrize("are_normal", [False, True], ids=["any", "normal"])
def test_no_subnormal_numbers_in_arithmetic(are_normal: bool, element: FloatType, target: Target) -> None:
    text, log_bytes = instrumented(element, target)
    machine, kind = Machine(parse(text)), np.dtype(KINDS[element])
    step, computed = REGISTERS * lanes_of(target, element), DTYPES[computed_in(element)]
    x, y = operands(kind, 64 * step, 1, are_normal=are_normal)
    result, log = np.zeros_like(x), np.zeros(log_bytes // np.dtype(computed).itemsize, computed)
    x[:step] = 2.0 ** (np.finfo(computed).minexp + 3)  # so that the careful code computes ordinary quotients
    y[:step:2] = np.linspace(1, 100, step // 2).astype(kind)
    y[1:step:2] = (np.linspace(1, 2, step // 2) * float(x[0])).astype(kind)
    for i in range(0, x.size, step):
        part = slice(i, i + step)
        log[:] = 0
        machine.call("f", result[part], x[part], y[part], log)
        subnormal = (log != 0) & (np.abs(log) < np.finfo(computed).tiny)
        lanes = np.flatnonzero(subnormal)
        assert not subnormal.any(), (x[part], y[part], lanes)
    check(x, y, result)


def phases(kind: Any) -> dict[str, tuple[Array, Array]]:
    """Numerators and divisors in arrays of one kind each."""
    random, bits, fraction = np.random.default_rng(5), 8 * kind.itemsize, FRACTIONS[kind.itemsize]
    word, least = WORDS[kind.itemsize], 1 - (1 << (bits - 2 - fraction)) + 1
    size = 4096

    def near(exponent: int, spread: int = 4) -> Array:
        numbers = random.uniform(1, 2, size) * random.choice([-1, 1], size)
        return np.ldexp(numbers, exponent + random.integers(0, spread, size)).astype(kind)

    def subnormal() -> Array:
        signs = random.integers(0, 2, size, dtype=word) << word(bits - 1)
        return (random.integers(1, 1 << fraction, size, dtype=word) | signs).view(kind)

    def some(share: float, numbers: Array, others: Array) -> Array:
        return np.where(random.random(size) < share, numbers, others)

    special = np.array([0, -0.0, np.inf, -np.inf, np.nan], kind)
    return {
        "ordinary": (near(0), near(3)),
        "small quotients": (near(least // 2), near(-least // 2 - 3, fraction + 8)),
        "zero quotients": (near(least + 8), near(-least - 8)),
        "small numerators": (subnormal(), near(-2)),
        "small divisors": (near(-3), subnormal()),
        "small operands": (subnormal(), subnormal()),
        "few small quotients": (some(0.05, near(least + 5), near(0)), near(3, 10)),
        "few small numerators": (some(0.05, subnormal(), near(0)), near(3)),
        "few zeros": (some(0.5, np.zeros(size, kind), near(least // 2)), near(-least // 2)),
        "far apart": (some(0.5, near(least + 5), near(-least - 5)), some(0.5, near(least + 5), near(-least - 5))),
        "few special divisors": (near(0), some(0.05, random.choice(special, size), near(0))),
        "special": (some(0.3, random.choice(special, size), near(0)), some(0.3, random.choice(special, size), near(0))),
    }


@pytest.mark.parametrize("phase", ["small quotients", "small numerators", "small divisors", "small operands"])
def test_small_numbers_alone_take_no_code_for_any_numbers(phase: str) -> None:
    target = find_target("avx2")
    text, log_bytes = instrumented(FLOAT, target, within="any")
    machine, step = Machine(parse(text)), REGISTERS * lanes_of(target, FLOAT)
    assert log_bytes
    x, y = (numbers[: 16 * step] for numbers in phases(np.dtype(np.float32))[phase])
    result, log = np.zeros_like(x), np.zeros(log_bytes // 4, np.float32)
    for i in range(0, x.size, step):
        machine.call("f", result[i : i + step], x[i : i + step], y[i : i + step], log)
    assert not log.any()
    check(x, y, result)


@pytest.mark.parametrize("name", ["neon", "vsx", "rvv512"])
@pytest.mark.parametrize("element", [*ELEMENTS, BFLOAT], ids=str)
def test_each_kind_of_numbers_in_registers_of_other_sizes(element: FloatType, name: str) -> None:
    target, kind = find_target(name), np.dtype(KINDS[element])
    text, log_bytes = instrumented(element, target)
    machine, step = Machine(parse(text)), REGISTERS * lanes_of(target, element)
    log = np.zeros(log_bytes // kind.itemsize, kind)
    for x, y in phases(kind).values():
        part = slice(0, 8 * step)
        result = np.zeros_like(x[part])
        for i in range(0, result.size, step):
            machine.call("f", result[i : i + step], x[i : i + step], y[i : i + step], log)
        check(x[part], y[part], result)


@pytest.mark.parametrize("spread", [20, 76, 80, 98, 101, 126])
def test_no_subnormal_numbers_in_products_instead_of_quotients(spread: int) -> None:
    target = find_target("avx512")
    text, log_bytes = instrumented(FLOAT, target, by_product=True)
    machine, step = Machine(parse(text)), REGISTERS * lanes_of(target, FLOAT)
    random = np.random.default_rng(spread)
    for divisor in (1.0, 3.0, 2.2373152, 0.7713412, 1234.567):
        x = (random.uniform(1, 2, step) * 2.0 ** -(spread + random.uniform(-1, 1, step))).astype(np.float32)
        y, result, log = np.full_like(x, divisor), np.empty_like(x), np.zeros(log_bytes // 4, np.float32)
        machine.call("f", result, x, y, log)
        assert not ((log != 0) & (np.abs(log) < np.finfo(np.float32).tiny)).any()
        check(x, y, result)


@np.errstate(all="ignore")
def check(x: Array, y: Array, result: Array) -> None:
    word = WORDS[x.itemsize]
    expected = x / y if x.itemsize > 2 else (x.astype(np.float32) / y.astype(np.float32)).astype(x.dtype)
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(result), nan)
    wrong = np.flatnonzero((result.view(word) != expected.view(word)) & ~nan)[:4]
    assert not wrong.size, [array.ravel()[wrong] for array in (x, y, result, expected)]


@cache
def compiled(element: Type, target: str) -> Any:
    shape = f"<1 x i32> <i32 {SIZE}>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
    vector = f"<{SIZE} x {element}>"
    text = f"""define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %by) {{
      %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, {shape})
      %u = call token @llvm.tensor.load(ptr elementtype({element}) %by, {shape})
      %a = call {vector} @llvm.tensor.tovector(token %t)
      %b = call {vector} @llvm.tensor.tovector(token %u)
      %q = fdiv {vector} %a, %b
      store {vector} %q, ptr %y
      ret void
    }}"""
    return tlx.compile(text, target)["f"]


def numbered(names: Sequence[str]) -> Any:
    return pytest.mark.parametrize("target", [name for name in ("avx2", "avx512") if name in names])


@numbered(RUNNABLE)
@pytest.mark.parametrize("element", [*ELEMENTS, BFLOAT], ids=str)
@pytest.mark.parametrize("are_normal", [False, True], ids=["any", "normal"])
def test_quotients_have_the_bits_of_the_instruction(are_normal: bool, element: Type, target: str) -> None:
    for seed in range(8):
        x, y = operands(np.dtype(KINDS[element]), SIZE, seed, are_normal=are_normal)
        if are_normal:
            y[:SIZE:1000] = [np.nan, np.inf, -np.inf, 0] * 4 + [-0.0]
        result = np.empty_like(x)
        compiled(element, target)(result, x, y)
        check(x, y, result)


@numbered(RUNNABLE)
def test_all_bfloats_by_some(target: str) -> None:
    """In the order of the numerators, so that whole blocks are of one case, and in none."""
    kind, random = np.dtype(KINDS[BFLOAT]), np.random.default_rng(11)
    numerators = np.arange(1 << 16, dtype=np.uint16)
    special = [0, 1, 2, 0x7E, 0x7F, 0x80, 0x81, 0x3F80, 0x4000, 0x7F00, 0x7F7F, 0x7F80, 0x7FC0, 0x8001, 0xFF80]
    for divisor in [*special, *random.integers(0, 1 << 16, 24)]:
        y = np.full(SIZE, divisor, np.uint16).view(kind)
        for x in (numerators, random.permutation(numerators)):
            for part in x.view(kind).reshape(-1, SIZE):
                result = np.empty_like(part)
                compiled(BFLOAT, target)(result, part, y)
                check(part, y, result)


@numbered(RUNNABLE)
@pytest.mark.parametrize("columns", [1 << 16, 1 << 15], ids=["rows", "half rows"])
def test_rows_of_all_bfloats_by_a_number_each(columns: int, target: str) -> None:
    """Quotients that are computed by products, and those beyond the range for which that is exact."""
    kind, random = np.dtype(KINDS[BFLOAT]), np.random.default_rng(12)
    exponents = [-127, -126, -25, -24, -1, 0, 7, 23, 24, 25, 126]
    divisors = [(127 + e) << 7 | f for e in exponents for f in (0, 1, 0x2B, 0x7F)]
    divisors += [0x8000, 0x7F80, 0x7FC0, 0xBF81, 0xFF80, *random.integers(0, 1 << 16, 15)]
    y = np.repeat(np.array(divisors, np.uint16).view(kind), (1 << 16) // columns)[:, None]
    numerators = np.arange(1 << 16, dtype=np.uint16)
    x = np.stack([np.roll(numerators, 9 * i) for i in range(len(divisors))]).view(kind).reshape(-1, columns)
    shape, order = f"<2 x i32> <i32 {len(x)}, i32 {columns}>", "<2 x i32> <i32 0, i32 1>"
    dense = f"{order}, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer"
    column = f"<2 x i32> <i32 {len(x)}, i32 1>"
    text = f"""define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %by) {{
      %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, {shape}, {dense})
      %u = call token @llvm.tensor.load(ptr elementtype(bfloat) %by, {column}, {dense})
      %a = call <{x.size} x bfloat> @llvm.tensor.tovector(token %t)
      %b = call <{x.size} x bfloat> @llvm.tensor.broadcast(token %u, {shape}, {order})
      %q = fdiv <{x.size} x bfloat> %a, %b
      store <{x.size} x bfloat> %q, ptr %y
      ret void
    }}"""
    result = np.empty_like(x)
    tlx.compile(text, target)["f"](result, x, y)
    check(x, np.broadcast_to(y, x.shape), result)


@numbered(RUNNABLE)
@pytest.mark.parametrize("element", [*ELEMENTS, BFLOAT], ids=str)
def test_parts_of_registers(element: Type, target: str) -> None:
    """Tiles with few columns have such registers."""
    module, kind = parse(""), np.dtype(KINDS[element])
    function = new_function(module, "f", [(module.pointer_to(I8), "", p) for p in ("out", "in", "by")], "nounwind", "")
    b = Builder(module, function)
    out, *sources = (argument.value for argument in function.arguments)
    count = find_target(target).vector_bytes // kind.itemsize // 4
    stored = np.dtype(np.int16) if element == BFLOAT else kind
    register = VectorType(count, I16 if element == BFLOAT else element)
    registers = [[b.load(register, source, 1)] for source in sources]
    (quotient,) = divided(b, find_target(target), ElementwiseOp("fdiv"), element, *registers)
    b.store(quotient, out, 1)
    b.ret()
    code: Any = tlx.compile(str(module), target)["f"]
    x, y = operands(kind, SIZE, 0, are_normal=False)
    for start in range(0, 100 * count, count):
        part = slice(start, start + count)
        result = np.empty_like(x[part])
        code(*(array.view(stored) for array in (result, x[part], y[part])))
        check(x[part], y[part], result)


@numbered(RUNNABLE)
@pytest.mark.parametrize("element", [*ELEMENTS, BFLOAT], ids=str)
def test_each_kind_of_numbers_after_each_other(element: Type, target: str) -> None:
    """What code remembers of the numbers before changes no quotient."""
    kind, random = np.dtype(KINDS[element]), np.random.default_rng(3)
    arrays = list(phases(kind).values())
    for size in (24, 300, 2600):
        counts = random.integers(1, size, 8 * SIZE // size)
        parts = [[numbers[:count] for numbers in arrays[random.integers(len(arrays))]] for count in counts]
        x, y = (np.concatenate([part[i] for part in parts]) for i in range(2))
        result = np.empty_like(x)
        for i in range(0, x.size - SIZE, SIZE):
            part = slice(i, i + SIZE)
            compiled(element, target)(result[part], x[part], y[part])
            check(x[part], y[part], result[part])


@pytest.mark.parametrize("target", TARGETS, ids=[t.name for t in TARGETS])
@pytest.mark.parametrize("element", ELEMENTS, ids=TYPE_NAMES)
def test_ordinary_numbers_and_zeros_take_no_careful_code(element: FloatType, target: Target) -> None:
    text, log_bytes = instrumented(element, target)
    machine, kind, size = Machine(parse(text)), DTYPES[element], REGISTERS * lanes_of(target, element)
    x, y = np.linspace(-3, 1e30, size).astype(kind), np.linspace(1e-7, 5, size).astype(kind)
    y[1] = 3
    computed: list[int] = []
    for tiny in (0, np.finfo(kind).tiny / 2):
        x[1], log = tiny, np.zeros(log_bytes // x.itemsize, kind)
        machine.call("f", np.zeros_like(x), x, y, log)
        computed.append(int(np.count_nonzero(log)))
    assert computed[0] <= 8 * size
    assert abs(computed[1] - computed[0]) > size


@pytest.mark.parametrize("target", TARGETS, ids=[t.name for t in TARGETS])
@pytest.mark.parametrize("element", [*ELEMENTS, BFLOAT], ids=str)
def test_reciprocals_are_allowed(element: FloatType, target: Target) -> None:
    """The instruction alone, without the flag, for which LLVM multiplies by reciprocals that are NaN for infinities."""
    module = parse("")
    register = VectorType(lanes_of(target, element), element)
    pointer = module.pointer_to(I8)
    function = new_function(module, "f", [(pointer, "", p) for p in ("x", "y")], "nounwind", "")
    b = Builder(module, function)
    x, y = (b.load(register, argument.value, 1) for argument in function.arguments)
    divided(b, target, ElementwiseOp("fdiv", ("arcp", "nsz")), element, [x], [y])
    divisions = [i for i in function.instructions() if i.opcode == "fdiv"]
    assert divisions
    assert all("arcp" not in i.text for i in divisions)
    assert len(function.blocks) == 1
    assert element == BFLOAT or all(" fdiv nsz " in i.text for i in divisions)
