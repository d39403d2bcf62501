"""Loops and conditionals whose parts are Python functions of values.

A loop carries single elements in registers, and tensors in memory: in that of the initial value where the graph may
overwrite it, else in a copy. The body updates them in place (`dynamic_update_slice`, `scatter`); tensors that it
returns unchanged are not copied, neither before the loop nor in it.

    before:  store initial values                        head:   phis; condition
             br head                                             br do, done
    do:      body; store what it returns; br head        done:   the state

If the body returns large tensors of its state in other positions, `(a, b) -> (b, a)` or `(a, b, c) -> (f(a), a, b)`,
they exchange their memory instead of being copied: as many iterations as a cycle has tensors are written one after the
other, each of which finds the tensors where the one before left them; the last one leaves them where the first one
expects them.

    do:      body; br head2                              head2:  condition
    do2:     body; br head                                       br do2, back
    back:    exchange the elements; br done
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from tlx.graph.composites import Composites
from tlx.graph.core import BOOL
from tlx.graph.indexing import stored_type
from tlx.graph.reductions import neutral_element
from tlx.graph.value import GraphMemory, Operand, Value
from tlx.graph.view import View
from tlx.intrinsics.numpy_types import type_of
from tlx.ir import values as ir
from tlx.ir.builder import Builder
from tlx.ir.instructions import Block, Instruction
from tlx.ir.rewrite import add_incoming
from tlx.ir.types import I64, Type, bytes_of
from tlx.lower.operations import ElementwiseOp

_CUMULATIVE: Final = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum"}


_ZERO: Final = ir.ConstInt(I64, 0)
_EXCHANGED_BYTES: Final = 4096
"""Size from which tensors exchange their memory: below, copying them costs less than further bodies."""
_MOST_BODIES: Final = 6
"""The most bodies of a loop: cycles of two and three tensors need six."""


@dataclass(frozen=True, slots=True)
class _CumulativeSteps:
    """A cumulative operation along a dimension: the operation on two elements, and its direction."""

    operation: ElementwiseOp
    reverse: bool
    exclusive: bool

    def place(self, b: Builder, length: int, step: ir.Value) -> ir.Value:
        """The position of a step."""
        return b.sub(ir.ConstInt(I64, length - 1), step) if self.reverse else step


@dataclass(frozen=True, eq=False, slots=True)
class _LoopCarriedValue:
    """A value that a loop carries.

    Attributes:
        initial: Its value before the loop.
        value: Its value where an iteration begins: in a register if it has one element, else in memory.
        phi: Its phi, if it is in a register.
        is_in_initial_memory: Whether it uses the memory of the initial value.
    """

    initial: Value
    value: Value
    phi: Instruction | None = None
    is_in_initial_memory: bool = False

    def is_in_place(self, following: Value) -> bool:
        """Whether a value of the next iteration is already in the memory where the loop carries it."""
        return self.phi is None and self.is_at(following)

    def is_at(self, following: Value) -> bool:
        """Whether a value occupies exactly the memory of this one."""
        buffer = self.value.buffer
        is_same = following.buffer.operand == buffer.operand and following.view.offset == self.value.view.offset
        is_whole = following.view.is_dense(range(following.rank))
        return is_same and is_whole and not following.buffer.is_overwritten


@dataclass(frozen=True, eq=False, slots=True)
class _Snapshot:
    """What is available at a point of the function: tokens, vectors, and the writes of each memory."""

    tokens: dict[tuple[str, int, View], ir.Local]
    vectors: dict[tuple[str, int, View, tuple[int, ...]], ir.Value]
    writes: dict[GraphMemory, list[Instruction | Block]]


@dataclass(frozen=True, eq=False, slots=True)
class _LoopTest:
    """The test before an iteration.

    Attributes:
        block: The block that ends with the test.
        holds: Whether there is another iteration.
        start: The first block of that iteration.
    """

    block: Block
    holds: ir.Value
    start: Block

    def leave(self, b: Builder, end: Block) -> None:
        """Branch to another block if there is no further iteration."""
        b.at_end(self.block)
        b.branch_if(self.holds, self.start, end)


@dataclass(frozen=True, eq=False, slots=True)
class _UnrolledTest:
    """The test between two iterations of an unrolled loop.

    Attributes:
        test: The test.
        state: The state there, in which some tensors are in each other's memory.
        back: The block that moves these back, if there is no further iteration.
        elements: The values in registers in that block; None for values in memory.
    """

    test: _LoopTest
    state: Sequence[Value]
    back: Block
    elements: Sequence[ir.Value | None]


@dataclass(frozen=True, eq=False, slots=True)
class _BranchEnd:
    """The end of a branch: its last block, its results, the place of each in memory, and a snapshot."""

    block: Block
    results: list[Value]
    places: list[tuple[str, View] | None]
    snapshot: _Snapshot


class ControlFlowMethods(Composites):
    """Loops, conditionals, switches, and cumulative operations."""

    def while_loop(
        self, condition: Callable[..., Operand], body: Callable[..., Any], *initial: Operand
    ) -> tuple[Value, ...]:
        """Apply a function to a state as long as a condition holds.

        The functions are called once, to build the loop, or up to six times if large tensors change places.

        Args:
            condition: A function of the state that returns a bool without dimensions.
            body: A function of the state that returns the next one: as many values, of the same shapes and types.
            *initial: The state before the loop: values, arrays and numbers.

        Returns:
            The state after the loop.
        """
        b = self._builder
        values = [self._value("while_loop", x) for x in initial]
        if not all(x.view.count for x in values):
            return self._loop_without_empty(condition, body, values)
        elements = [self._vector(x, range(x.rank)) if x.view.count == 1 else None for x in values]
        before, after, snapshot, blocks, outer = (
            b.block,
            self._preceding(),
            self._snapshot(),
            self._blocks(),
            self._region,
        )
        head = b.new_block("while")
        b.at_end(head)
        phis = [None if x is None else self._phi(x.type, [(x, before)]) for x in elements]
        with self._unfinished_on_error("while_loop"), self._new_region():
            carried = [self._carried(x, phi, outer, after) for x, phi in zip(values, phis, strict=True)]
            test = self._test(condition, [c.value for c in carried])
            results = self._iteration(test, body, [c.value for c in carried])
            cycles = _cycles(carried, results)
            inner: list[_UnrolledTest] = []
            for number in range(1, _cycle_period(cycles)):
                inner.append(self._inner_test(condition, carried, results, _memory_after(cycles, number)))
                results = self._iteration(inner[-1].test, body, inner[-1].state)
            in_place = [c.is_in_place(x) for c, x in zip(carried, results, strict=True)]
            self._carry([(c, x) for c, x, is_there in zip(carried, results, in_place, strict=True) if not is_there])
            b.branch(head)
        end = b.new_block("done", after=inner[0].back if inner else None)  # the last block
        test.leave(b, end)
        for each in inner:
            each.test.leave(b, each.back)
            b.at_end(each.back)
            b.branch(end)
        if inner:
            b.at_end(end)
            exits = [[(cast("ir.Value", each.elements[k]), each.back) for each in inner] for k in range(len(phis))]
            phis = [
                p and self._phi(p.value.type, [(p.value, test.block), *others])
                for p, others in zip(phis, exits, strict=True)
            ]
        self._close(blocks, phis)
        self._tokens, self._vectors = snapshot.tokens, snapshot.vectors
        b.at_end(before)
        moving = {number for cycle in cycles for number in cycle}
        final = [
            self._of_vector(phi.value, c.initial.shape, c.initial.dtype)
            if phi
            else self._enter(c, outer, is_in_place=is_there and number not in moving)
            for number, (c, is_there, phi) in enumerate(zip(carried, in_place, phis, strict=True))
        ]
        b.branch(head)
        b.at_end(end)
        return tuple(final)

    def _loop_without_empty(
        self, condition: Callable[..., Operand], body: Callable[..., Any], initial: Sequence[Value]
    ) -> tuple[Value, ...]:
        """A loop that does not carry the tensors without elements of its state."""

        def with_empty(state: Sequence[Value]) -> list[Value]:
            elements = iter(state)
            return [next(elements) if x.view.count else x for x in initial]

        def step(*state: Value) -> list[Value]:
            following = self._results("while_loop", "the body", body(*with_empty(state)), initial)
            return [x for x in following if x.view.count]

        carried = [x for x in initial if x.view.count]
        return tuple(with_empty(self.while_loop(lambda *state: condition(*with_empty(state)), step, *carried)))

    def conditional(
        self, predicate: Operand, if_true: Callable[..., Any], if_false: Callable[..., Any], *operands: Operand
    ) -> tuple[Value, ...]:
        """The results of one of two functions; the other one does not run.

        Args:
            predicate: A bool without dimensions.
            if_true: A function of the operands.
            if_false: A function of the operands that returns as many values, of the same shapes and types.
            *operands: What the functions are passed; they may use other values as well.
        """
        holds = self._predicate("conditional", "the predicate", predicate)
        return self._branches("conditional", [holds], {"if_true": if_true, "if_false": if_false}, operands)

    def switch(self, index: Operand, branches: Sequence[Callable[..., Any]], *operands: Operand) -> tuple[Value, ...]:
        """The results of the function at an index; of the last one if there is none at that index, as in XLA.

        Args:
            index: An integer without dimensions.
            branches: Functions of the operands that return as many values, of the same shapes and types.
            *operands: What the functions are passed; they may use other values as well.
        """
        number = self._value("switch", index)
        if number.shape or number.dtype.kind not in "iu":
            self._fail("switch", f"the index is {number!r}: it must be a scalar integer")
        if not branches:
            self._fail("switch", "expected at least one branch")
        scalar = self._scalar_integer(number)
        tests = [self._builder.icmp("eq", scalar, k) for k in range(len(branches) - 1)]
        functions = {f"branch {k}": branch for k, branch in enumerate(branches)}
        return self._branches("switch", tests, functions, operands)

    def cumulative(self, name: str, x: Operand, axis: int, *, reverse: bool = False, exclusive: bool = False) -> Value:
        """The sums, products, greatest or least of all elements up to each one along a dimension.

        Sums and products of half and bfloat are computed in float and rounded once each.

        Args:
            name: `sum`, `product`, `max` or `min`.
            x: The tensor.
            axis: The dimension.
            reverse: Whether to begin with the last element.
            exclusive: Whether the element itself is left out: the first result is the neutral element.
        """
        if name not in _CUMULATIVE:
            self._fail("cumulative", f"{name!r} is not one of {', '.join(_CUMULATIVE)}")
        value = self._reducible(name, x)
        along = self._axis(name, axis, value.rank)
        if not value.view.count:
            return value
        wide = self._accumulated(value) if name in ("sum", "product") else value
        length, inner = value.shape[along], math.prod(value.shape[along + 1 :])
        rows = value.view.count // (length * inner)
        source = self._materialized(self.reshape(wide, (rows, length, inner)))
        result = self._buffer((rows, length, inner), wide.dtype)
        neutral = self.full((rows, 1, inner), neutral_element(name, wide.dtype), wide.dtype)
        start, shape = (0, length - 1 if reverse else 0, 0), (rows, 1, inner)
        first, written = (self._with_view(v, v.view.sliced(start, shape, (1, 1, 1))) for v in (source, result))
        self._write(written, neutral if exclusive else first)
        if length > 1:
            steps = _CumulativeSteps(
                self._operation(_CUMULATIVE[name], wide.dtype), reverse=reverse, exclusive=exclusive
            )
            accumulate = self._accumulate_elements if inner == 1 else self._accumulate_rows
            accumulate(source, result, steps)
        return self.convert(self.reshape(result, value.shape), value.dtype)

    def cumsum(self, x: Operand, axis: int) -> Value:
        """The sums of all elements up to each one along a dimension, as `numpy.cumsum`."""
        return self.cumulative("sum", x, axis)

    def _accumulate_rows(self, source: Value, result: Value, steps: _CumulativeSteps) -> None:
        """A step for all rows and inner positions at once."""
        rows, length, inner = source.shape

        def at(x: Value, step: ir.Value) -> Value:
            return self._box(x, [_ZERO, steps.place(self._builder, length, step), _ZERO], (rows, 1, inner))

        with self._loop_from(1, length) as state:
            before = self._builder.sub(state.index, 1)
            new = at(source, before if steps.exclusive else state.index)
            total = self._elementwise("cumulative", steps.operation, [at(result, before), new], source.dtype)
            self._write(at(result, state.index), total)

    def _accumulate_elements(self, source: Value, result: Value, steps: _CumulativeSteps) -> None:
        """One row after the other, with the last result in a register."""
        b, length, type_ = self._builder, source.shape[1], type_of(source.dtype)

        def at(x: Value, row: ir.Value, step: ir.Value) -> ir.Value:
            place = steps.place(b, length, step)
            return self._box(x, [row, place, _ZERO], (1, 1, 1)).buffer.operand

        with self._loop(source.shape[0]) as row:
            first = b.load(type_, at(result, row, _ZERO), bytes_of(type_))
            with self._loop_from(1, length, [first]) as state:
                step = b.sub(state.index, 1) if steps.exclusive else state.index
                new = b.load(type_, at(source, row, step), bytes_of(type_))
                total = steps.operation.emit(b, type_, [state.carried[0], new])
                b.store(total, at(result, row, state.index), bytes_of(type_))
                state.next(total)

    # Loops -----------------------------------------------------------------------------------------------------

    def _phi(self, type_: Type, incoming: Sequence[tuple[ir.Value, Block]]) -> Instruction:
        self._builder.phi(type_, incoming, "state")
        return self._builder.block.instructions[self._builder.index - 1]

    def _carried(self, x: Value, phi: Instruction | None, outer: int, after: Instruction | Block) -> _LoopCarriedValue:
        """The state of a loop in the region where an iteration begins."""
        if phi is not None:
            return _LoopCarriedValue(x, self._of_vector(phi.value, x.shape, x.dtype), phi)
        if not self._is_writable(x, outer):
            return _LoopCarriedValue(x, self._buffer(x.shape, x.dtype))
        value = self._overwritten(self._canonical(x), after)
        assert value.buffer.memory is not None
        value.buffer.memory.region = self._region
        return _LoopCarriedValue(x, value, is_in_initial_memory=True)

    def _test(self, condition: Callable[..., Operand], state: Sequence[Value]) -> _LoopTest:
        """Test whether there is another iteration, which begins in a new block."""
        with self._new_region():  # the condition does not overwrite the state
            holds = self._predicate("while_loop", "the condition", condition(*state))
        return _LoopTest(self._builder.block, holds, self._builder.new_block("do"))

    def _iteration(self, test: _LoopTest, body: Callable[..., Any], state: Sequence[Value]) -> list[Value]:
        """Run the body; returns the next state."""
        self._builder.at_end(test.start)
        return self._results("while_loop", "the body", body(*state), state)

    def _inner_test(
        self,
        condition: Callable[..., Operand],
        carried: Sequence[_LoopCarriedValue],
        results: Sequence[Value],
        homes: Mapping[int, int],
    ) -> _UnrolledTest:
        """End an iteration that leaves some tensors in the memory of others; returns the test of the next one."""
        b = self._builder
        state = self._exchange(carried, results, homes)
        again = b.new_block("while")
        b.branch(again)
        b.at_end(again)
        test = self._test(condition, state)
        snapshot, back = self._snapshot(), b.new_block("back", after=test.start)
        b.at_end(back)
        self._carry([(carried[k], state[k]) for k, home in homes.items() if k != home])
        elements = [self._vector(x, range(x.rank)) if c.phi else None for c, x in zip(carried, state, strict=True)]
        self._restore(snapshot)
        return _UnrolledTest(test, state, b.block, elements)

    def _exchange(
        self, carried: Sequence[_LoopCarriedValue], results: Sequence[Value], homes: Mapping[int, int]
    ) -> list[Value]:
        """The next state: each tensor in the memory of its home, or in its own; single elements in registers."""
        places = [carried[homes.get(k, k)] for k in range(len(carried))]
        is_moved = [c.phi is None and not c.is_at(x) for c, x in zip(places, results, strict=True)]
        state = list(results)
        tokens = {k: self._row_major_token(results[k]) for k, moved in enumerate(is_moved) if moved}
        for k, c in enumerate(carried):
            if c.phi:
                state[k] = self._of_vector(self._vector(state[k], range(state[k].rank)), state[k].shape, state[k].dtype)
        for k, token in tokens.items():
            self._store(places[k].value, token)
            state[k] = self._overwritten(places[k].value, self._preceding())
        return state

    def _carry(self, moved: Sequence[tuple[_LoopCarriedValue, Value]]) -> None:
        """Make results the state of the next iteration; they may lie in each other's memory."""
        vectors = [self._vector(x, range(x.rank)) if c.phi else self._row_major_token(x) for c, x in moved]
        for (c, _), vector in zip(moved, vectors, strict=True):
            if c.phi is None:
                self._store(c.value, cast("ir.Local", vector))
                self._overwritten(c.value, self._preceding())
            else:
                add_incoming(c.phi, vector, self._builder.block.name)

    def _enter(self, c: _LoopCarriedValue, outer: int, *, is_in_place: bool) -> Value:
        """Write the initial value where the loop carries it; returns the value after the loop."""
        if c.phi is not None:
            return c.value
        buffer = c.value.buffer
        assert buffer.memory is not None
        buffer.memory.region = outer
        if is_in_place and not buffer.is_overwritten:  # never written
            if c.is_in_initial_memory:
                buffer.memory.writes.pop()
                return c.initial
            if self._replace_memory(c.value, c.initial):
                return c.initial
        if not c.is_in_initial_memory:
            self._store(c.value, self._row_major_token(c.initial))
        return self._make(c.value.dtype, c.value.view, replace(buffer, version=len(buffer.memory.writes)))

    def _replace_memory(self, x: Value, by: Value) -> bool:
        """Use the memory of another value instead of a buffer that nothing writes, if it lies there in the same way."""
        source, pointer = by.buffer, x.buffer.operand
        if not source.in_memory or source.is_overwritten or not by.view.is_dense(range(by.rank)):
            return False
        assert isinstance(pointer, ir.Local)
        self._replace_buffer(pointer, source.operand, stored_type(x.dtype), by.view.offset)
        return True

    # Branches --------------------------------------------------------------------------------------------------

    def _branches(
        self,
        operation: str,
        tests: Sequence[ir.Value],
        functions: Mapping[str, Callable[..., Any]],
        operands: Sequence[Operand],
    ) -> tuple[Value, ...]:
        """Run the function of the first test that holds, else the last one."""
        b = self._builder
        values = [self._value(operation, x) for x in operands]
        after, snapshot, blocks = self._preceding(), self._snapshot(), self._blocks()
        paths: list[_BranchEnd] = []
        with self._unfinished_on_error(operation):
            for k, (name, function) in enumerate(functions.items()):
                otherwise: Block | None = None
                if k < len(tests):
                    inside, otherwise = b.if_else_blocks(tests[k], ("then", "else"))
                    b.at_end(inside)
                self._restore(snapshot)
                results = self._results(operation, name, function(*values), paths[0].results if paths else None)
                places = [None if x.buffer.is_overwritten else _place(x) for x in results]
                paths.append(_BranchEnd(b.block, results, places, self._snapshot()))
                b.at_end(otherwise or b.block)
        join = b.new_block("joined")
        count = len(paths[0].results)
        in_place = [
            len({path.places[k] for path in paths}) == 1 and paths[0].places[k] is not None for k in range(count)
        ]
        vectors = [self._leave(path, join, in_place) for path in paths]
        self._merge(snapshot, paths, after)
        b.at_end(join)
        final: list[Value] = []
        phis: list[Instruction] = []
        for k, (x, is_in_place) in enumerate(zip(paths[0].results, in_place, strict=True)):
            if is_in_place:
                memory = x.buffer.memory
                final.append(
                    self._make(x.dtype, x.view, replace(x.buffer, version=len(memory.writes) if memory else 0))
                )
                continue
            incoming = [(cast("ir.Value", v[k]), path.block) for v, path in zip(vectors, paths, strict=True)]
            phis.append(self._phi(incoming[0][0].type, incoming))
            final.append(self._of_vector(phis[-1].value, x.shape, x.dtype))
        self._close(blocks, phis)
        return tuple(final)

    def _leave(self, path: _BranchEnd, join: Block, in_place: Sequence[bool]) -> list[ir.Value | None]:
        """The vectors of the results of a branch that are not in place, and the jump out of it."""
        self._restore(path.snapshot)
        self._builder.at_end(path.block)
        vectors = [
            None if is_in_place else self._vector(x, range(x.rank))
            for x, is_in_place in zip(path.results, in_place, strict=True)
        ]
        self._builder.branch(join)
        return vectors

    def _merge(self, snapshot: _Snapshot, paths: Sequence[_BranchEnd], after: Instruction | Block) -> None:
        """Restore what was available before the branches; memory that one of them overwrote counts as overwritten."""
        self._restore(snapshot)
        for memory, writes in snapshot.writes.items():
            if any(len(path.snapshot.writes[memory]) > len(writes) for path in paths):
                memory.writes.append(after)

    # What is known ---------------------------------------------------------------------------------------------

    @contextmanager
    def _unfinished_on_error(self, operation: str) -> Generator[None]:
        """Remember an operation that an error ends before its blocks are complete."""
        try:
            yield
        except BaseException:
            self._unfinished = self._unfinished or operation
            raise

    @contextmanager
    def _new_region(self) -> Generator[None]:
        """A region in which the memory of others must not be overwritten, since it may run several times."""
        outer = self._region
        self._regions += 1
        self._region = self._regions
        yield
        self._region = outer

    def _snapshot(self) -> _Snapshot:
        return _Snapshot(self._tokens.copy(), self._vectors.copy(), {m: m.writes.copy() for m in self._memories})

    def _restore(self, snapshot: _Snapshot) -> None:
        self._tokens, self._vectors = snapshot.tokens.copy(), snapshot.vectors.copy()
        for memory, writes in snapshot.writes.items():
            memory.writes = writes.copy()

    def _blocks(self) -> set[int]:
        return {id(block) for block in self._builder.function.blocks}

    def _close(self, outside: set[int], results: Sequence[Instruction | None]) -> None:
        """Make the values of the added blocks unavailable from here on, except for results."""
        inside = [block for block in self._builder.function.blocks if id(block) not in outside]
        defined = {f"%{i.result}" for block in inside for i in block.instructions if i.result is not None}
        self._closed |= defined - {f"%{i.result}" for i in results if i is not None}

    # Arguments -------------------------------------------------------------------------------------------------

    def _predicate(self, operation: str, name: str, x: Operand) -> ir.Value:
        """A bool without dimensions."""
        value = self._value(operation, x)
        if value.shape or value.dtype != BOOL:
            self._fail(operation, f"{name} is {value!r}: it must be a scalar bool")
        return self._scalar(value)

    def _results(self, operation: str, name: str, returned: Any, expected: Sequence[Value] | None) -> list[Value]:
        """What a function returned, as values of the expected shapes and types."""
        items: Sequence[Any] = cast("Sequence[Any]", returned) if isinstance(returned, (tuple, list)) else [returned]
        if expected is None:
            return [self._value(operation, x) for x in items]
        if len(items) != len(expected):
            self._fail(operation, f"{name} returns {len(items)} values instead of {len(expected)}")
        values: list[Value] = []
        for k, (x, like) in enumerate(zip(items, expected, strict=True)):
            value = self._value(operation, x, like.dtype)
            if value.shape != like.shape or value.dtype != like.dtype:
                self._fail(operation, f"{name} returns {value!r} instead of {like!r} as value {k}")
            values.append(value)
        return values


