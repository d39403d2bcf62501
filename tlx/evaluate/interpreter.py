"""The interpreter: a machine that compiles functions to Python closures, and runs them.

A function's code is a step for each instruction, block by block, and the edges between blocks.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from tlx.diagnostics import EvaluationError, Note, Span, counted
from tlx.evaluate import arithmetic, memory_access, vectors
from tlx.evaluate.calls import (
    ByvalCopy,
    byval_copies,
    call,
    find_implementation,
    is_array,
    map_arguments,
    pass_byval_copies,
    to_python,
    to_value,
)
from tlx.evaluate.context import (
    RESULT_SLOT,
    STACK_SLOT,
    AssemblyTable,
    CallSite,
    Frame,
    FunctionScope,
    MachineContext,
    Step,
    ThreadTeam,
    register_shapes,
)
from tlx.evaluate.globals import SymbolTable, named_type_bodies
from tlx.evaluate.memory import AddressSpace, Layout
from tlx.evaluate.tensors import StepFactory, elementwise_on_handles
from tlx.evaluate.values import Codecs, RuntimeValue
from tlx.ir.functions import DuplicateFunction, Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Block, Instruction
from tlx.ir.module import Module
from tlx.ir.parser.module import parse_fully
from tlx.ir.prepared import BLOCK_ALIGN, PREPARED, block_sizes, preparation_name
from tlx.ir.types import LABEL
from tlx.ir.values import Value as Operand


@dataclass(eq=False, slots=True)
class BlockCode:
    """A compiled block: its steps with the instruction of each, and the function that returns the next edge."""

    name: str
    steps: list[Step] = field(default_factory=list[Step])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    exit: Exit | None = None
    terminator: Instruction | None = None


@dataclass(eq=False, slots=True)
class Edge:
    """An edge to the block of a number, `successor`: phis read all `sources` before any of `results` is written."""

    successor: int
    sources: list[int]
    results: list[int]


Exit: TypeAlias = Callable[[Frame], Edge | None]
_Call: TypeAlias = Callable[[str, list[RuntimeValue]], RuntimeValue]


class Edges:
    """Makes the edges that leave one block."""

    def __init__(self, scope: FunctionScope, numbers: Mapping[str, int], block: Block) -> None:
        self.scope = scope
        self._numbers = numbers
        self._from = block.name

    def __getitem__(self, successor: str) -> Edge:
        function = self.scope.function
        if successor not in self._numbers:
            raise EvaluationError(f"branch to %{successor}, which is not a block of @{function.name}")
        number = self._numbers[successor]
        phis = function.blocks[number].phis
        sources = [self.scope.slot(self._incoming(phi)) for phi in phis]
        return Edge(number, sources, [self.scope.result(phi) for phi in phis])

    def _incoming(self, phi: Instruction) -> Operand:
        for value, block in phi.incoming:
            if block == self._from:
                return value
        raise EvaluationError(f"phi has no value for the edge from %{self._from}", phi.span)


def terminator(edges: Edges, instruction: Instruction) -> Exit:
    """The exit of a block that ends with `instruction`.

    Raises:
        EvaluationError: The evaluator does not support this terminator.
    """
    match instruction.opcode:
        case "br" if len(instruction.operands) == 1:
            edge = edges[instruction.successors[0]]
            return lambda _frame: edge
        case "br":
            return _conditional(edges, instruction)
        case "switch":
            return _switch(edges, instruction)
        case "ret":
            return _return(edges.scope, instruction)
        case "invoke":
            edge = edges[instruction.successors[0]]
            return lambda _frame: edge
        case "unreachable":
            return _unreachable
        case _:
            raise EvaluationError(f"the evaluator does not run '{instruction.opcode}'", instruction.span)


def _conditional(edges: Edges, instruction: Instruction) -> Exit:
    condition = edges.scope.slot(instruction.operands[0])
    yes, no = (edges[name] for name in instruction.successors)
    return lambda frame: yes if frame[condition] else no


def _switch(edges: Edges, instruction: Instruction) -> Exit:
    scope = edges.scope
    value = scope.slot(instruction.operands[0])
    default, *others = (edges[name] for name in instruction.successors)
    constants = [o for o in instruction.operands[2:] if o.type != LABEL]
    cases = {
        scope.context.symbols.constants.value(constant): edge for constant, edge in zip(constants, others, strict=True)
    }
    return lambda frame: cases.get(frame[value], default)


def _return(scope: FunctionScope, instruction: Instruction) -> Exit:
    if not instruction.operands:
        return lambda _frame: None
    value = scope.slot(instruction.operands[0])

    def leave(frame: Frame) -> None:
        frame[RESULT_SLOT] = frame[value]

    return leave


def _unreachable(_frame: Frame) -> Edge | None:
    raise EvaluationError("reached 'unreachable'")


@dataclass(eq=False, slots=True)
class FunctionCode:
    """A compiled function.

    Attributes:
        blocks: Its blocks by their numbers; the entry is the first.
        template: The frame of a fresh call, constants in place.
        arguments: Slots of the parameters.
        copies: The arguments that are passed as copies (`byval`).
    """

    function: Function
    blocks: list[BlockCode]
    template: Frame
    arguments: list[int]
    copies: tuple[ByvalCopy, ...]


def compile_function(context: MachineContext, function: Function) -> FunctionCode:
    """Compile a function.

    Raises:
        EvaluationError: The evaluator does not support an instruction; the error has its location.
    """
    scope = FunctionScope(context, function)
    numbers = {block.name: number for number, block in enumerate(function.blocks)}
    codes = [_compile_block(scope, block, numbers) for block in function.blocks]
    copies = byval_copies(context.layout, function.name, [(a.type, a.attributes) for a in function.arguments])
    return FunctionCode(function, codes, scope.template, scope.arguments, copies)


def _compile_block(scope: FunctionScope, block: Block, numbers: Mapping[str, int]) -> BlockCode:
    code = BlockCode(block.name)
    for instruction in block.instructions:
        if instruction.opcode in ("phi", "#dbg"):
            continue
        try:
            if not instruction.is_terminator or instruction.opcode == "invoke":
                step = elementwise_on_handles(_step_factory(instruction))(scope, instruction)
                if step is not None:
                    code.steps.append(step)
                    code.instructions.append(instruction)
            if instruction.is_terminator:
                code.exit = terminator(Edges(scope, numbers, block), instruction)
                code.terminator = instruction
        except EvaluationError as error:
            error.span = error.span or instruction.span
            raise
    return code


def _step_factory(instruction: Instruction) -> StepFactory:
    maker = _STEP_FACTORIES.get(instruction.opcode)
    if maker is None:
        raise EvaluationError(f"the evaluator does not run '{instruction.opcode}'")
    return maker


def _no_step(_scope: FunctionScope, _instruction: Instruction) -> None:
    """For `fence`, as threads do not overlap, and `landingpad`, as no exception is ever thrown."""


_STEP_FACTORIES: Final[dict[str, StepFactory]] = {
    **dict.fromkeys(BINARY_OPCODES, arithmetic.binary),
    **dict.fromkeys(CAST_OPCODES, arithmetic.cast),
    "fneg": arithmetic.fneg,
    "freeze": arithmetic.freeze,
    "icmp": arithmetic.compare,
    "fcmp": arithmetic.compare,
    "select": arithmetic.select,
    "extractelement": vectors.extract_element,
    "insertelement": vectors.insert_element,
    "shufflevector": vectors.shuffle,
    "extractvalue": vectors.extract_value,
    "insertvalue": vectors.insert_value,
    "alloca": memory_access.alloca,
    "getelementptr": memory_access.gep,
    "load": memory_access.load,
    "store": memory_access.store,
    "atomicrmw": memory_access.atomic_update,
    "cmpxchg": memory_access.compare_exchange,
    "call": call,
    "invoke": call,
    "fence": _no_step,
    "landingpad": _no_step,
}
MAX_STEPS: Final = 100_000_000
_MAX_DEPTH: Final = 1000
_FRAMES_PER_CALL: Final = 8
_OLD_I128: Final = re.compile(r'(?m)^target datalayout = "(?![^"]*i128:128)e-[^"]*S128"')


class _DeepRecursion:
    """Raises Python's recursion limit, which all threads share, while any of them evaluates."""

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
        """Make a new lock in a forked child: a thread that the child lacks may have held the old one."""
        self._lock = threading.Lock()


