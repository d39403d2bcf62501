"""What a target is made of: vector registers, dot products, caches, a core's throughput."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tlx.ir.builder.instructions import Builder
    from tlx.ir.types import Type
    from tlx.ir.values import Value

    DotEmitter = Callable[[Builder, Value, Value, Value], Value]

    Reader = Callable[[Builder, Value, int], Value]

Sign = Literal["s", "u", "f"]


@dataclass(frozen=True, slots=True)
class WideningLoads:
    """Instructions that widen narrow operands as they load them: (builder, address, lanes) -> a register.

    Attributes:
        lhs: The element at the address, in all lanes.
        rhs: Of a register of VNNI groups at the address, those at each position of their group: even ones, odd ones.
        lanes: How many lanes they come with.
    """

    lhs: Reader
    rhs: tuple[Reader, ...]
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot-product instruction: `acc[i] += sum_j lhs[i*width + j] * rhs[i*width + j]`.

    Attributes:
        lhs, rhs: Element types of the operands by LLVM name, with their signs: ("i8", "u").
        accumulator: Element type of the accumulator by LLVM name.
        width: Products added to one accumulator element (VNNI factor).
        feature: Subtarget feature that gives it.
        cycles: Cycles from one on a full register to the next.
        slower: A feature, and the cycles on processors that have it.
        emit: Emits it for one register's worth: (builder, acc, lhs, rhs) -> acc; lhs and rhs are vectors of the
            accumulator's lanes whose elements hold `width` operands each.
        temporaries: Registers that it needs besides those of its operands and the accumulator.
        reads: Where operands are widened as they are loaded; `emit` then multiplies and adds once for each of the
            `width` positions, lanes of the accumulator's type.
    """

    lhs: tuple[str, Sign]
    rhs: tuple[str, Sign]
    accumulator: str
    width: int
    feature: str
    emit: DotEmitter
    temporaries: int = 0
    reads: WideningLoads | None = None
    cycles: float = 0.5
    slower: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        if self.width not in (2, 4, 8):
            msg = f"dot product of width {self.width}: dot-product instructions add 2, 4 or 8 products"
            raise ValueError(msg)

    def pays(self, core: CoreModel) -> bool:
        """Whether it makes as many products a cycle as multiply-adds of converted operands, and reads less."""
        return self.width / self.cycles >= core.products


@dataclass(frozen=True, slots=True)
class FloatInstructions:
    """Instructions that mathematical functions are shorter with, on whole registers of float or double.

    Attributes:
        scale: (builder, x, n) -> x 2^floor(n), rounded once, also to infinity and to denormals.
        reciprocal: (builder, x) -> 1 / x to 2^-14 or better, for x far from the ends of the range.
        fraction: (builder, x) -> x less the integer next to it; 0 for infinity.
        exponent: (builder, x) -> floor(log2 |x|) as a number: of zero -infinity, of infinity infinity.
        mantissa: (builder, x) -> x / 2^n from 3/4 to 3/2; 1 of zero and infinity, NaN of what is less than zero.
        pick: (builder, table, n) -> of 16 or 32 floats the one that the last bits of n tell, lane by lane.
    """

    scale: Callable[[Builder, Value, Value], Value]
    reciprocal: Callable[[Builder, Value], Value]
    fraction: Callable[[Builder, Value], Value]
    exponent: Callable[[Builder, Value], Value]
    mantissa: Callable[[Builder, Value], Value]
    pick: Callable[[Builder, Sequence[float], Value], Value]


@dataclass(frozen=True, slots=True)
class Permutes:
    """Instructions that put the elements of a register, or of two, into any order.

    Attributes:
        register_bytes: Bytes of a register.
        features: The feature that gives them, by the width of elements.
        one: (builder, register, order, name) -> the register's elements in that order, integers of their width.
        two: (builder, first, second, order, name) -> elements of both registers.
        pairs: Element types that `two` takes.
        constraint: Constraint of inline assembly for such a register.
        opaque: Widths of integers whose orders are hidden from LLVM, which would not keep the one instruction.
    """

    register_bytes: int
    features: Mapping[int, str]
    one: Callable[[Builder, Value, Value, str], Value]
    two: Callable[[Builder, Value, Value, Value, str], Value]
    pairs: tuple[Type, ...]
    constraint: str
    opaque: tuple[int, ...] = ()

    def permutes(self, bits: int, features: Collection[str]) -> bool:
        """Whether a machine with these features, spelled with their plus, permutes elements of so many bits."""
        return f"+{self.features.get(bits, '')}" in features


@dataclass(frozen=True, slots=True)
class PairRounding:
    """An instruction that rounds two registers of floats to one of bfloats, and takes subnormal floats for zeros.

    Attributes:
        feature: Subtarget feature that gives it.
        emit: (builder, first, second) -> the elements of both, as i16.
    """

    feature: str
    emit: Callable[[Builder, Value, Value], Value]


@dataclass(frozen=True, slots=True)
class Caches:
    """Bytes of data cache one thread can count on.

    Attributes:
        l1, l2, l3: By level.
        sharers: Processors that share the last one.
    """

    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 16 << 20
    sharers: int = 1


@dataclass(frozen=True, slots=True)
class CoreModel:
    """What a core does in a cycle, on full vector registers.

    Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter 2: two multiply-adds (ports 0 and 1, or 0
    and 5 on 512 bits), two loads, latency 4; Zen has the same (Software Optimization Guide for Family 1Ah, 2.11).

    Attributes:
        products: Multiply-adds.
        loads: Loads, broadcasts of one element included.
        latency: Cycles until a sum can be added to again.
        width: Instructions that go to the ports (Haswell and Skylake; later ones are wider).
    """

    products: float = 2.0
    loads: float = 2.0
    latency: float = 4.0
    width: float = 4.0


@dataclass(frozen=True, slots=True)
class VectorRegisters:
    """Vector registers that machines have with a feature, or of an architecture (as triples call it).

    Attributes:
        size: Bytes of a register.
        registers: How many there are.
        feature: Feature that gives them.
        architectures: Architectures that have them.
        masked_bits: Element widths that masked loads and stores of them have instructions for.
        fused: Whether multiply-add of them is one instruction.
        converts_half: Whether an instruction converts half.
        rounds: Whether an instruction rounds floats to integers.
    """

    size: int
    registers: int
    feature: str = ""
    architectures: tuple[str, ...] = ()
    masked_bits: tuple[int, ...] = ()
    fused: bool = False
    converts_half: bool = False
    rounds: bool = False
