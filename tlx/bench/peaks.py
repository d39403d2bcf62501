"""The machine's peak: loops of multiply-adds on registers, and loops that only stream through memory.

    define void @peak(i64 %steps, ptr %out, ptr %in) {
      x, y = load from %in
    loop:
      acc0 = fma(acc0, x, y)  ...  acc19 = fma(acc19, x, y)
    end:
      store the sum of the accumulators to %out
    }

There are more accumulators than a multiply-add's latency times its throughput, and nothing is loaded in the loop. The
instruction is the best one the target has for the element types: a tile product, or the faster of a dot product and a
multiply-add.

The memory peak is a loop that reads and writes as many arrays as a workload does.

    for i:  y[i] = x0[i] ^ x1[i] ^ ...          vectors of the target's width

Arrays are written by ordinary or by non-temporal stores, whichever is faster. They are as large as the workload's, so
that arrays that fit a cache are measured in that cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np

from tlx.api.compiler import compile as compile_module
from tlx.ir.builder import Builder, new_function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.types import DOUBLE, FLOAT, I16, I32, I64, PTR, VOID, X86_AMX, FloatType, Type, VectorType
from tlx.ir.values import Value, const_int, zero
from tlx.lower.remarks import ArithmeticUnit
from tlx.target.instructions.dots import Dot
from tlx.target.target import Target
from tlx.tuning.timing import LOOP_LABEL, Contestant, compile_loop, counted_loop, fastest, loop_function, rate
from tlx.tuning.workload import F32, Element, MemoryTraffic

STEPS: Final = 2000
_ROWS: Final = 16
_ROW_BYTES: Final = 64
TILE_PRODUCTS: Final = {
    ("bf16", "bf16"): "tdpbf16ps",
    ("f16", "f16"): "tdpfp16ps",
    ("s8", "s8"): "tdpbssd",
    ("u8", "s8"): "tdpbusd",
    ("s8", "u8"): "tdpbsud",
    ("u8", "u8"): "tdpbuud",
}
_MADD: Final = {16: "llvm.x86.sse2.pmadd.wd", 32: "llvm.x86.avx2.pmadd.wd", 64: "llvm.x86.avx512.pmaddw.d.512"}

Types = tuple[Element, Element, Element]
StepEmitter = Callable[[Builder, Value, list[Value]], Value]


@dataclass(frozen=True)
class Peak:
    """The loop that measures a peak.

    Attributes:
        text: The module; its function is `@peak(i64 steps, ptr out, ptr in)`, with random operands at `in`.
        instruction: The instruction that it repeats.
        operations: Additions and multiplications per step.
        unit: The unit that executes the instruction.
    """

    text: str
    instruction: str
    operations: int
    unit: ArithmeticUnit


def candidates(types: Types, target: Target) -> list[Peak]:
    """The loops of which the fastest is the target's peak: dot products of bfloat can be slower than multiply-adds."""
    best = peak(types, target)
    if best.unit != "dot" or not types[2].is_float:
        return [best]
    return [best, peak(types, replace(target, dots=()))]


def peak(types: Types, target: Target) -> Peak:
    """The loop of a target's widest instruction for products of types (lhs, rhs, accumulator)."""
    unit = _first(target.usable_matrix_dots, types)
    if unit is not None:
        return _tiles(types, TILE_PRODUCTS[types[0].name, types[1].name], target)
    accumulators = 20 if target.registers >= 32 else 12
    accumulator = types[2]
    lanes = target.vector_bytes // accumulator.bytes
    dot = _first(target.usable_dots, types)
    if dot is not None:
        words, width = VectorType(lanes, I32), dot.width
        type_: Type = VectorType(lanes, FLOAT if dot.accumulator == "float" else I32)
        text = _loop(target, type_, words, accumulators, lambda b, acc, xy: dot.emit(b, acc, *xy))
        return Peak(text, f"dot product ({dot.feature})", accumulators * lanes * width * 2, "dot")
    if accumulator.is_float:
        floats = VectorType(lanes, DOUBLE if accumulator.llvm == "double" else FLOAT)
        text = _loop(target, floats, floats, accumulators, _fma(target))
        return Peak(text, f"multiply-add of {accumulator.llvm}", accumulators * lanes * 2, "fma")
    words = VectorType(lanes, I32)
    text = _loop(target, words, words, accumulators, _madd(target))
    return Peak(text, "pmaddwd and add", accumulators * lanes * 2 * 2, "fma")


