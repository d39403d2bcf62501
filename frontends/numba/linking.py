"""Linking programs with Numba's code: calls in nopython mode, and validation of code in Numba's disk cache.

A library of Numba (`CodeLibrary`) is a module of LLVM IR, which other libraries link. A program is added to the library
of the function that calls it. Only the program's function is visible there.
"""

from __future__ import annotations

import contextlib
import importlib
import weakref
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

import tlx
from tlx.api.arguments import array_address
from tlx.diagnostics import UsageError
from tlx.llvm.loader import RUNTIME_FUNCTIONS, LoadedObject, runtime_object
from tlx.llvm.upgrade import upgrade_ir
from tlx.llvm.verification import escape_nul
from tlx.target.host import best_target, host_caches, native_target
from tlx.target.installed import targets
from tlx.target.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tlx.frontends.numba.program import NumbaProgram

numba: Any = importlib.import_module("numba")
numba_types: Any = importlib.import_module("numba.core.types")
_extending: Any = importlib.import_module("numba.extending")
_cgutils: Any = importlib.import_module("numba.core.cgutils")
_config: Any = importlib.import_module("numba.core.config")
_numpy_support: Any = importlib.import_module("numba.np.numpy_support")
_registry: Any = importlib.import_module("numba.core.registry")
_binding: Any = importlib.import_module("llvmlite.binding")
_ir: Any = importlib.import_module("llvmlite.ir")

_LIBRARIES: Final = ("libm.so.6", "libgcc_s.so.1")


class _KernelWithKeys(Protocol):
    """A kernel, whose programs have keys."""

    name: str

    def key(self, variant: Any) -> str | None:
        """The key of one of the programs; None if there is no such program."""
        ...


_LIVE: Final[weakref.WeakSet[_KernelWithKeys]] = weakref.WeakSet()


def numba_target() -> Target:
    """The target for the machine that Numba generates code for: this one, unless Numba's variables name another.

    Raises:
        UsageError: No target has code for that machine.
    """
    if _config.CPU_NAME is None and _config.CPU_FEATURES is None and _config.ENABLE_AVX:
        return native_target()
    _, _, features = _registry.cpu_target.target_context.codegen().magic_tuple()
    flags = frozenset(feature[1:] for feature in features.split(",") if feature.startswith("+"))
    return best_target(targets().values(), flags, host_caches())


def compiled(function: Callable[..., Any]) -> Any:
    """A function as Numba's dispatcher in nopython mode; the function where NUMBA_DISABLE_JIT is set."""
    if _config.DISABLE_JIT:
        return function
    return numba.njit(nogil=True)(function)


def caller(program: NumbaProgram, variant: object, result: Any) -> Any:
    """A function for nopython mode that calls a program with a tuple of arrays and numbers.

    Where NUMBA_DISABLE_JIT is set, it is a function of Python.

    Args:
        program: The program.
        variant: The key that identifies it among the kernel's programs, such as a signature and memory orders.
        result: Numba's type of its result.
    """

    def run(typingctx: Any, arguments: Any) -> Any:  # noqa: ARG001 (Numba's interface)
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            _link(context.active_code_library, program, variant)
            types = list(signature.args[0])
            passed = [
                _passed(context, builder, type_, value, by_pointer=kind == "ptr")
                for kind, type_, value in zip(
                    program.called_parameters, types, _cgutils.unpack_tuple(builder, values[0]), strict=True
                )
            ]
            returned = _ir.VoidType() if result == numba_types.none else context.get_value_type(result)
            type_ = _ir.FunctionType(returned, [value.type for value in passed])
            function = _cgutils.get_or_insert_function(builder.module, type_, program.symbol)
            call = builder.call(function, passed)
            return context.get_dummy_value() if result == numba_types.none else call

        return result(arguments), emit

    return _interpreted(program) if _config.DISABLE_JIT else _extending.intrinsic(run)


def _interpreted(program: NumbaProgram) -> Callable[[Sequence[Any]], Any]:
    """A function of Python that calls a program."""
    lowering = program.lowering
    module = tlx.compile(program.text, lowering.target, entry=program.entry, options=lowering.options)

    def call(arguments: Sequence[Any]) -> Any:
        passed = iter(arguments)
        values = [
            program.weights[at] if at in program.weights else next(passed) for at in range(len(program.parameters))
        ]
        kinds = [kind for kind, _ in program.parameters]
        arrays = [np.asarray(value) for value in values]
        return module(*(a if kind == "ptr" else a.item() for kind, a in zip(kinds, arrays, strict=True)))

    return call


