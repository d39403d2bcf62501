"""Loops: over the steps of sequences, and as long as a condition holds. Short ones are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tlx.frontends.onnx.tensors import Tensor, Tensors
from tlx.graph import Value

Step: TypeAlias = "Callable[[Tensor, Sequence[Tensor], Sequence[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]]"
Row: TypeAlias = "tuple[tuple[int, ...], np.dtype[Any]]"
_UNROLLED: Final = 3  # steps of a loop that is written out


def fold(
    t: Tensors,
    step: Step,
    state: Sequence[Tensor],
    sequences: Sequence[Tensor],
    steps: int,
    *,
    backward: Sequence[bool] = (),
    rows: Sequence[Row] | None = None,
    shared: Sequence[Tensor] = (),
) -> tuple[list[Tensor], list[Tensor]]:
    """Carry a state through the steps of sequences, and stack what each step gives.

    Args:
        t: The tensors.
        step: Takes the number of a step, the state, and the row of each sequence; gives the next state, and new rows.
        state: The state before the first step.
        sequences: Tensors whose first dimension is the steps.
        steps: How many there are.
        backward: For each sequence, whether its last row comes first.
        rows: Shapes and types of the new rows; if they are not known, the first step is written out to find them.
        shared: Tensors that follow the rows of each step, as they are.

    Returns:
        The state after the last step, and a tensor for each new row.
    """
    reverse = backward or [False] * len(sequences)

    def parts(number: Any, sources: Sequence[Tensor]) -> list[Tensor]:
        cut = zip(sources[: len(sequences)], reverse, strict=True)
        return [*(_row(t, s, number, steps, backward=b) for s, b in cut), *sources[len(sequences) :]]

    current = list(state)
    written: list[Sequence[Tensor]] = []
    for number in range(steps if steps <= _UNROLLED else 0 if rows is not None else 1):
        current, made = step(np.asarray(number), current, parts(number, (*sequences, *shared)))
        written.append(made)
    first = len(written)
    if first == steps:
        count = len(written[0])
        return list(current), [t.concatenate([t.expand(made[k], 0) for made in written], 0) for k in range(count)]
    shapes = [(x.shape, x.dtype) for x in written[0]] if rows is None else rows
    buffers: list[Value] = []
    for k, (shape, dtype) in enumerate(shapes):
        buffer = t.graph.full((steps, *shape), 0, dtype)
        if first:
            buffer = t.graph.dynamic_update_slice(buffer, t.expand(t.value(written[0][k]), 0), [0] * (1 + len(shape)))
        buffers.append(buffer)
    carried, written_to = len(state), len(state) + len(buffers)

    def holds(number: Value, *_: Value) -> Value:
        return number < steps

    def body(number: Value, *values: Value) -> list[Any]:
        # Sequences and shared tensors are part of the state, which lies in memory, so that parts of them are views.
        read = values[written_to:]
        with t.region():
            after, made = step(number, values[:carried], parts(number, read))
            new = [t.broadcast(t.value(x), v.shape) for x, v in zip(after, values[:carried], strict=True)]
            stored = [
                t.graph.dynamic_update_slice(old, t.expand(t.value(x), 0), [number, *[0] * len(x.shape)])
                for old, x in zip(values[carried:written_to], made, strict=True)
            ]
        return [number + 1, *new, *stored, *read]

    start = t.graph.full((), first, np.int64)
    initial = [t.value(x) for x in (*current, *buffers, *sequences, *shared)]
    _, *results = t.graph.while_loop(holds, body, start, *initial)
    return list(results[:carried]), list(results[carried:written_to])


def _row(t: Tensors, x: Tensor, number: Any, steps: int, *, backward: bool) -> Tensor:
    """A row of a sequence."""
    if isinstance(number, Value):
        place = steps - 1 - number if backward else number
        rows = t.graph.dynamic_slice(t.value(x), [place, *[0] * (len(x.shape) - 1)], (1, *x.shape[1:]))
        return t.reshape(rows, x.shape[1:])
    place = steps - 1 - int(number) if backward else int(number)
    return t.reshape(t.part(x, 0, place, place + 1), x.shape[1:])
