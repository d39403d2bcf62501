"""Kernels compiled into this process, or for a device: functions of arrays and numbers."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

import numpy as np

from tlx.api import compiler
from tlx.api.arguments import ArgumentError, array_address
from tlx.api.call import CompiledFunction, LoadedCode
from tlx.api.compiler import Namespace
from tlx.api.device.functions import DeviceFunction
from tlx.api.device.host_copies import HostCopies
from tlx.api.device.streams import between_events, stream_handle
from tlx.api.lowering import grid_of
from tlx.diagnostics import UsageError, counted
from tlx.frontends.tensor_language.analysis.uses import parameter_uses
from tlx.frontends.tensor_language.runtime.arguments import (
    ArgumentPlace,
    Binder,
    BoundArgument,
    common_layout,
    describe,
)
from tlx.frontends.tensor_language.signature import c_parameters, signatures
from tlx.frontends.tensor_language.syntax.nodes import Function, Program
from tlx.frontends.tensor_language.translation import Standard, emitted, parse
from tlx.frontends.tensor_language.types import GroupType
from tlx.llvm.openmp import Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.builder.kernel import Kernel
    from tlx.lower.options import Options
    from tlx.target.target import Target

Groups = SupportsIndex | Sequence[SupportsIndex]
_MAX_GROUPS: Final = 1 << 62


class CompiledKernel(LoadedCode):
    """A kernel that can be called.

    Attributes:
        function: Its syntax tree.
    """

    def __init__(self, function: Function, call: CompiledFunction) -> None:
        self.function = function
        self.__name__ = function.name.text
        self._call = call
        used = parameter_uses(function)
        parameters = c_parameters(function, one_group=False)
        self._names = [p.name.text for p in function.parameters]
        self._binders = [
            Binder(
                ArgumentPlace(k, p, k in used.written, k in used.tested), [c for c in parameters if c.parameter == k]
            )
            for k, p in enumerate(function.parameters)
        ]
        self._offsets = {
            f"{p.name.text}_offset": k
            for k, p in enumerate(function.parameters)
            if isinstance(p.type.type, GroupType) and p.type.type.offset is None
        }
        self.__doc__ = signatures(Program([function]))

    def __repr__(self) -> str:
        parameters = ", ".join(f"{p.name}: {p.type}" for p in self.function.parameters)
        return f"<compiled @{self.function.name.text}({parameters})>"

    def __call__(self, *arguments: Any, groups: Groups = 1, **named: Any) -> None:
        """Run the kernel.

        Args:
            arguments: An array for a memref, a list of arrays for a group, a number for a scalar.
            groups: The number of work-groups along x, or along x, y and z.
            named: Arguments by the parameters' names; for a group `%A` with a dynamic offset also `A_offset`, which is
                0 by default.

        Raises:
            ArgumentError: An argument does not fit.
        """
        counts = _counts(groups)
        offsets = self._pop_offsets(named) if named else {}
        values = self._ordered(arguments, named)
        passed: list[Any] = []
        bound: list[BoundArgument] = []
        for k, (value, binder) in enumerate(zip(values, self._binders, strict=True)):
            if type(value) is np.ndarray and value.flags.num & binder.flags == binder.flags:
                known = binder.cached_layouts.get(common_layout(value))
                address = array_address(value)
                if known is not None and not address % binder.align:
                    passed.append(address)
                    passed += known
                    continue
            bound.append(binder.look(value, offsets.get(k, 0), passed))
        self._call.unchecked(*passed, *counts)
        del bound  # until here it keeps the memory alive that the code accesses

    def _pop_offsets(self, named: dict[str, Any]) -> dict[int, int]:
        """The offsets of groups, taken out of the named arguments."""
        return {self._offsets[n]: _offset(n, named.pop(n)) for n in [*named] if n in self._offsets}

    def _ordered(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Sequence[Any]:
        """The arguments in the order of the parameters."""
        names = self._names
        if not named and len(arguments) == len(names):
            return arguments
        listed = ", ".join(f"%{name}" for name in names)
        kernel = f"@{self.function.name.text} takes {counted(len(names), 'argument')} ({listed})"
        if unknown := [name for name in named if name not in names]:
            raise ArgumentError(f"{kernel}, none of them called {unknown[0]}")
        if twice := [name for name in names[: len(arguments)] if name in named]:
            raise ArgumentError(f"{kernel}, got %{twice[0]} twice")
        missing = [name for name in names[len(arguments) :] if name not in named]
        if len(arguments) > len(names) or missing:
            got = f"got {len(arguments) + len(named)}"
            raise ArgumentError(f"{kernel}, {f'%{missing[0]} is missing' if named else got}")
        return [*arguments, *(named[name] for name in names[len(arguments) :])]


class DeviceKernel(CompiledKernel):
    """A kernel for a device, which takes arrays in its memory, and numpy arrays, which are copied."""

    def __init__(self, function: Function, call: DeviceFunction) -> None:
        super().__init__(function, call)
        self._on_device = call

    def __call__(
        self,
        *arguments: Any,
        groups: Groups = 1,
        stream: object = None,
        wait_for: object = None,
        record: object = None,
        **named: Any,
    ) -> None:
        """Run the kernel; the call waits for it only if numpy arrays are copied.

        Args:
            arguments: As for `CompiledKernel`, or arrays of the device.
            groups: The number of work-groups along x, or along x, y and z.
            stream: The stream in whose order the kernel runs and memory is copied.
            wait_for: An event, or a sequence of events, after which they do.
            record: An event, or a sequence of events, to record after them.
            named: As for `CompiledKernel`.

        Raises:
            ArgumentError: An argument does not fit.
            TlxError: The device refuses the kernel.
        """
        counts = _counts(groups)
        offsets = self._pop_offsets(named)
        values = self._ordered(arguments, named)
        function = self._on_device
        handle = stream_handle(stream)
        code = function.device
        with between_events(code, handle, wait_for, record), code.current(), HostCopies(code, handle) as copies:
            checked = [
                binder.on_device(value, offsets.get(k, 0), copies, function)
                for k, (value, binder) in enumerate(zip(values, self._binders, strict=True))
            ]
            passed = [value for values_of in checked for value in values_of()]
            function.launch([*passed, *counts], handle)


def _compiled_kernel(function: Function, call: CompiledFunction) -> CompiledKernel:
    return DeviceKernel(function, call) if isinstance(call, DeviceFunction) else CompiledKernel(function, call)


class CompiledKernels(LoadedCode, Namespace[CompiledKernel]):
    """Compiled kernels, as attributes, or as items if the name is no Python identifier.

    Attributes:
        program: The syntax tree.
        lowered: The LLVM IR that was compiled.
    """

    def __init__(self, program: Program, compiled: compiler.CompiledModule) -> None:
        self.program = program
        self.lowered = compiled.lowered
        super().__init__({f.name.text: _compiled_kernel(f, compiled[f.name.text]) for f in program.functions})

    def __repr__(self) -> str:
        return f"<compiled kernels {', '.join(f'@{name}' for name in self._named)}>"

    def __getitem__(self, name: str) -> CompiledKernel:
        """The kernel of that name.

        Raises:
            UsageError: There is none.
        """
        if name not in self._named:
            known = ", ".join(f"@{known}" for known in self._named) or "none"
            raise UsageError(f"there is no kernel @{name}; the program has {known}")
        return self._named[name]


def compile(  # noqa: A001 (named as tlx.compile)
    source: str | os.PathLike[str] | Program | Kernel,
    target: Target | str = "native",
    *,
    std: Standard = "v2",
    threads: Threads = "none",
    opt_level: int = 2,
    options: Options | None = None,
) -> CompiledKernels:
    """Compile kernels; the result has a function for each, which takes numpy arrays, and for a GPU also its arrays.

    Args:
        source: A text, the path of a file, a syntax tree, or a kernel written in Python.
        target: The target, which must run on this machine; a target or its name, such as "nvidia".
        std: Version of the language that a text is written in.
        threads: The library that runs work-groups in parallel on a CPU; a GPU needs none.
        opt_level: LLVM's optimisation level, 0 to 3.
        options: How to lower.

    Raises:
        TlxError: The source is wrong, or cannot be lowered.
    """
    program, name = _program(source, std)
    module = emitted(program, threads=grid_of(target) or threads, name=name)
    compiled = compiler.compile(module, target, opt_level=opt_level, options=options)
    return CompiledKernels(program, compiled)


def _program(source: str | os.PathLike[str] | Program | Kernel, std: Standard) -> tuple[Program, str]:
    """The syntax tree of a source, and its name in diagnostics."""
    if isinstance(source, Program):
        return source, "<program>"
    from tlx.frontends.tensor_language.builder.kernel import Kernel

    if isinstance(source, Kernel):
        return Program([source.function]), f"@{source.name}"
    if isinstance(source, str) and ("\n" in source or "{" in source or not source):
        return parse(source, std=std), "<string>"
    from tlx.api import files

    path = os.fspath(source)
    return parse(files.decode(files.read_bytes(path), path, hint=""), path, std=std), path


def _counts(groups: Groups) -> tuple[int, int, int]:
    """Numbers of work-groups along x, y and z."""
    if type(groups) is int and 0 <= groups < _MAX_GROUPS:
        return groups, 1, 1
    entries: Sequence[SupportsIndex] = groups if isinstance(groups, Sequence) else (groups,)
    try:
        counts = [operator.index(count) for count in entries]
    except TypeError:
        raise ArgumentError(f"groups: expected up to three integers, got {describe(groups)}") from None
    if not 1 <= len(counts) <= 3 or not all(0 <= count < _MAX_GROUPS for count in counts):
        raise ArgumentError(f"groups: expected up to three numbers of work-groups, got {describe(groups)}")
    x, y, z = [*counts, 1, 1][:3]
    return x, y, z


def _offset(name: str, value: Any) -> int:
    try:
        offset = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: expected a number of elements, got {describe(value)}") from None
    if offset < 0:
        raise ArgumentError(f"{name}: expected a number of elements that is not negative, got {offset}")
    return offset
