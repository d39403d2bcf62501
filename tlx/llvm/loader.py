"""Loads an object file into this process with LLVM's just-in-time linker.

On machines without instructions for it, LLVM converts to bfloat by calls of `__truncsfbf2` and `__truncdfbf2`, which
libgcc has only since version 13. If the process lacks them, versions in integer arithmetic are linked: they round to
nearest, ties to even, and keep NaN.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import itertools
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from tlx.diagnostics import TlxError, UsageError

_SYMBOL_TABLE: Final = 2
_UNDEFINED: Final = 0
_WEAK: Final = 2
_LINKER: Final = ("", "_GLOBAL_OFFSET_TABLE_", "__dso_handle")
_COMMON: Final = ("libm.so.6", "libgcc_s.so.1")  # mathematics, conversions of half and 128-bit integers
_numbers: Final = itertools.count()


class LinkError(TlxError):
    """An object file cannot be loaded."""


class LoadedObject:
    """Loaded object files. They are unloaded when this object is garbage-collected.

    Args:
        images: The object file, or several that need each other.
        exports: Symbols whose addresses can be looked up.
        libraries: Shared libraries to load first.
        start: Function to call once it is loaded: the linker runs no constructors.

    Raises:
        LinkError: Symbols are missing, or the file is broken or of another machine.
        UsageError: A shared library cannot be loaded.
    """

    def __init__(
        self,
        images: bytes | Sequence[bytes],
        exports: Sequence[str],
        libraries: Iterable[str] = (),
        start: str | None = None,
    ) -> None:
        images = [images] if isinstance(images, bytes) else images
        binding: Any = importlib.import_module("llvmlite.binding")
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        for library in libraries:
            _load(binding, library)
        if not all(map(_is_for_this_process, images)):
            raise LinkError("the module's target triple is not that of this machine: remove it or change it")
        missing = _missing_symbols(binding, images)
        runtime = [name for name in missing if name in RUNTIME_FUNCTIONS]
        if len(missing) > len(runtime):
            names = ", ".join(sorted({*missing} - {*runtime})[:5])
            raise LinkError(
                f"the module calls functions that are not in this process: {names}; "
                "name the shared library that defines them in libraries="
            )
        machine = binding.Target.from_default_triple().create_target_machine(jit=True)
        self._linker = binding.create_lljit_compiler(machine, use_jit_link=True)
        builder = binding.JITLibraryBuilder()
        for image in images:
            builder.add_object_img(image)
        builder.add_current_process()
        for name in (*exports, *([start] if start else [])):
            builder.export_symbol(name)
        if runtime:
            self._runtime = LoadedObject(runtime_object(), runtime)
            for name in runtime:
                builder.import_symbol(name, self._runtime.address(name))
        try:
            self._tracker = builder.link(self._linker, f"tlx.{next(_numbers)}")
        except RuntimeError as error:
            raise LinkError(f"the compiled module cannot be loaded: {str(error).strip()}") from None
        if start:
            ctypes.CFUNCTYPE(None)(self.address(start))()

    def address(self, name: str) -> int:
        """Address of an exported symbol."""
        return self._tracker[name]


def _llvmlite_lock() -> contextlib.AbstractContextManager[Any]:
    """The lock that llvmlite holds while LLVM runs in this process."""
    ffi: Any = sys.modules.get("llvmlite.binding.ffi")
    return getattr(ffi.lib, "_lock", None) or contextlib.nullcontext() if ffi else contextlib.nullcontext()


class _Fork:
    """Delays forks until no other thread is inside LLVM: the child would inherit a held lock."""

    def __init__(self) -> None:
        self._held: list[contextlib.AbstractContextManager[Any]] = []

    def before(self) -> None:
        lock = _llvmlite_lock()
        lock.__enter__()
        self._held.append(lock)

    def after(self) -> None:
        self._held.pop().__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    _fork: Final = _Fork()
    os.register_at_fork(before=_fork.before, after_in_parent=_fork.after, after_in_child=_fork.after)


def elf_symbols(image: bytes) -> Iterator[tuple[str, bool]]:
    """Global symbols of a 64-bit little-endian ELF object, and whether it defines them; none for other files.

    Weak references are left out: they are null where no object defines them.
    """
    if image[:6] != b"\x7fELF\x02\x01":
        return
    sections_at, count = struct.unpack_from("<Q", image, 0x28)[0], struct.unpack_from("<H", image, 0x3C)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, sections_at + 64 * i) for i in range(count)]
    for _, kind, _, _, offset, size, link, first, _, entry in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for at in range(offset + first * entry, offset + size, entry):
            name, info, _, section = struct.unpack_from("<IBBH", image, at)
            if section == _UNDEFINED and info >> 4 == _WEAK:
                continue
            spelled = image[names + name : image.index(b"\0", names + name)]
            yield spelled.decode(errors="surrogateescape"), section != _UNDEFINED


def _is_for_this_process(image: bytes) -> bool:
    """Whether an object file has the format, the class and the machine (offset 18 in ELF) of the running program."""
    try:
        with Path("/proc/self/exe").open("rb") as program:
            header = program.read(20)
    except OSError:
        return True
    return (image[:6], image[18:20]) == (header[:6], header[18:20])


def _missing_symbols(binding: Any, images: Sequence[bytes]) -> list[str]:
    """Undefined symbols that no loaded library defines; LLVM would only print them.

    Runtime functions are always among them: LLVM also has the address of one that was registered (`add_symbol`), but
    does not link it.
    """
    symbols = [symbol for image in images for symbol in elf_symbols(image)]
    known = {name for name, defined in symbols if defined} | {*_LINKER}
    undefined = [name for name in dict.fromkeys(name for name, _ in symbols) if name not in known]
    if any(not binding.address_of_symbol(name) for name in undefined):
        for library in _COMMON:
            with contextlib.suppress(UsageError):
                _load(binding, library)
    return [name for name in undefined if name in RUNTIME_FUNCTIONS or not binding.address_of_symbol(name)]


def _load(binding: Any, library: str) -> None:
    try:
        binding.load_library_permanently(library)
    except RuntimeError as error:
        raise UsageError(f"could not load library '{library}': {error}") from None


_RUNTIME_IR: Final = """
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %even = and i32 %high, 1
  %bias = add i32 %even, 32767
  %rounded = add i32 %bits, %bias
  %quiet = or i32 %bits, 4194304
  %nan = fcmp uno float %x, 0.0
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %shifted = lshr i32 %chosen, 16
  %short = trunc i32 %shifted to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

; Rounded to odd first, so that rounding twice is rounding once.
define bfloat @__truncdfbf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %size = call double @llvm.fabs.f64(double %x)
  %reached = call double @llvm.fabs.f64(double %back)
  %over = fcmp ogt double %reached, %size
  %bits = bitcast float %near to i32
  %less = zext i1 %over to i32
  %toward = sub i32 %bits, %less
  %odd = zext i1 %inexact to i32
  %sticky = or i32 %toward, %odd
  %single = bitcast i32 %sticky to float
  %result = call bfloat @__truncsfbf2(float %single)
  ret bfloat %result
}

declare double @llvm.fabs.f64(double)
"""
RUNTIME_FUNCTIONS: Final = ("__truncsfbf2", "__truncdfbf2")


@cache
def runtime_object(triple: str = "") -> bytes:
    """The object file with the runtime functions, for a triple; by default for this machine."""
    from tlx.llvm.codegen import emit_code

    return emit_code(_RUNTIME_IR, "obj", 2, triple=triple)
