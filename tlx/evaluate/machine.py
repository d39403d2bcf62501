"""The machine: runs functions of a module."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tlx.diagnostics import EvaluationError, Note, Span
from tlx.evaluate.arguments import map_arguments, pass_byval_copies, to_python, to_value
from tlx.evaluate.compiler import BlockCode, FunctionCode, compile_function
from tlx.evaluate.context import RESULT_SLOT, STACK_SLOT, CallSite, Frame, MachineContext, Step, ThreadTeam
from tlx.evaluate.globals import SymbolTable, named_type_bodies
from tlx.evaluate.intrinsics.table import find_implementation
from tlx.evaluate.memory import AddressSpace, Layout
from tlx.evaluate.target_semantics import AssemblyTable, register_shapes
from tlx.evaluate.values import Codecs, RuntimeValue
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse

MAX_STEPS: Final = 100_000_000
_MAX_DEPTH: Final = 1000
_FRAMES_PER_CALL: Final = 8
_OLD_I128: Final = re.compile(r'(?m)^target datalayout = "(?![^"]*i128:128)e-[^"]*S128"')


class _DeepRecursion:
    """Python's limit of recursion, which is one for all threads, raised while any of them evaluates."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._limit, _MAX_DEPTH * _FRAMES_PER_CALL))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setrecursionlimit(self._limit)

    def after_fork(self) -> None:
        """In the child there is one thread, and others may have held the lock."""
        self._lock = threading.Lock()


_deep: Final = _DeepRecursion()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_deep.after_fork)


