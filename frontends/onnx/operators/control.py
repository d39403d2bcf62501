"""Control flow, and sequences of tensors.

A sequence is a list while the model is translated; its length is known then.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tlx.diagnostics import TlxError
from tlx.frontends.onnx.loops import fold
from tlx.frontends.onnx.model import GraphDefinition, ModelError, OnnxNode
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, TensorSequence
from tlx.frontends.onnx.translate import ModelTranslation
from tlx.graph import Value

_UNROLLED: Final = 8  # iterations of a loop that is written out
_UNKNOWN_ROWS: Final = (
    "the number of iterations, and with it the shape of a result, depends on the inputs: pass constants={...} for "
    "those that decide it"
)


@operator("If", note="branches of different shapes only if the condition is known")
def if_(translation: ModelTranslation, node: OnnxNode, condition: Tensor) -> tuple[Tensor, ...]:
    """One of two graphs."""
    branches = node.subgraph("then_branch"), node.subgraph("else_branch")
    if isinstance(condition, np.ndarray):
        return tuple(translation.subgraph(branches[0 if condition.reshape(-1)[0] else 1], []))
    found: list[list[tuple[int, ...]]] = []

    def branch(graph: GraphDefinition) -> Any:
        def run() -> list[Value]:
            with translation.region():
                try:
                    results = translation.subgraph(graph, [])
                except TlxError as error:
                    remedy = "if this branch of an If never runs, pass constants={...} for the inputs that decide it"
                    raise ModelError(f"{error.message}; {remedy}", name=error.name) from error
                found.append([x.shape for x in results])
                if found[0] != found[-1]:
                    translation.fail(
                        f"the branches have results of shapes {found[0]} and {found[-1]}, and the condition depends on "
                        "the inputs: pass constants={...} for those that decide it"
                    )
                return [translation.value(x) for x in results]

        return run

    predicate = translation.reshape(condition, ())
    return translation.graph.conditional(predicate, branch(branches[0]), branch(branches[1]))


@operator("Loop", note="rows are stacked only if their number is known")
def loop(
    translation: ModelTranslation,
    node: OnnxNode,
    trips: Tensor | None = None,
    condition: Tensor | None = None,
    *state: Tensor,
) -> tuple[Tensor, ...]:
    """A graph as long as a condition holds, at most some number of times."""
    body = node.subgraph("body")
    start = np.asarray(True) if condition is None else translation.reshape(condition, ())
    carried = len(state)
    if isinstance(start, np.ndarray) and (not start or (isinstance(trips, np.ndarray) and int(trips.flat[0]) <= 0)):
        return _none(translation, body, state)
    stacks = any(node.outputs[carried:])
    if isinstance(trips, np.ndarray) and isinstance(start, np.ndarray):
        count = int(trips.reshape(-1)[0])
        if count <= _UNROLLED or stacks:
            return _counted(translation, body, count, state, stacks=stacks)
    if stacks:
        translation.fail(_UNKNOWN_ROWS)
    return tuple(_while(translation, body, trips, start, state))


def _none(translation: ModelTranslation, body: GraphDefinition, state: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The results of no iteration: the state, and rows without elements."""
    rows: list[Tensor] = []
    for output in body.outputs[1 + len(state) :]:
        shape = output.shape
        if output.dtype is None or shape is None or not all(isinstance(e, int) for e in shape):
            translation.fail("the shape of the rows of a loop without iterations is not known")
        rows.append(np.empty((0, *(e for e in shape or () if isinstance(e, int))), output.dtype))
    return (*state, *rows)