def _passed(context: Any, builder: Any, type_: Any, value: Any, *, by_pointer: bool) -> Any:
    """The operand for an argument: a number, or the address of an array's or a number's memory."""
    if isinstance(type_, numba_types.Array):
        return builder.bitcast(context.make_array(type_)(context, builder, value).data, _cgutils.voidptr_t)
    if not by_pointer:
        return value
    data = context.data_model_manager[type_].as_data(builder, value)
    memory = _cgutils.alloca_once_value(builder, data)
    return builder.bitcast(memory, _cgutils.voidptr_t)


def _address_of(typingctx: Any, array: Any) -> Any:  # noqa: ARG001 (Numba's interface)
    """In nopython mode: the address of an array's first element."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        return builder.ptrtoint(data, context.get_value_type(numba_types.intp))

    return numba_types.intp(array), emit


address_of: Final[Any] = array_address if _config.DISABLE_JIT else _extending.intrinsic(_address_of)


def _link(library: Any, program: NumbaProgram, variant: object) -> None:
    """Add a program to a library of Numba.

    Raises:
        UsageError: It calls functions that this process does not have.
    """
    code = program.lowered
    module = _binding.parse_assembly(upgrade_ir(escape_nul(code)))
    module.verify()
    for item in (*module.functions, *module.global_variables):
        if not item.is_declaration and item.name != program.symbol and not item.name.startswith("llvm."):
            item.linkage = "internal"
    needed = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    needs_runtime = "bfloat" in code or "half" in code
    if needs_runtime:
        provide_runtime()
    if missing := [name for name in needed if not _binding.address_of_symbol(name)]:
        raise UsageError(
            f"tlx.numba: {program.name} calls functions that are not in this process: {', '.join(missing[:5])}; load "
            "the library that defines them: llvmlite.binding.load_library_permanently(path)"
        )
    library.add_llvm_module(module)
    fresh = LinkedProgram(program.name, variant, program.key, needs_runtime)
    library._reload_init.add(fresh)  # noqa: SLF001 (Numba's only hook for loading from its cache; parfors use it)


@cache
def provide_runtime() -> None:
    """Make the functions that LLVM calls for conversions of half and bfloat known to Numba's linker."""
    for name in _LIBRARIES:
        with contextlib.suppress(RuntimeError):
            _binding.load_library_permanently(name)
    missing = [name for name in RUNTIME_FUNCTIONS if not _binding.address_of_symbol(name)]
    if missing:
        runtime = LoadedObject(runtime_object(), missing)
        _runtime.append(runtime)
        for name in missing:
            _binding.add_symbol(name, runtime.address(name))


_runtime: Final[list[LoadedObject]] = []


# Numba's cache on disk --------------------------------------------------------------------------------------------


class StaleError(OSError):
    """Code in Numba's cache was linked with another version of a kernel; Numba takes an OSError for a missing file."""


@dataclass(frozen=True)
class LinkedProgram:
    """A program that a library of Numba has linked; Numba stores it with the library, and calls it after loading.

    Loading fails if no kernel of this name has the same key, so that Numba compiles the function again.

    Attributes:
        name: The kernel's name.
        variant: The key that identifies the program among the kernel's programs.
        key: The program's key.
        needs_runtime: Whether it needs `provide_runtime`.
    """

    name: str
    variant: Any
    key: str
    needs_runtime: bool

    def __call__(self) -> None:
        """Prepare the process for the code."""
        if self.needs_runtime:
            provide_runtime()

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.name, self.variant, self.key, self.needs_runtime)


def _loaded(name: str, variant: Any, key: str, needs_runtime: bool) -> LinkedProgram:
    """The linked program of a cached library.

    Raises:
        StaleError: No kernel of this process has this program.
    """
    if not any(kernel.name == name and kernel.key(variant) == key for kernel in list(_LIVE)):
        message = f"the kernel {name} has changed"
        raise StaleError(message)
    return LinkedProgram(name, variant, key, needs_runtime)


def register(kernel: _KernelWithKeys) -> None:
    """Register a kernel for the validation of cached code, and LLVM's assembler for its inline assembly."""
    _binding.initialize_native_asmparser()  # for inline assembly, such as the system call that requests AMX tiles
    _LIVE.add(kernel)


def numba_type(dtype: np.dtype[Any]) -> Any:
    """Numba's type of an element."""
    return _numpy_support.from_dtype(dtype)
