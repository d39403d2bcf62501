"""Machine code in this process: an object file, linked by LLVM's just-in-time linker."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import itertools
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tlx.diagnostics import TlxError, UsageError
from tlx.llvm import runtime

_SYMBOL_TABLE: Final = 2
_UNDEFINED: Final = 0
_LINKER: Final = ("", "_GLOBAL_OFFSET_TABLE_", "__dso_handle")
_COMMON: Final = ("libm.so.6", "libgcc_s.so.1")  # mathematics, conversions of half and 128-bit integers
_numbers: Final = itertools.count()


class LinkError(TlxError):
    """An object file cannot be loaded."""


class Library:
    """A loaded object file. It is unloaded when it is dropped.

    Args:
        image: The object file.
        exports: Symbols whose addresses are wanted.
        libraries: Shared libraries to load first.
        start: Function to call once it is loaded: the linker runs no constructors.

    Raises:
        LinkError: Symbols are missing, or the file is broken or of another machine.
        UsageError: A shared library cannot be loaded.
    """

    def __init__(
        self, image: bytes, exports: Sequence[str], libraries: Iterable[str] = (), start: str | None = None
    ) -> None:
        binding: Any = importlib.import_module("llvmlite.binding")
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        for library in libraries:
            _load(binding, library)
        if not _is_for_this_process(image):
            raise LinkError("the module's target triple is not of this machine and system: take it away, or change it")
        missing = _missing(binding, image)
        own = [name for name in missing if name in runtime.NAMES]
        if len(missing) > len(own):
            raise LinkError(
                f"the module calls what this process does not have: {', '.join(sorted({*missing} - {*own})[:5])}; "
                "name the shared library that has it by libraries="
            )
        machine = binding.Target.from_default_triple().create_target_machine(jit=True)
        self._linker = binding.create_lljit_compiler(machine, use_jit_link=True)
        builder = binding.JITLibraryBuilder().add_object_img(image).add_current_process()
        for name in (*exports, *([start] if start else [])):
            builder.export_symbol(name)
        if own:
            self._runtime = Library(runtime.image(), own)
            for name in own:
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
    """The lock that llvmlite holds while LLVM works in this process."""
    ffi: Any = sys.modules.get("llvmlite.binding.ffi")
    return getattr(ffi.lib, "_lock", None) or contextlib.nullcontext() if ffi else contextlib.nullcontext()


class _Fork:
    """A fork waits until no other thread is inside LLVM: the child would find LLVM, and the lock, as they were then."""

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


def symbols(image: bytes) -> Iterator[tuple[str, bool]]:
    """Global symbols of a 64-bit little-endian ELF object, and whether each is defined there; none of other files."""
    if image[:6] != b"\x7fELF\x02\x01":
        return
    sections_at, count = struct.unpack_from("<Q", image, 0x28)[0], struct.unpack_from("<H", image, 0x3C)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, sections_at + 64 * i) for i in range(count)]
    for _, kind, _, _, offset, size, link, first, _, entry in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for at in range(offset + first * entry, offset + size, entry):
            name, _, _, section = struct.unpack_from("<IBBH", image, at)
            spelled = image[names + name : image.index(b"\0", names + name)]
            yield spelled.decode(errors="surrogateescape"), section != _UNDEFINED


def _is_for_this_process(image: bytes) -> bool:
    """Whether an object file is of the format, the class and the machine (at 18 in ELF) of the running program."""
    try:
        with Path("/proc/self/exe").open("rb") as program:
            own = program.read(20)
    except OSError:
        return True
    return (image[:6], image[18:20]) == (own[:6], own[18:20])


def _missing(binding: Any, image: bytes) -> list[str]:
    """Symbols that the object file wants and that nobody has; LLVM would only print them."""
    wanted = [name for name, defined in symbols(image) if not defined and name not in _LINKER]
    if any(not binding.address_of_symbol(name) for name in wanted):
        for library in _COMMON:
            with contextlib.suppress(UsageError):
                _load(binding, library)
    return [name for name in wanted if not binding.address_of_symbol(name)]


def _load(binding: Any, library: str) -> None:
    try:
        binding.load_library_permanently(library)
    except RuntimeError as error:
        raise UsageError(f"could not load library '{library}': {error}") from None
