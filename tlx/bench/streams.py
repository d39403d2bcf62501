"""How fast memory goes through a processor: a loop that reads and writes as many arrays as a workload does.

    for i:  y[i] = x0[i] ^ x1[i] ^ ...          vectors of the target's width

An array that is written may be written past the caches; whichever is faster counts. Arrays are as large as the
workload's, so that what fits a cache is measured there.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np

from tlx.bench.native_calls import AGAIN, counted, loop, repeating
from tlx.bench.timing import Contestant, fastest, rate
from tlx.bench.workload import Stream
from tlx.target import Target

_UNROLL: Final = 4
_LARGE: Final = 64 << 20


def contestant(stream: Stream, target: Target) -> tuple[Contestant, str]:
    """The loop on arrays of its own, to be timed, and what it does."""
    width = target.vector_bytes
    size = -(-stream.bytes // (width * _UNROLL)) * width * _UNROLL
    count = stream.reads + stream.writes
    memory = np.random.default_rng(1).integers(0, 255, count * (size + 192) + 64, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    places = [start + index * (size + 192) for index in range(count)]
    moved = stream.bytes * count
    ways = [False, True] if stream.writes else [False]
    made = [Contestant(loop(_text(stream, places, size, target, past=past), memory), moved) for past in ways]
    best = fastest(made)
    what = f"{stream.reads} read, {stream.writes} written" + (", past the caches" if ways[best] else "")
    return made[best], what


def bandwidths(target: Target) -> dict[str, float]:
    """10^9 bytes a second that are read, copied, and read twice and written (as a triad does), in large arrays."""
    kinds = {"read": Stream(_LARGE, 1, 0), "copy": Stream(_LARGE, 1, 1), "triad": Stream(_LARGE, 2, 1)}
    return {name: rate(contestant(stream, target)[0]) for name, stream in kinds.items()}


def _text(stream: Stream, places: list[int], size: int, target: Target, *, past: bool) -> str:
    width = target.vector_bytes
    vector = f"<{width // 8} x i64>"
    lines: list[str] = []
    for u in range(_UNROLL):
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
        f"  %acc{u} = phi {vector} [ zeroinitializer, %{AGAIN} ], [ %s{u}, %loop ]\n"
        for u in range(_UNROLL if not stream.writes else 0)
    )
    body = carried + "\n".join(lines) + "\n"
    used = "" if stream.writes else _used(vector, places[-1])
    features = f'"min-legal-vector-width"="512" "prefer-vector-width"="{width * 8}"'
    if target.features:
        features += f' "target-features"="{",".join(target.features)}"'
    inner = counted("loop", AGAIN, size, body, _UNROLL * width) + used
    return repeating(inner, "loop.end", attributes=features) + "!0 = !{i32 1}\n"


def _xor(lines: list[str], vector: str, x: str, y: str) -> str:
    name = f"%x{len(lines)}"
    lines.append(f"  {name} = xor {vector} {x}, {y}")
    return name


def _used(vector: str, place: int) -> str:
    """What was read must be needed: the sum of it goes into the last array."""
    sums = f"  %u1 = xor {vector} %s0, %s1\n  %u2 = xor {vector} %s2, %s3\n  %u = xor {vector} %u1, %u2\n"
    return f"{sums}  store {vector} %u, ptr inttoptr (i64 {place} to ptr), align 8\n"
