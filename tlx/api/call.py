"""Calling machine code with numpy arrays, once its arguments have been checked (`tlx.api.arguments`).

Arguments that ctypes cannot pass (vectors, half, bfloat) go through memory: see `tlx.api.compiler`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, NoReturn, Self

import numpy as np

from tlx.api.arguments import (
    ArgumentError,
    aligned_array,
    array_address,
    array_bytes,
    as_array,
    checked_argument,
    checked_array,
    ctype_of,
    empty_result,
    fit_check,
    passed_by_value,
    result_ctype,
)
from tlx.api.signatures import CallParameter, Prototype
from tlx.diagnostics import counted
from tlx.intrinsics.numpy_types import Array
from tlx.ir.prepared import BLOCK_ALIGN, CONSTANT
from tlx.ir.types import I1, VOID, VectorType


class LoadedCode:
    """An object with machine code in this process: a copy of it is the object itself, and it cannot be pickled."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _copies: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            TypeError: Always.
        """
        remedy = "compile the program in the other process, where cache=True loads it from disk"
        raise TypeError(f"cannot pickle {self!r}, machine code in this process: {remedy}")


class CompiledFunction(LoadedCode):
    """A function of a compiled module.

    The checks of its parameters are prepared when it is created.

    Args:
        prototype: Its parameters and result.
        address: Address of its code.
        through_memory: Whether the code is a wrapper that takes pointers to values that ctypes cannot pass.
        owner: An object that must live as long as the code.
        workspace: Bytes of workspace that the code takes as its last argument.
    """

    def __init__(
        self, prototype: Prototype, address: int, *, through_memory: bool, owner: object, workspace: int = 0
    ) -> None:
        self.prototype = prototype
        self.__name__ = prototype.name
        self._keep = owner
        self._workspace = workspace
        self._result_in_memory = through_memory and not (prototype.result == VOID or passed_by_value(prototype.result))
        self._returns_truth = prototype.result == I1
        self._count = len(prototype.parameters)
        self._fit_checks = [fit_check(parameter) for parameter in prototype.parameters]
        types = [ctype_of(p.type) for p in prototype.parameters]
        if workspace:
            types.append(ctypes.c_void_p)
        if self._result_in_memory:
            types.append(ctypes.c_void_p)
        restype = None if self._result_in_memory or prototype.result == VOID else result_ctype(prototype.result)
        self._code = ctypes.CFUNCTYPE(restype, *types)(address)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{p.type} {p.name}" for p in self.prototype.parameters)
        return f"<compiled {self.prototype.result} @{self.prototype.name}({parameters})>"

    def __call__(self, *arguments: Any) -> Any:
        """Call the function.

        Pointers take numpy arrays (C-contiguous, of the right element type and size), integers and floating-point
        numbers take numbers, vectors take arrays or sequences.

        Raises:
            ArgumentError: An argument does not fit.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        passed: list[Any] = []
        result_copies: list[tuple[Array, Array]] = []
        for value, (dtypes, size, flags, align) in zip(arguments, self._fit_checks, strict=True):
            if (
                type(value) is np.ndarray
                and value.flags.num & flags == flags
                and value.nbytes >= size
                and (dtypes is None or value.dtype in dtypes)
            ):
                address = array_address(value)
                if not address % align:
                    passed.append(address)
                    continue
            parameter = self.prototype.parameters[len(passed)]
            checked = checked_argument(len(passed), parameter, value)
            array = as_array(checked)
            if array is not None and array is not value and parameter.is_result:
                result_copies.append((value, array))
            passed.append(checked if array is None else array.ctypes)  # keeps the array alive
        workspace = _acquire_workspace(self._workspace) if self._workspace else None
        if workspace is not None:
            passed.append(array_address(workspace))
        returned = self._call_with_result_array(passed) if self._result_in_memory else self._code(*passed)
        if workspace is not None:
            _thread.workspace = workspace
        for array, copy in result_copies:
            array_bytes(array)[:] = copy[: array.nbytes]
        return bool(returned & 1) if self._returns_truth else returned

    def _call_with_result_array(self, passed: list[Any]) -> Any:
        """Call the code with an array for its result."""
        type_ = self.prototype.result
        result = empty_result(type_)
        self._code(*passed, array_address(result))
        return result if isinstance(type_, VectorType) else result[0]

    def _count_error(self, count: int) -> ArgumentError:
        names = ", ".join(p.name for p in self.prototype.parameters)
        return ArgumentError(f"@{self.prototype.name} takes {counted(self._count, 'argument')} ({names}), got {count}")

    def prepare(self, *arrays: Any, **named: Any) -> PreparedFunction:
        """The function with prepared arguments; see `PreparableFunction.prepare`.

        Raises:
            ArgumentError: The function has no arguments that are constant over calls.
        """
        given = len(arrays) + len(named)
        message = f"@{self.prototype.name} has no argument with the attribute {CONSTANT}, and got {given} to prepare"
        raise ArgumentError(f"{message}: call it without prepare")

    def call_prepared(self, *arguments: Any) -> Any:
        """Call the function with all arguments; those that are constant over calls are prepared first.

        Raises:
            ArgumentError: An argument does not fit.
        """
        return self(*arguments)

    @property
    def code(self) -> Any:
        """What ctypes calls: the machine code."""
        return self._code

    def unchecked(self, *passed: Any) -> Any:
        """Call the code with numbers, addresses and a workspace, without checks."""
        return self._code(*passed)


