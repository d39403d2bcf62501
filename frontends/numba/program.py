r"""Programs: TLX IR with its lowering, and the function of the lowered module that Numba's code calls.

A program's function is defined by a wrapper, which passes weights and requests what the machine's units need:

    @weight = internal constant [512 x i8] c"\00\00...", align 64
    define weak_odr void @tlx.layer.1f0c...(ptr %0, ptr %1) {
      call void @layer(ptr %0, ptr @weight, ptr %1)
      ret void
    }

Its name contains the program's key, a hash of all that determines the code: equal programs in several of Numba's
libraries are one function for the linker, and different programs never share a name.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from tlx.api import files
from tlx.api.cache import CacheEntry, CacheInput, CacheSetting, DiskCache
from tlx.api.cache_key import cache_key
from tlx.api.files import InputFormat
from tlx.diagnostics import UsageError
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.transform import collect_constructors
from tlx.lower.options import Options
from tlx.lower.pipeline import lower, raise_front_ends, verify
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target
from tlx.target.target import Target

Array = np.ndarray[Any, np.dtype[Any]]
_START: Final = "tlx.start"
_UNSAFE: Final = re.compile(r"\W")
_WORKSPACES: Final = ("malloc", "arena")


@dataclass(frozen=True, slots=True)
class Lowering:
    """How kernels are lowered.

    Attributes:
        target: The machine to aim at.
        options: Options of the lowering.
        cache: The cache on disk; None for none.
    """

    target: Target
    options: Options
    cache: DiskCache | None

    @classmethod
    def of(cls, target: Target | str, cache: CacheSetting, settings: Mapping[str, Any]) -> Lowering:
        """The lowering that a user's arguments describe.

        Raises:
            UsageError: A setting does not exist, or does not work in Numba; or this machine does not run the target.
        """
        target = find_target(target) if isinstance(target, str) else target
        if missing := missing_features(target, cpu_flags()):
            raise UsageError(
                f"tlx.numba: this machine does not run code for target {target.name}: it has no "
                f"{', '.join(missing[:3])}; leave target out"
            )
        options = Options().updated(**settings)
        if options.threads != "none":
            raise UsageError(
                f"tlx.numba: threads='{options.threads}' does not work in Numba, which runs threads itself: "
                "call the kernel in numba.prange, in a function with parallel=True"
            )
        if options.workspace not in _WORKSPACES:
            raise UsageError(
                f"tlx.numba: workspace='{options.workspace}' needs memory from the caller, which Numba's code does not "
                f"pass: use {' or '.join(_WORKSPACES)}"
            )
        if options.stop_after is not None or options.emulate_matrix:
            raise UsageError("tlx.numba: stop_after and emulate_matrix leave code that Numba cannot run")
        return cls(target, options, DiskCache.of(cache))

    def key(self, text: str, others: Mapping[str, Any]) -> str:
        """A hash of all that determines the lowered program; a new one each time if that cannot be determined."""
        found = cache_key(text.encode(), self.target, self.options, others)
        return found or secrets.token_hex(32)

    def lowered(self, text: str, name: str) -> str:
        """The lowered text of a program, from the cache if there is one."""

        def compute(options: Options) -> list[bytes]:
            return [str(lower(parse(text, name), self.target, options=options)).encode(errors="surrogatepass")]

        if self.cache is None:
            result = compute(self.options)
        else:
            source = CacheInput(text.encode(errors="surrogatepass"), name)
            entry = CacheEntry(self.cache, source, self.target, self.options, {"result": "numba"})
            result = entry.get_or_compute(compute)
        return result[0].decode(errors="surrogatepass")


@dataclass(frozen=True)
class NumbaProgram:
    """A function of TLX IR that Numba's code calls.

    Attributes:
        name: The kernel's name.
        text: TLX IR.
        source: The text's name in diagnostics.
        entry: The function's name, as the IR spells it.
        parameters: Type and attributes of each parameter of the function.
        result: Type of its result, with attributes.
        weights: The arrays that are passed for some parameters, by position; they become constants.
        lowering: How it is lowered.
    """

    name: str
    text: str
    source: str
    entry: str
    parameters: Sequence[tuple[str, str]]
    lowering: Lowering
    result: tuple[str, str] = ("void", "")
    weights: Mapping[int, Array] = field(default_factory=dict[int, Array])

    @cached_property
    def key(self) -> str:
        """A hash of all that determines the code."""
        weights = {at: hashlib.sha256(array.tobytes()).hexdigest() for at, array in self.weights.items()}
        return self.lowering.key(self.text, {"name": self.name, "entry": self.entry, "weights": weights})

    @property
    def symbol(self) -> str:
        """The name of the function that Numba's code calls."""
        return f"tlx.{_UNSAFE.sub('_', self.name)}.{self.key[:24]}"

    @property
    def called_parameters(self) -> list[str]:
        """Types of the parameters of that function."""
        return [type_ for at, (type_, _) in enumerate(self.parameters) if at not in self.weights]

    @cached_property
    def lowered(self) -> str:
        """LLVM IR with that function.

        Raises:
            TlxError: The program cannot be lowered.
        """
        lowered = self.lowering.lowered(self.text, self.source)
        code = collect_constructors(lowered, _START)
        return code + self._weights() + self._wrapper(has_start=code != lowered)

    def _weights(self) -> str:
        return "".join(
            f'\n@"{self.symbol}.{at}" = internal constant [{array.nbytes} x i8] c"{_escaped(array)}", align 64\n'
            for at, array in self.weights.items()
        )

    def _wrapper(self, *, has_start: bool) -> str:
        """The function that Numba's code calls.

        Rewrite:
            call void @layer(ptr %0, ptr %1)
            ->
            %started = load i8, ptr @flag              if the module has constructors, which Numba would not run
            br ... label %first, label %run
            first: call void @tlx.start() ...
            run: call void @layer(ptr %0, ptr %1)
        """
        passed: list[str] = []
        count = 0
        for at, (type_, attributes) in enumerate(self.parameters):
            value = f'@"{self.symbol}.{at}"' if at in self.weights else f"%{count}"
            count += at not in self.weights
            passed.append(" ".join(filter(None, (type_, attributes, value))))
        result, attributes = self.result
        head = ", ".join(f"{type_} %{n}" for n, type_ in enumerate(self.called_parameters))
        call = " ".join(filter(None, ("call", attributes, result, f"@{self.entry}({', '.join(passed)})")))
        lines = [f'\ndefine weak_odr {result} @"{self.symbol}"({head}) {{', "entry:"]
        if has_start:
            flag = f'@"{self.symbol}.started"'
            lines = [f"\n{flag} = internal global i8 0", *lines]
            lines += [
                f"  %started = load atomic i8, ptr {flag} acquire, align 1",
                "  %is.started = icmp ne i8 %started, 0",
                "  br i1 %is.started, label %run, label %first",
                "first:",
                f"  call void @{_START}()",
                f"  store atomic i8 1, ptr {flag} release, align 1",
                "  br label %run",
                "run:",
            ]
        lines += [f"  {call}", "  ret void"] if result == "void" else [f"  %r = {call}", f"  ret {result} %r"]
        return "\n".join([*lines, "}", ""])


def _escaped(array: Array) -> str:
    """The bytes of an array as LLVM spells them in a string."""
    return "\\" + array.tobytes().hex("\\")


def read_module(source: Module | str | os.PathLike[str], language: str, std: str) -> Module:
    """The module of a source: a module, a text, or the path of a file.

    Raises:
        TlxError: The file cannot be read, or is not in its language.
    """
    input_format = InputFormat(language, std)
    if isinstance(source, Module):
        text, name = str(source), source.source.name
    elif isinstance(source, str) and ("\n" in source or "{" in source or not source):
        text, name = files.assembly_of(source, "<string>", "none", input_format), "<string>"
    else:
        path = os.fspath(source)
        text, name = files.ir_of(files.read_bytes(path), path, "none", input_format), files.ir_name(path, input_format)
    text = str(raise_front_ends(parse(text, name)))
    verify(parse(text, name))
    return parse(text, name)