def contestant(ceiling: Peak, target: Target) -> Contestant:
    """The loop on random operands, ready to be timed."""
    compiled = compile_module(ceiling.text, target, entry="peak")
    call = compiled.entry.unchecked
    source, out = F32.random((512,), 1), np.zeros(4096, np.float32)
    pointers = (out.ctypes.data, source.ctypes.data)
    keep = (compiled, source, out)

    def repeat(count: int, _keep: object = keep) -> object:
        return call(count * STEPS, *pointers)

    return Contestant(repeat, ceiling.operations * STEPS)


def _first(dots: tuple[Dot, ...], types: Types) -> Dot | None:
    """A dot product of these element types, of either signedness: packing can convert between the two."""
    names = tuple(element.llvm for element in types)
    return next((d for d in dots if (d.lhs[0], d.rhs[0], d.accumulator) == names), None)


def _fma(target: Target) -> StepEmitter:
    name = "llvm.fma" if target.instructions.has_fma else "llvm.fmuladd"
    return lambda b, acc, xy: b.call_intrinsic(name, [acc.type], acc.type, [acc, *xy], "acc")


def _madd(target: Target) -> StepEmitter:
    """Multiply pairs of i16 and add them to an i32; the accumulator is a factor, or LLVM would hoist the product."""
    halves = VectorType(target.vector_bytes // 2, I16)

    def step(b: Builder, acc: Value, xy: list[Value]) -> Value:
        factors = [b.cast("bitcast", value, halves) for value in (acc, xy[0])]
        return b.add(b.call_named(_MADD[target.vector_bytes], acc.type, factors, "pairs").value, xy[1])

    return step


def _loop(target: Target, type_: Type, operand: Type, accumulators: int, step: StepEmitter) -> str:
    """The module for accumulators of `type_` and two operands of another type."""
    module, b = _start(target)
    source = b.function.arguments[2].value
    xy: list[Value] = [b.load(operand, b.gep(operand, source, i), 4) for i in range(2)]
    with b.loop(0, b.function.arguments[0].value, carry=[zero(type_)] * accumulators, nonempty=True) as state:
        state.next(*[step(b, acc, xy) for acc in state.carried])
    opcode = "fadd" if isinstance(type_, VectorType) and isinstance(type_.element, FloatType) else "add"
    total = reduce(lambda a, c: b.binary(opcode, a, c), state.results)
    b.store(total, b.function.arguments[1].value, 4)
    b.ret()
    return str(module)


def _tiles(types: Types, product: str, target: Target) -> Peak:
    """Four accumulators and two tiles of each operand: all eight tile registers."""
    module, b = _start(target)
    source = b.function.arguments[2].value
    size = [const_int(I16, _ROWS), const_int(I16, _ROW_BYTES)]
    stride = const_int(I64, 0)  # the same row sixteen times

    def tile(name: str, args: list[Value]) -> Value:
        return b.call_named(f"llvm.x86.{name}.internal", X86_AMX, args, "tile").value

    operands = [tile("tileloadd64", [*size, source, stride]) for _ in range(4)]
    starts = [tile("tilezero", list(size)) for _ in range(4)]
    body = [const_int(I16, _ROWS), const_int(I16, _ROW_BYTES), const_int(I16, _ROW_BYTES)]
    with b.loop(0, b.function.arguments[0].value, carry=starts, nonempty=True) as state:
        pairs = [(x, y) for x in operands[:2] for y in operands[2:]]
        sums = [tile(product, [*body, c, x, y]) for c, (x, y) in zip(state.carried, pairs, strict=True)]
        state.next(*sums)
    for index, total in enumerate(state.results):
        place = b.gep(I32, b.function.arguments[1].value, index * _ROWS * _ROW_BYTES // 4)
        b.call_named("llvm.x86.tilestored64.internal", VOID, [*size, place, const_int(I64, _ROW_BYTES), total])
    b.ret()
    if target.finish is not None:
        target.finish(module, emulate_matrix=False, request_permission=True)
    operations = 4 * _ROWS * (_ROW_BYTES // 4) * _ROW_BYTES // types[0].bytes * 2
    return Peak(str(module), product, operations, "matrix")


def _start(target: Target) -> tuple[Module, Builder]:
    module = parse("")
    features = f' "target-features"="{",".join(target.features)}"' if target.features else ""
    attributes = f'nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512"{features}'
    parameters = [(I64, "", "steps"), (PTR, "", "out"), (PTR, "", "in")]
    function = new_function(module, "peak", parameters, attributes, linkage="dso_local")
    return module, Builder(module, function)


_STREAM_UNROLL: Final = 4
_LARGE: Final = 64 << 20


def stream_contestant(stream: MemoryTraffic, target: Target) -> tuple[Contestant, str]:
    """The loop on its own arrays, ready to be timed, and a description of it."""
    width = target.vector_bytes
    size = -(-stream.bytes // (width * _STREAM_UNROLL)) * width * _STREAM_UNROLL
    count = stream.reads + stream.writes
    memory = np.random.default_rng(1).integers(0, 255, count * (size + 192) + 64, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    places = [start + index * (size + 192) for index in range(count)]
    moved = stream.bytes * count
    non_temporal = [False, True] if stream.writes else [False]
    contestants = [
        Contestant(compile_loop(_stream_text(stream, places, size, target, past=past), memory), moved)
        for past in non_temporal
    ]
    best = fastest(contestants)
    description = f"{stream.reads} read, {stream.writes} written" + (", non-temporal" if non_temporal[best] else "")
    return contestants[best], description


def bandwidths(target: Target) -> dict[str, float]:
    """Bandwidth of large arrays in 10^9 bytes a second: reading, copying, and a triad (two reads, one write)."""
    kinds = {
        "read": MemoryTraffic(_LARGE, 1, 0),
        "copy": MemoryTraffic(_LARGE, 1, 1),
        "triad": MemoryTraffic(_LARGE, 2, 1),
    }
    return {name: rate(stream_contestant(stream, target)[0]) for name, stream in kinds.items()}


def _stream_text(stream: MemoryTraffic, places: list[int], size: int, target: Target, *, past: bool) -> str:
    width = target.vector_bytes
    vector = f"<{width // 8} x i64>"
    lines: list[str] = []
    for u in range(_STREAM_UNROLL):
        names: list[str] = []
        for r in range(stream.reads):
            lines += [
                f"  %a{u}.{r} = add i64 %loop.i, {places[r] + u * width}",
                f"  %p{u}.{r} = inttoptr i64 %a{u}.{r} to ptr",
                f"  %v{u}.{r} = load {vector}, ptr %p{u}.{r}, align {width}",
            ]
            names.append(f"%v{u}.{r}")
        total = reduce(lambda x, y: _xor(lines, vector, x, y), names)
        for w in range(stream.writes):
            lines += [
                f"  %b{u}.{w} = add i64 %loop.i, {places[stream.reads + w] + u * width}",
                f"  %q{u}.{w} = inttoptr i64 %b{u}.{w} to ptr",
                f"  store {vector} {total}, ptr %q{u}.{w}, align {width}{', !nontemporal !0' if past else ''}",
            ]
        if not stream.writes:
            lines.append(f"  %s{u} = xor {vector} %acc{u}, {total}")
    carried = "".join(
        f"  %acc{u} = phi {vector} [ zeroinitializer, %{LOOP_LABEL} ], [ %s{u}, %loop ]\n"
        for u in range(_STREAM_UNROLL if not stream.writes else 0)
    )
    body = carried + "\n".join(lines) + "\n"
    used = "" if stream.writes else _used_sum(vector, places[-1])
    features = f'"min-legal-vector-width"="512" "prefer-vector-width"="{width * 8}"'
    if target.features:
        features += f' "target-features"="{",".join(target.features)}"'
    inner = counted_loop("loop", LOOP_LABEL, size, body, _STREAM_UNROLL * width) + used
    return loop_function(inner, "loop.end", attributes=features) + "!0 = !{i32 1}\n"


def _xor(lines: list[str], vector: str, x: str, y: str) -> str:
    name = f"%x{len(lines)}"
    lines.append(f"  {name} = xor {vector} {x}, {y}")
    return name


def _used_sum(vector: str, place: int) -> str:
    """Store the sum of all that was read in the last array, so that the loads are not dead."""
    sums = f"  %u1 = xor {vector} %s0, %s1\n  %u2 = xor {vector} %s2, %s3\n  %u = xor {vector} %u1, %u2\n"
    return f"{sums}  store {vector} %u, ptr inttoptr (i64 {place} to ptr), align 8\n"