def _cycles(carried: Sequence[_LoopCarriedValue], results: Sequence[Value]) -> list[list[int]]:
    """The cycles in which large tensors of a state exchange their memory: each moves to the memory of the next one.

    The last one of a chain is new; it moves to the memory of the first one, which is free: `(a, b, c) -> (f(a), a, b)`
    is the cycle `c -> b -> a -> c`.
    """
    large = [k for k, c in enumerate(carried) if c.phi is None and _bytes(c.value) >= _EXCHANGED_BYTES]
    following: dict[int, int] = {}
    taken = {k for k in large if carried[k].is_at(results[k])}
    for k in (k for k in large if k not in taken):
        for home in (other for other in large if carried[other].is_at(results[k])):
            is_alike = (carried[k].value.shape, carried[k].value.dtype) == (results[home].shape, results[home].dtype)
            if is_alike and home not in taken:
                following[k] = home
                taken.add(home)
    cycles: list[list[int]] = []
    starts = [k for k in following if k not in taken]  # then, cycles without a new tensor
    for start in (*starts, *following):
        if any(start in cycle for cycle in cycles):
            continue
        cycle = [start]
        while (home := following.get(cycle[-1], start)) != start:
            cycle.append(home)
        if _cycle_period([*cycles, cycle]) <= _MOST_BODIES:
            cycles.append(cycle)
    return cycles


def _cycle_period(cycles: Sequence[Sequence[int]]) -> int:
    """Number of iterations after which all tensors are back in their own memory."""
    return math.lcm(*map(len, cycles))


def _memory_after(cycles: Sequence[Sequence[int]], iterations: int) -> dict[int, int]:
    """For each tensor of the cycles, the tensor whose memory it occupies after some iterations."""
    return {k: cycle[(at + iterations) % len(cycle)] for cycle in cycles for at, k in enumerate(cycle)}


def _bytes(x: Value) -> int:
    return x.view.count * x.dtype.itemsize


def _place(x: Value) -> tuple[str, View] | None:
    return (x.buffer.operand.typed, x.view) if x.buffer.in_memory or not x.view.count else None