@dataclass(frozen=True, slots=True)
class Preparation:
    """The code that prepares a function's constant arguments.

    Attributes:
        address: Address of the code.
        numbers: The arguments.
        sizes: Bytes of their blocks.
    """

    address: int
    numbers: tuple[int, ...]
    sizes: tuple[int, ...]


class PreparableFunction(CompiledFunction):
    """A function with arguments that are constant over calls: `prepare` packs them.

    Args:
        prototype, address, through_memory, owner, workspace: As for other functions.
        preparation: The code that packs the constant arguments.
        reserved: Memory of the blocks of the first preparation, if it has been allocated.
    """

    def __init__(
        self,
        prototype: Prototype,
        address: int,
        *,
        through_memory: bool,
        owner: object,
        workspace: int,
        preparation: Preparation,
        reserved: BlockMemory | None = None,
    ) -> None:
        super().__init__(prototype, address, through_memory=through_memory, owner=owner, workspace=workspace)
        self._preparation = preparation
        self._reserved = [reserved] if reserved is not None else []
        sizes = dict(zip(preparation.numbers, preparation.sizes, strict=True))
        parameters = tuple(
            CallParameter(p.name, p.type, size=sizes[n], align=BLOCK_ALIGN) if n in sizes else p
            for n, p in enumerate(prototype.parameters)
        )
        self._on_blocks = CompiledFunction(
            replace(prototype, parameters=parameters),
            address,
            through_memory=through_memory,
            owner=owner,
            workspace=workspace,
        )
        self._prepare = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (2 * len(sizes)))(preparation.address)

    def __call__(self, *arguments: Any) -> Any:
        """Refuse the call: the function takes prepared blocks.

        Raises:
            ArgumentError: Always.
        """
        names = [p.name.removeprefix("%") for p in self._constant]
        others = [p.name.removeprefix("%") for p in self.prototype.parameters if p not in self._constant]
        name = self.prototype.name
        message = f"@{name} has arguments that are constant over calls, and {len(arguments)} arrays were passed"
        example = f"prepared = {name}.prepare({', '.join(names)}); prepared({', '.join(others)})"
        raise ArgumentError(f"{message}: prepare them once, and call the result: {example}")

    def prepare(self, *arrays: Any, **named: Any) -> PreparedFunction:
        """Pack the constant arguments; returns the function of the other ones.

        Args:
            *arrays: The constant arguments, in order.
            **named: The same by their names in the IR.

        Raises:
            ArgumentError: An array is missing or does not fit.
        """
        return PreparedFunction(self, self._by_number(arrays, named))

    @property
    def _constant(self) -> list[CallParameter]:
        return [self.prototype.parameters[number] for number in self._preparation.numbers]

    def _by_number(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Array]:
        """The constant arguments in order, checked."""
        parameters = self._constant
        names = [p.name.removeprefix("%") for p in parameters]
        listed = ", ".join(names)
        given = dict(zip(names, arrays, strict=False))
        wrong = [name for name in named if name not in names or name in given]
        given |= named
        if wrong or len(arrays) > len(names) or len(given) < len(names):
            got = ", ".join([*[f"{len(arrays)} by position"] * bool(arrays), *named]) or "none"
            raise ArgumentError(
                f"@{self.prototype.name}.prepare takes {counted(len(names), 'array')} ({listed}), got {got}"
            )
        return [
            checked_array(number, parameter, given[name])
            for number, parameter, name in zip(self._preparation.numbers, parameters, names, strict=True)
        ]

    def pack(self, blocks: Sequence[Array], arrays: Sequence[Array]) -> None:
        """Fill the blocks from the arrays, without checks."""
        pairs = zip(blocks, arrays, strict=True)
        self._prepare(*(array_address(array) for pair in pairs for array in pair))

    def call_prepared(self, *arguments: Any) -> Any:
        """Prepare the constant arguments, and call the function with the others.

        Raises:
            ArgumentError: An argument does not fit.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        constant = [arguments[number] for number in self._preparation.numbers]
        others = [value for n, value in enumerate(arguments) if n not in self._preparation.numbers]
        return self.prepare(*constant)(*others)

    def call_on_blocks(self, blocks: Sequence[Array], arguments: Sequence[Any]) -> Any:
        """Call the code with blocks in place of the constant arguments."""
        numbers = self._preparation.numbers
        if len(arguments) + len(numbers) != self._count:
            others = [p.name for n, p in enumerate(self.prototype.parameters) if n not in numbers]
            takes = f"takes {counted(len(others), 'argument')} ({', '.join(others)})"
            message = f"@{self.prototype.name}, prepared, {takes}"
            raise ArgumentError(f"{message}, got {len(arguments)}")
        passed = list(arguments)
        for number, block in zip(numbers, blocks, strict=True):
            passed.insert(number, block)
        return self._on_blocks(*passed)

    def new_blocks(self) -> list[Array]:
        """Memory for the blocks of its constant arguments: what is reserved, or new memory."""
        try:
            memory = self._reserved.pop()
        except IndexError:  # another preparation has it
            memory = BlockMemory(self._preparation.sizes)
        return memory.blocks()


class PreparedFunction:
    """A function whose constant arguments are packed: it is called with the others.

    Args:
        function: The function.
        arrays: Its constant arguments. They are kept, since the function may read them besides the packed form.
    """

    def __init__(self, function: PreparableFunction, arrays: Sequence[Array]) -> None:
        self._function, self._arrays = function, tuple(arrays)
        self._blocks = function.new_blocks()
        self.prepare()

    @property
    def blocks(self) -> tuple[Array, ...]:
        """The prepared blocks that the code takes in place of the constant arguments, in their order."""
        return tuple(self._blocks)

    def __repr__(self) -> str:
        return f"<prepared {repr(self._function).removeprefix('<')}"

    def prepare(self) -> None:
        """Pack the constant arguments again after their arrays have changed; no call may run at the same time."""
        self._function.pack(self._blocks, self._arrays)

    @property
    def packed_bytes(self) -> int:
        """Bytes of packed arguments."""
        return sum(block.nbytes for block in self._blocks)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function with the arguments that are not constant.

        Raises:
            ArgumentError: An argument does not fit.
        """
        return self._function.call_on_blocks(self._blocks, arguments)