class Machine:
    """Runs functions of a module on numpy memory.

    Globals and heap blocks live as long as the machine, stack memory as long as its function runs, arrays as long as
    the call they are passed to.

    Args:
        module: A module at any stage; functions it keeps as text are parsed.
        max_steps: Instructions one `call` may execute before it is taken for an endless loop.
        foreign: Python functions, by name, for functions the module only declares. They take and return values as
            `tlx.evaluate.values` describes them.
        memory: Where globals, stack and arguments lie; a new one by default. A pointer in it may be an argument. What
            nobody has written there says what `undef` and `poison` are, too.
        team: How many threads parallel regions have, and in which order they are run; one by default.
        assembly: Inline assembly by instruction, in place of what the target says: a processor with other features.
    """

    def __init__(
        self,
        module: Module,
        *,
        max_steps: int = MAX_STEPS,
        foreign: Mapping[str, Callable[..., Any]] | None = None,
        memory: AddressSpace | None = None,
        team: ThreadTeam | None = None,
        assembly: AssemblyTable | None = None,
    ) -> None:
        self.module = _fully_parsed(module)
        self.memory = memory or AddressSpace()
        self._max_steps = max_steps
        self._steps_left = max_steps
        self._depth = 0
        self._codes: dict[str, FunctionCode] = {}
        self._functions = {f.name: f for f in self.module.functions}
        wide = 8 if _OLD_I128.search(self.module.source.text) else 16
        layout = Layout(named_type_bodies(self.module.source), wide, self.memory.undefined, register_shapes)
        codecs = Codecs(layout)
        symbols = SymbolTable(self.module, layout, self.memory, codecs)
        self._context = MachineContext(
            self.module,
            layout,
            self.memory,
            codecs,
            symbols,
            frozenset(self._functions),
            self._call,
            dict(foreign or {}),
            team or ThreadTeam(),
            dict(assembly or {}),
        )

    def call(self, name: str, *args: Any) -> Any:
        """Run a function.

        Args:
            name: The function, without `@`.
            args: One per parameter. A pointer takes a numpy array (its memory is used in place) or an address; an
                integer an int; a floating-point type a number; a vector a one-dimensional array.

        Returns:
            An int (signed; bool for i1; an address for pointers), a numpy scalar, an array for a vector, a tuple for
            a struct, None for void.

        Raises:
            EvaluationError: The program does what LLVM leaves undefined, runs too long, or needs something the
                evaluator does not have. The error has the instruction's place.
        """
        function = self._functions.get(name)
        if function is None:
            raise EvaluationError(f"there is no function @{name} in this module; it has {_listed(self._functions)}")
        if len(args) != len(function.arguments):
            expected = len(function.arguments)
            raise EvaluationError(f"@{name} takes {expected} arguments, got {len(args)}", function.span)
        mapping = map_arguments(self.memory, function, args)
        self._steps_left = self._max_steps
        try:
            values = [to_value(p.type, a, mapping) for p, a in zip(function.arguments, args, strict=True)]
            with _deep, np.errstate(all="ignore"):
                result = self._call(name, values)
        finally:
            self._depth = 0
            mapping.release()
        return to_python(function.signature.result, result)

    def _call(self, name: str, arguments: list[RuntimeValue]) -> RuntimeValue:
        code = self._codes.get(name)
        if code is None:
            if name not in self._functions:
                return self._call_foreign(name, arguments)
            code = self._codes[name] = compile_function(self._context, self._functions[name])
        frame = code.template.copy()
        frame[STACK_SLOT] = []
        if code.copies:
            arguments = pass_byval_copies(self.memory, frame[STACK_SLOT], code.copies, arguments)
        for slot, value in zip(code.arguments, arguments, strict=False):
            frame[slot] = value
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise EvaluationError(f"more than {_MAX_DEPTH} calls inside each other")
        try:
            self._run(code, frame)
        finally:
            self._depth -= 1
            for region in frame[STACK_SLOT]:
                self.memory.release(region, f"went out of scope when @{name} returned")
        return frame[RESULT_SLOT]

    def _call_foreign(self, name: str, arguments: list[RuntimeValue]) -> RuntimeValue:
        if name in self._context.foreign:
            return self._context.foreign[name](*arguments)
        aliased = self._context.symbols.aliased(name)
        if aliased is not None:
            return self._call(aliased, arguments)
        declaration = self.module.declarations.get(name)
        factory = find_implementation(name)
        if factory is not None and declaration is not None:
            types = tuple(a.type for a in declaration.signature.arguments)
            return factory(CallSite(self._context, name, declaration.signature.result, types))(*arguments)
        raise EvaluationError(f"call of @{name}, which is neither in this module nor known to the evaluator")

    def _run(self, code: FunctionCode, frame: Frame) -> None:
        """Run block after block until a `ret`."""
        block = code.entry
        while True:
            self._steps_left -= len(block.steps) + 1
            step = None
            try:
                if self._steps_left < 0:
                    raise EvaluationError(f"more than {self._max_steps} instructions were executed: an endless loop?")
                for step in block.steps:
                    step(frame)
                step = None
                edge = block.exit(frame) if block.exit else None
            except EvaluationError as error:
                raise _located(error, code.function, block, step) from None
            if edge is None:
                return
            if edge.results:
                values = [frame[s] for s in edge.sources]
                for slot, value in zip(edge.results, values, strict=True):
                    frame[slot] = value
            block = edge.target


def evaluate(module: Module, name: str, *args: Any, max_steps: int = MAX_STEPS) -> Any:
    """Run one function of a module on a fresh machine; see `Machine.call`."""
    return Machine(module, max_steps=max_steps).call(name, *args)


def _located(error: EvaluationError, function: Function, block: BlockCode, step: Step | None) -> EvaluationError:
    """The error with the place of the instruction, or a note of the call that led to it."""
    instruction = block.terminator if step is None else block.instructions[block.steps.index(step)]
    span: Span | None = instruction.span if instruction else None
    if error.span is None:
        error.span = span
    elif len(error.notes) < _MAX_NOTES:
        error.notes.append(Note(f"called from @{function.name}", span))
    return error


_MAX_NOTES: Final = 8


def _fully_parsed(module: Module) -> Module:
    """The module with every function parsed, and with places that fit its text."""
    text = str(module)
    name = module.source.name
    if text != module.source.text:
        name = f"{name} (lowered)"
    return parse(text, name, wanted=lambda _text: True)


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(f"@{n}" for n in names) or "none"