def _counted(
    translation: ModelTranslation, body: GraphDefinition, count: int, state: Sequence[Tensor], *, stacks: bool
) -> tuple[Tensor, ...]:
    """A loop with a known number of iterations; `stacks` says whether its rows are wanted."""
    carried, captured = len(state), translation.captured(body)

    def step(number: Tensor, values: Sequence[Tensor], others: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        index = translation.convert(number, np.int64)
        outer = dict(zip(captured, others, strict=True))
        goes_on, *results = translation.subgraph(body, [index, np.asarray(True), *values], outer)
        if isinstance(goes_on, Value) or not goes_on.reshape(-1)[0]:
            translation.fail(_UNKNOWN_ROWS)
        return results[:carried], results[carried:]

    if count > _UNROLLED:
        last, rows = fold(translation, step, state, [], count, shared=list(captured.values()))
        return (*last, *rows)
    # Written out: shapes may change from iteration to iteration, and the body may say that it was the last one.
    current, written = list(state), list[list[Tensor]]()
    for number in range(count):
        goes_on, *results = translation.subgraph(body, [np.asarray(number, np.int64), np.asarray(True), *current])
        if isinstance(goes_on, Value):
            if written or stacks:
                translation.fail(_UNKNOWN_ROWS)
            return tuple(_while(translation, body, np.asarray(count), np.asarray(True), state))
        current = results[:carried]
        written.append(results[carried:])
        if not goes_on.reshape(-1)[0]:
            break
    stacked = (
        translation.concatenate([translation.expand(row[k], 0) for row in written], 0) for k in range(len(written[0]))
    )
    return (*current, *stacked)


def _while(
    translation: ModelTranslation, body: GraphDefinition, trips: Tensor | None, start: Tensor, state: Sequence[Tensor]
) -> list[Tensor]:
    """A loop whose number of iterations is found when it runs."""
    limit = None if trips is None else translation.reshape(trips, ())
    carried, captured = len(state), translation.captured(body)

    def holds(number: Value, goes_on: Value, *_: Value) -> Any:
        return goes_on if limit is None else goes_on & translation.value(translation.compare("lt", number, limit))

    def run(number: Value, goes_on: Value, *values: Value) -> list[Any]:
        with translation.region():
            outer = dict(zip(captured, values[carried:], strict=True))
            after, *results = translation.subgraph(body, [number, goes_on, *values[:carried]], outer)
            results = results[:carried]  # rows have no name outside
            for old, new in zip(values, results, strict=False):
                if old.shape != new.shape:
                    shapes = f"{old.shape} to {new.shape}"
                    translation.fail(
                        f"an iteration changes a shape, {shapes}, but the number of iterations depends on the inputs"
                    )
            return [
                number + 1,
                translation.value(translation.reshape(after, ())),
                *map(translation.value, results),
                *values[carried:],
            ]

    zero = translation.graph.full((), 0, np.int64)
    initial = [translation.value(x) for x in (*state, *captured.values())]
    return list(translation.graph.while_loop(holds, run, zero, translation.value(start), *initial)[2 : 2 + carried])


@operator("Scan", note="from version 9 on")
def scan(translation: ModelTranslation, node: OnnxNode, *operands: Tensor) -> tuple[Tensor, ...]:
    """A graph for each row of some tensors."""
    body, count = node.subgraph("body"), node.integer("num_scan_inputs", 1)
    if node.opset < 9 or not 1 <= count <= len(operands):
        raise node.error(
            f"version {node.opset} with num_scan_inputs {count} and {len(operands)} inputs is not supported"
        )
    carried = len(operands) - count
    results = len(body.outputs) - carried
    axes = node.integers("scan_input_axes") or [0] * count
    moved = [_first(translation, x, axis) for x, axis in zip(operands[carried:], axes, strict=True)]
    steps = moved[0].shape[0]
    if not steps or any(x.shape[0] != steps for x in moved):
        translation.fail(
            f"the scanned tensors have {[x.shape[0] for x in moved]} rows: all must have the same number, at least 1"
        )

    captured = translation.captured(body)

    def step(_: Tensor, values: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        made = translation.subgraph(body, [*values, *rows[:count]], dict(zip(captured, rows[count:], strict=True)))
        return made[:carried], made[carried:]

    backward = [bool(n) for n in node.integers("scan_input_directions") or [0] * count]
    last, rows = fold(
        translation, step, operands[:carried], moved, steps, backward=backward, shared=list(captured.values())
    )
    places = node.integers("scan_output_axes") or [0] * results
    backward_outputs = node.integers("scan_output_directions") or [0] * results
    stacked: list[Tensor] = []
    for row, axis, is_backward in zip(rows, places, backward_outputs, strict=True):
        x = row
        if is_backward:
            ends = [steps - 1, *[0] * (len(x.shape) - 1)], [-1, *x.shape[1:]], [-1, *[1] * (len(x.shape) - 1)]
            x = translation.slice(x, *ends)
        stacked.append(_last(translation, x, axis))
    return (*last, *stacked)


def _first(translation: ModelTranslation, x: Tensor, axis: int) -> Tensor:
    """The tensor with a dimension moved to the front."""
    place = translation.axis(axis, len(x.shape))
    return translation.transpose(x, [place, *(d for d in range(len(x.shape)) if d != place)])


def _last(translation: ModelTranslation, x: Tensor, axis: int) -> Tensor:
    """The tensor with its first dimension moved to another place."""
    place = translation.axis(axis, len(x.shape))
    order = list(range(1, len(x.shape)))
    return translation.transpose(x, [*order[:place], 0, *order[place:]])


# Sequences ---------------------------------------------------------------------------------------------------------


@operator("SequenceConstruct", "SequenceEmpty")
def sequence_construct(translation: ModelTranslation, node: OnnxNode, *items: Tensor) -> TensorSequence:
    """A sequence of tensors, or of none."""
    _ = translation, node
    return TensorSequence(items)


@operator("SequenceAt")
def sequence_at(translation: ModelTranslation, node: OnnxNode, sequence: TensorSequence, position: Tensor) -> Tensor:
    """The tensor at a known position."""
    _ = node
    return sequence.items[translation.axis(int(translation.scalar(position, "the position")), len(sequence.items))]


@operator("SequenceLength")
def sequence_length(translation: ModelTranslation, node: OnnxNode, sequence: TensorSequence) -> Tensor:
    """The number of tensors."""
    _ = translation, node
    return np.array(len(sequence.items), np.int64)


@operator("SequenceInsert")
def sequence_insert(
    translation: ModelTranslation, node: OnnxNode, sequence: TensorSequence, x: Tensor, position: Tensor | None = None
) -> TensorSequence:
    """One more tensor, at the end or at a known position."""
    _ = node
    count = len(sequence.items)
    place = (
        count if position is None else translation.axis(int(translation.scalar(position, "the position")), count + 1)
    )
    return TensorSequence((*sequence.items[:place], x, *sequence.items[place:]))


@operator("SequenceErase")
def sequence_erase(
    translation: ModelTranslation, node: OnnxNode, sequence: TensorSequence, position: Tensor | None = None
) -> TensorSequence:
    """The sequence without its last tensor, or that at a known position."""
    _ = node
    place = translation.axis(
        -1 if position is None else int(translation.scalar(position, "the position")), len(sequence.items)
    )
    return TensorSequence((*sequence.items[:place], *sequence.items[place + 1 :]))


@operator("SplitToSequence")
def split_to_sequence(
    translation: ModelTranslation, node: OnnxNode, x: Tensor, sizes: Tensor | None = None
) -> TensorSequence:
    """Parts along an axis: of extent 1, of one size, or of several."""
    axis = translation.axis(node.integer("axis", 0), len(x.shape))
    extent = x.shape[axis]
    given = [1] if sizes is None else translation.integers(sizes, "split") or [1]
    if sizes is None or not sizes.shape:
        if given[0] < 1:
            translation.fail(f"parts of extent {given[0]} are not possible")
        given = [min(given[0], extent - start) for start in range(0, extent, given[0])]
    if sum(given) != extent or min(given, default=0) < 0:
        translation.fail(f"parts {given} do not add up to extent {extent} of dimension {axis}")
    ends = [sum(given[:k]) for k in range(len(given) + 1)]
    parts = [translation.part(x, axis, a, b) for a, b in pairwise(ends)]
    if sizes is None and not node.integer("keepdims", 1):
        parts = [translation.reshape(p, [e for d, e in enumerate(p.shape) if d != axis]) for p in parts]
    return TensorSequence(tuple(parts))


@operator("ConcatFromSequence")
def concat_from_sequence(translation: ModelTranslation, node: OnnxNode, sequence: TensorSequence) -> Tensor:
    """The tensors of a sequence one after the other, or stacked."""
    if not sequence.items:
        raise node.error("the sequence is empty")
    stacked = bool(node.integer("new_axis", 0))
    axis = translation.axis(node.integer("axis", 0), len(sequence.items[0].shape) + stacked)
    return translation.concatenate([translation.expand(x, axis) if stacked else x for x in sequence.items], axis)