_HUGE_PAGE: Final = 2 << 20
_LARGE: Final = 4 << 20
"""Bytes of arrays for which numpy requests huge pages, at least."""
_PAGE: Final = 4 << 10


class BlockMemory:
    """Memory of prepared blocks, one after the other in one array, which consists of huge pages if it is large.

    With fewer misses of the TLB, and longer streams for hardware prefetchers than with an array for each block, twelve
    blocks of a transformer of one row take 19.9 ms instead of 21.2 (f32), those of 128 rows of bfloat 29.9 instead of
    31.3. Separately prepared layers of 128x3072x768 bfloats take 0.58 to 0.61 ms each where their arrays begin at huge
    pages, and 0.62 to 0.70 where they do not (one core of a Xeon 6/167/1, 2026-11-30); on a Xeon 6/207/2, 0.57 in
    either case, and 512x3072x768 1.57 instead of 1.66.

    Args:
        sizes: Bytes of the blocks.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        *self._starts, end = accumulate((-(-size // BLOCK_ALIGN) * BLOCK_ALIGN for size in sizes), initial=0)
        self._sizes = sizes
        align = _HUGE_PAGE if end >= _LARGE else BLOCK_ALIGN
        self._memory = aligned_array((-(-end // align) * align,), np.dtype(np.uint8), align)
        self._touching: threading.Thread | None = None

    def touch(self) -> None:
        """Touch the pages in a thread, if there are many, so that packing need not wait for the system to map them."""
        if self._memory.nbytes >= _LARGE:
            self._touching = threading.Thread(target=self._touch_pages, daemon=True)
            try:
                self._touching.start()
            except RuntimeError:  # no thread can be started
                self._touching = None

    def _touch_pages(self) -> None:
        self._memory[::_PAGE] = 0

    def blocks(self) -> list[Array]:
        """The blocks, once no thread writes to them."""
        if self._touching is not None:
            self._touching.join()
        return [self._memory[start : start + size] for start, size in zip(self._starts, self._sizes, strict=True)]


_thread: Final = threading.local()


def _acquire_workspace(size: int) -> Array:
    """At least `size` bytes: the thread's workspace, which a call takes and puts back, or new memory."""
    memory: Array | None = _thread.__dict__.pop("workspace", None)
    return memory if memory is not None and memory.nbytes >= size else np.empty(size, np.uint8)
