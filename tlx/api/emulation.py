"""Compiled modules for other machines, whose functions are called on numpy arrays under an emulator.

    module = compile_emulated("gemm.ll", "generic", "qemu-ppc64le -cpu power10")
    module.gemm(a, b, c)

All functions of a module are in one program, which keeps running between calls. Arrays are copied to it and back.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tlx.api.arguments import ArgumentError, checked_argument, empty_result
from tlx.api.compiler import FunctionNamespace
from tlx.api.files import FORMAT_BY_NAME
from tlx.api.lowering import Compilation, LoweredSource, SourceInput, lower_source, refused_functions
from tlx.api.signatures import CallParameter, Prototype
from tlx.api.wrappers import quoted_name, slot_wrapper_definition
from tlx.diagnostics import UsageError, counted
from tlx.intrinsics.numpy_types import memory_dtype
from tlx.ir.module import Module
from tlx.ir.prepared import preparation_name
from tlx.ir.types import I1, PTR, VOID, PointerType, VectorType
from tlx.llvm.emulator import (
    TABLE,
    EmulatedArray,
    EmulatedProgram,
    Guard,
    compile_ir,
    emulator_command,
    emulator_triple,
    toolchain,
)
from tlx.lower.options import Options

if TYPE_CHECKING:
    from tlx.intrinsics.numpy_types import Array
    from tlx.target.target import Target

_SLOTS: Final = "tlx.slots."


@dataclass(frozen=True, slots=True)
class _Preparation:
    """The function that prepares constant arguments.

    Attributes:
        function: Its number in the program.
        numbers: The arguments.
        sizes: Bytes of their blocks.
    """

    function: int
    numbers: tuple[int, ...]
    sizes: tuple[int, ...]


class EmulatedFunction:
    """A function of a module that runs under an emulator.

    Args:
        prototype: Its parameters and result.
        program: The program.
        function: Its number in the program.
        workspace: Bytes of workspace that the code takes as its last argument.
        preparation: The function that prepares the arguments that are constant over calls, if there are any.
    """

    def __init__(
        self,
        prototype: Prototype,
        program: EmulatedProgram,
        function: int,
        workspace: int = 0,
        preparation: _Preparation | None = None,
    ) -> None:
        self.prototype = prototype
        self._program, self._function = program, function
        self._workspace, self._preparation = workspace, preparation

    def __repr__(self) -> str:
        return f"<emulated {self.prototype.result} @{self.prototype.name}>"

    def __call__(self, *arguments: Any) -> Any:
        """Call the function; arguments that are constant over calls are prepared first.

        Raises:
            ArgumentError: An argument does not fit.
            EmulationError: The program fails.
        """
        returned, _ = self.call_guarded(arguments)
        return returned

    call_prepared = __call__

    def call_guarded(self, arguments: Sequence[Any], guard: Guard = "before") -> tuple[Any, list[bool]]:
        """Call the function with its arrays next to inaccessible pages, so that an access beyond their ends faults.

        Args:
            arguments: The arguments.
            guard: Where the inaccessible page of each array is.

        Returns:
            The result, and for each argument whether the memory on its other side is unchanged.

        Raises:
            ArgumentError: An argument does not fit.
            EmulationError: The program fails, or accesses an inaccessible page.
        """
        prototype = self.prototype
        if len(arguments) != len(prototype.parameters):
            names = ", ".join(p.name for p in prototype.parameters)
            expected = f"takes {counted(len(prototype.parameters), 'argument')} ({names})"
            raise ArgumentError(f"@{prototype.name} {expected}, got {len(arguments)}")
        checked = [
            _in_memory(checked_argument(number, parameter, value), parameter, value)
            for number, (parameter, value) in enumerate(zip(prototype.parameters, arguments, strict=True))
        ]
        arrays = [EmulatedArray(array, guard) for array in checked]
        numbers = list(range(len(arrays)))
        calls: list[tuple[int, Sequence[int]]] = []
        if self._preparation is not None:
            pairs: list[int] = []
            for number, size in zip(self._preparation.numbers, self._preparation.sizes, strict=True):
                pairs += [len(arrays), number]
                numbers[number] = len(arrays)
                arrays.append(EmulatedArray(np.zeros(size, np.uint8)))
            calls.append((self._preparation.function, pairs))
        if self._workspace:
            numbers.append(len(arrays))
            arrays.append(EmulatedArray(np.zeros(self._workspace, np.uint8)))
        result = None if prototype.result == VOID else empty_result(prototype.result)
        if result is not None:
            numbers.append(len(arrays))
            arrays.append(EmulatedArray(result))
        calls.append((self._function, numbers))
        intact = self._program.call(arrays, calls)
        for value, array, parameter in zip(arguments, checked, prototype.parameters, strict=True):
            if isinstance(value, np.ndarray) and array is not value and parameter.is_result:
                value.reshape(-1)[:] = array[: value.size]
        return self._returned(result), intact[: len(arguments)]

    def _returned(self, result: Array | None) -> Any:
        if result is None or isinstance(self.prototype.result, VectorType):
            return result
        return bool(result[0] & 1) if self.prototype.result == I1 else result[0].item()


def _in_memory(checked: Any, parameter: CallParameter, value: Any) -> Array:
    """A checked argument as an array of its elements, in the byte order of the emulated machine.

    A number becomes an array of one element.
    """
    if not isinstance(checked, np.ndarray):
        return np.array([checked], memory_dtype(parameter.type))
    array = cast("Array", checked)
    return array.view(cast("Array", value).dtype) if isinstance(value, np.ndarray) and array is not value else array


class EmulatedModule(FunctionNamespace[EmulatedFunction]):
    """A compiled module of another machine: its functions are attributes, or items if the name is not an identifier."""

    def __init__(
        self,
        functions: dict[str, EmulatedFunction],
        refused: dict[str, UsageError],
        entry: str | None,
        lowered: str,
        program: EmulatedProgram,
    ) -> None:
        super().__init__(functions, refused, entry, lowered)
        self._program = program

    def close(self) -> None:
        """End the program; a later call starts it again."""
        self._program.close()


def compile_emulated(
    source: Module | str | os.PathLike[str],
    target: Target | str,
    emulator: str,
    *,
    entry: str | None = None,
    opt_level: int = 2,
    options: Options | None = None,
    cpu_seconds: int | None = None,
    compiler: str = "",
) -> EmulatedModule:
    """Lower and compile a module for another machine, and link a program that runs under an emulator.

    Args:
        source: A module (it is not changed), a text, or the path of a file.
        target: The machine to aim at: a target or its name.
        emulator: The command of the emulator, such as `qemu-ppc64le -cpu power10`.
        entry: Name of the function that `entry` is; needed only if there are several.
        opt_level: LLVM's optimisation level, 0 to 3.
        options: Options of the lowering. Without a triple, that of the emulator is used.
        cpu_seconds: CPU time after which the program ends; None for no limit.
        compiler: A clang that compiles the lowered module, such as `clang-16`, in place of TLX's LLVM.

    Raises:
        TlxError: The module is wrong or cannot be lowered; the emulator or a cross compiler is not installed.
    """
    from tlx.ir.builder import GOMP_PARALLEL
    from tlx.llvm.codegen import emit_code
    from tlx.llvm.loader import RUNTIME_FUNCTIONS, runtime_object

    options = options or Options()
    options = replace(options, triple=options.triple or emulator_triple(emulator))
    if not options.triple:
        raise UsageError(f"emulator '{emulator}': name the triple of its programs with --mtriple=")
    command, tools = emulator_command(emulator, options.triple), toolchain(options.triple)
    compilation = Compilation(SourceInput.of(source, FORMAT_BY_NAME), FORMAT_BY_NAME, target, options, opt_level, entry)
    lowered = lower_source(compilation)
    refused = refused_functions(lowered.defined)
    for prototype in lowered.called:
        if isinstance(prototype.result, PointerType):
            reason = "returns a pointer, which means nothing outside the emulated program"
            refused[prototype.name] = UsageError(f"@{prototype.name} {reason}", prototype.span)
    called = [prototype for prototype in lowered.called if prototype.name not in refused]
    text = str(lowered.module)
    table = _Table(lowered)
    numbers = {p.name: table.add(lowered.lowered_prototype(p.name)) for p in called}
    preparations = {p.name: _preparation(table, lowered, p) for p in called if p.name in lowered.blocks}
    features = ",".join(options.features)
    if compiler:
        image = compile_ir(compiler, text, options.triple, opt_level)
        calls = emit_code(table.standalone_module, "obj", opt_level, options.cpu, features, triple=options.triple)
        objects = {"module.o": image, "table.o": calls}
    else:
        image = emit_code(text + table.text, "obj", opt_level, options.cpu, features, triple=options.triple)
        objects = {"module.o": image}
    if any(name.encode() in image for name in RUNTIME_FUNCTIONS):
        objects["runtime.o"] = runtime_object(options.triple)
    program = EmulatedProgram(tools, command, objects, threads=GOMP_PARALLEL in text, cpu_seconds=cpu_seconds)
    functions = {
        p.name: EmulatedFunction(p, program, numbers[p.name], lowered.workspaces[p.name], preparations.get(p.name))
        for p in called
    }
    return EmulatedModule(functions, refused, entry, text, program)


class _Table:
    """The table of a program's functions."""

    def __init__(self, lowered: LoweredSource) -> None:
        self._lowered = lowered
        self._definitions: list[str] = []
        self._declarations: dict[str, None] = {}

    def add(self, prototype: Prototype) -> int:
        """The number of a function."""
        number = len(self._definitions)
        features = self._lowered.attributes.get(prototype.name, "")
        self._definitions.append(slot_wrapper_definition(prototype, f"{_SLOTS}{number}", features))
        types = ", ".join(str(parameter.type) for parameter in prototype.parameters)
        self._declarations[f"declare {prototype.result} {quoted_name(prototype.name)}({types})\n"] = None
        return number

    @property
    def standalone_module(self) -> str:
        """A module of its own, which declares the functions."""
        return "".join([*self._declarations, self.text])

    @property
    def text(self) -> str:
        """Its definition, and those of the functions in it."""
        entries = ", ".join(f"ptr @{_SLOTS}{number}" for number in range(len(self._definitions)))
        count = len(self._definitions)
        table = f"\n@{TABLE} = constant [{count} x ptr] [{entries}]\n"
        return "".join([table, *self._definitions])


def _preparation(table: _Table, lowered: LoweredSource, prototype: Prototype) -> _Preparation:
    """What prepares a function's constant arguments."""
    numbers = tuple(n for n, p in enumerate(prototype.parameters) if p.is_constant)
    sizes = lowered.blocks[prototype.name]
    parameters = tuple(CallParameter(f"%{n}", PTR) for n in range(2 * len(numbers)))
    function = table.add(Prototype(preparation_name(prototype.name), VOID, parameters))
    return _Preparation(function, numbers, sizes)