_deep: Final = _DeepRecursion()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_deep.after_fork)


class Machine:
    """Runs functions of a module on numpy memory.

    Globals and heap blocks live as long as the machine, stack memory as long as its function runs, arrays as long as
    the call they are passed to.

    Args:
        module: A module at any stage; functions that are still text are parsed. It must not be changed afterwards.
        max_steps: Number of instructions after which a `call` is considered an endless loop.
        foreign: Python functions, by name, for functions the module only declares. They take and return values as
            `tlx.evaluate.values` describes them.
        memory: Memory for globals, stack and arguments; new by default. Addresses in it may be passed to functions.
            `undef` and `poison` have the bytes of its uninitialised memory.
        team: The number of threads of parallel regions, and their order; one thread by default.
        assembly: Inline assembly by instruction, overriding the target's: for a processor with other features.
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
        layout = Layout(
            named_type_bodies(self.module.source),
            wide,
            self.memory.undefined,
            register_shapes,
            is_big_endian=self.module.is_big_endian,
        )
        codecs = Codecs(layout)
        symbols = SymbolTable(self.module, layout, self.memory, codecs)
        self._context = MachineContext(
            self.module,
            layout,
            self.memory,
            codecs,
            symbols,
            self._functions,
            _weak(self._call),
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
            EvaluationError: The program has undefined behaviour, runs too long, or needs something the evaluator does
                not support. The error has the instruction's location.
        """
        function = self._functions.get(name)
        if function is None:
            raise EvaluationError(f"there is no function @{name} in this module; it has {_listed(self._functions)}")
        if len(args) != len(function.arguments):
            expected = counted(len(function.arguments), "argument")
            raise EvaluationError(f"@{name} takes {expected}, got {len(args)}", function.span)
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

    def call_prepared(self, name: str, *args: Any) -> Any:
        """`call` with arrays, also where the function takes prepared blocks: they are prepared first.

        So a function is called alike before and after it is lowered.
        """
        function = self._functions.get(name)
        numbers = [n for n, a in enumerate(function.arguments) if PREPARED in a.attributes] if function else []
        if function is None or not numbers or len(args) != len(function.arguments):
            return self.call(name, *args)
        passed, pairs = list(args), list[int]()
        for number, size in zip(numbers, block_sizes(self.module)[name], strict=True):
            label = f"%{function.arguments[number].name} of @{name}"
            array = args[number]
            if is_array(array):
                array = self.memory.add(memoryview(array.tobytes()), label, BLOCK_ALIGN, writable=False).base
            passed[number] = self.memory.allocate(size, f"the prepared {label}", BLOCK_ALIGN).base
            pairs += [passed[number], array]
        self.call(preparation_name(name), *pairs)
        return self.call(name, *passed)

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
            raise EvaluationError(f"more than {_MAX_DEPTH} nested calls")
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
        raise EvaluationError(f"call to @{name}, which is neither in this module nor known to the evaluator")

    def _run(self, code: FunctionCode, frame: Frame) -> None:
        """Run block after block until a `ret`."""
        block = code.blocks[0]
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
            block = code.blocks[edge.successor]


def _weak(method: _Call) -> _Call:
    """A method as a function that does not refer to the object, which is then freed without a garbage collection."""
    reference = weakref.WeakMethod(method)

    def call(name: str, arguments: list[RuntimeValue]) -> RuntimeValue:
        found = reference()
        assert found is not None
        return found(name, arguments)

    return call


def evaluate(module: Module, name: str, *args: Any, max_steps: int = MAX_STEPS) -> Any:
    """Run one function of a module on a fresh machine; see `Machine.call`."""
    return Machine(module, max_steps=max_steps).call(name, *args)


def _located(error: EvaluationError, function: Function, block: BlockCode, step: Step | None) -> EvaluationError:
    """The error with the location of the instruction, or a note of the call that led to it."""
    instruction = block.terminator if step is None else block.instructions[block.steps.index(step)]
    span: Span | None = instruction.span if instruction else None
    if error.span is None:
        error.span = span
    elif len(error.notes) < _MAX_NOTES:
        error.notes.append(Note(f"called from @{function.name}", span))
    return error


_MAX_NOTES: Final = 8


def _fully_parsed(module: Module) -> Module:
    """The module with every function parsed, and with locations in its current text: itself, if it is like that."""
    text = str(module)
    if text != module.source.text:
        return parse_fully(text, f"{module.source.name} (lowered)")
    is_complete = module.is_parsed_fully and not any(isinstance(item, DuplicateFunction) for item in module.items)
    return module if is_complete else parse_fully(text, module.source.name)


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(f"@{n}" for n in names) or "none"
