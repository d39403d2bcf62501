"""Programs for other machines: links object files with cross compilers, and calls their functions under an emulator.

A program is linked statically from an object file, `emulator.c` and a table of its functions; without a C library also
from `emulator_math.c`. It runs in a process of
the emulator and reads requests: arrays, and which functions to call on them. All arrays lie between inaccessible pages.

aarch64-linux-gnu              aarch64-linux-gnu-gcc           qemu-aarch64
powerpc64le-linux-gnu          powerpc64le-linux-gnu-gcc       qemu-ppc64le
hexagon-unknown-linux-musl     clang and lld, no C library     qemu-hexagon
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import resource
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal

import numpy as np

from tlx.diagnostics import TlxError, UsageError
from tlx.llvm.triples import normalized

if TYPE_CHECKING:
    from tlx.intrinsics.numpy_types import Array

TABLE: Final = "tlx_functions"
"""The global with the functions that a program can call: each takes a pointer to the addresses of its arguments."""
_DRIVER: Final = Path(__file__).with_name("emulator.c")
_MATH: Final = Path(__file__).with_name("emulator_math.c")
_MATH_OPTIONS: Final = ("-mcpu=hexagonv67", "-ffp-contract=off")
_NO_LIBRARY: Final = "musl"
_CLANGS: Final = ("clang-19", "clang")
_LINKERS: Final = ("ld.lld-19", "ld.lld")


class EmulationError(TlxError):
    """A program of another machine cannot be linked, or fails under its emulator."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """What runs an architecture's programs here.

    Attributes:
        spelling: Its name in the triples of Debian's cross compilers.
        emulators: Suffixes of qemu's programs for it: `ppc64le` of `qemu-ppc64le`; the first is suggested.
        debian: Debian's name of the port, in names of packages.
        environment: The last component of the triple.
        aliases: Other spellings in triples.
    """

    spelling: str
    emulators: tuple[str, ...]
    debian: str
    environment: str = "gnu"
    aliases: tuple[str, ...] = ()

    @property
    def triple(self) -> str:
        """The triple of its cross compiler."""
        return f"{self.spelling}-linux-{self.environment}"

    @property
    def has_library(self) -> bool:
        """Whether Debian has a C library for it."""
        return self.environment != _NO_LIBRARY


ARCHITECTURES: Final = (
    Architecture("aarch64", ("aarch64", "arm64"), "arm64", aliases=("arm64",)),
    Architecture("arm", ("arm", "armhf"), "armhf", "gnueabihf", ("armv6", "armv7", "armv7a", "armv7l", "armv8")),
    Architecture("powerpc64le", ("ppc64le", "ppc64el"), "ppc64el", aliases=("ppc64le",)),
    Architecture("powerpc64", ("ppc64",), "ppc64", aliases=("ppc64",)),
    Architecture("riscv64", ("riscv64",), "riscv64"),
    Architecture("s390x", ("s390x",), "s390x", aliases=("systemz",)),
    Architecture("loongarch64", ("loongarch64", "loong64"), "loong64"),
    Architecture("mips64el", ("mips64el",), "mips64el", "gnuabi64"),
    Architecture("i686", ("i386",), "i386", aliases=("i386", "i486", "i586")),
    Architecture("hexagon", ("hexagon",), "", _NO_LIBRARY),
)


def architecture_of(triple: str) -> Architecture:
    """The architecture of a triple.

    Raises:
        UsageError: No emulator is known for it.
    """
    name = triple.partition("-")[0]
    for architecture in ARCHITECTURES:
        if name in (architecture.spelling, *architecture.aliases):
            return architecture
    known = ", ".join(architecture.spelling for architecture in ARCHITECTURES)
    raise UsageError(f"programs of triple '{triple}' cannot be run; emulators are known for {known}")


def emulator_triple(emulator: str) -> str:
    """The triple of the machines that `qemu-ppc64le -cpu power10` emulates; empty if its name says nothing."""
    words = emulator.split()
    suffix = Path(words[0]).name.removeprefix("qemu-").removesuffix("-static") if words else ""
    return next((a.triple for a in ARCHITECTURES if suffix in a.emulators), "")


def emulator_command(emulator: str, triple: str) -> list[str]:
    """The words of an emulator's command.

    Args:
        emulator: The command, such as `qemu-ppc64le -cpu power10`.
        triple: The triple of the program that it runs.

    Raises:
        UsageError: The emulator is not installed, or emulates other machines.
    """
    words = shlex.split(emulator)
    if not words:
        raise UsageError("--emulator= is empty; write the command of an emulator, such as 'qemu-aarch64 -cpu max'")
    emulated = emulator_triple(emulator)
    wanted = architecture_of(triple)
    if emulated and architecture_of(emulated) != wanted:
        suggestion = f"for triple '{triple}' use qemu-{wanted.emulators[0]}"
        raise UsageError(f"emulator '{words[0]}' runs programs of {emulated}: {suggestion}")
    path = shutil.which(words[0])
    if path is None:
        package = "; on Debian 'apt install qemu-user'" if Path(words[0]).name.startswith("qemu-") else ""
        raise UsageError(f"the emulator '{words[0]}' is not installed{package}")
    return [path, *words[1:]]


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Links programs of a triple.

    Attributes:
        triple: The triple.
        compiler: Words of the command that compiles C and links.
    """

    triple: str
    compiler: tuple[str, ...]

    @property
    def has_library(self) -> bool:
        """Whether programs have a C library."""
        return architecture_of(self.triple).has_library

    def link(self, objects: Mapping[str, bytes], program: Path, *, threads: bool = False) -> None:
        """Link object files with the driver.

        Args:
            objects: The object files by name.
            program: Path of the program.
            threads: Whether it calls an OpenMP library.

        Raises:
            EmulationError: The objects do not link.
        """
        paths: list[str] = []
        for name, image in objects.items():
            path = program.with_name(name)
            path.write_bytes(image)
            paths.append(str(path))
        libraries = [*["-lgomp", "-lpthread"] * threads, "-lm"] if self.has_library else ["-nostdlib"]
        command = [*self.compiler, "-static", "-o", str(program), *_driver(self), *paths, *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EmulationError(f"the program for '{self.triple}' cannot be linked: {_shortened(done.stderr)}")


def _shortened(errors: str) -> str:
    """What a linker says, without paths of temporary files."""
    lines = [re.sub(r"\S*/", "", line) for line in errors.splitlines() if re.search("error|undefined|cannot", line)]
    return "; ".join(dict.fromkeys(lines[:4])) or errors.strip()[:400]


def compile_ir(compiler: str, text: str, triple: str, opt_level: int) -> bytes:
    """The object file that a clang makes of LLVM assembly.

    Args:
        compiler: The clang, such as `clang-16`; options may follow.
        text: The assembly.
        triple: The triple of the machine.
        opt_level: LLVM's optimisation level, 0 to 3.

    Raises:
        UsageError: The compiler is not installed.
        EmulationError: It cannot compile the text.
    """
    words = shlex.split(compiler)
    if not words or shutil.which(words[0]) is None:
        raise UsageError(f"the compiler '{compiler}' is not installed")
    options = [f"-O{opt_level}", f"--target={normalized(triple)}", "-Wno-override-module"]
    with tempfile.TemporaryDirectory(prefix="tlx-emulator-") as folder:
        image = Path(folder) / "module.o"
        command = [*words, *options, "-c", "-x", "ir", "-", "-o", str(image)]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EmulationError(f"{words[0]} cannot compile the module for '{triple}': {_shortened(done.stderr)}")
        return image.read_bytes()


@cache
def toolchain(triple: str) -> Toolchain:
    """The compiler and linker for a triple.

    Raises:
        UsageError: They are not installed; the message names Debian's package.
    """
    architecture = architecture_of(triple)
    if not architecture.has_library:
        clang = next(filter(None, map(shutil.which, _CLANGS)), None)
        linker = next(filter(None, map(shutil.which, _LINKERS)), None)
        if clang is None or linker is None:
            raise UsageError(f"programs for '{triple}' need clang and lld; on Debian 'apt install clang-19 lld-19'")
        return Toolchain(triple, (clang, f"--target={normalized(triple)}", "-fuse-ld=lld"))
    name = f"{architecture.triple}-gcc"
    path = shutil.which(name)
    if path is None:
        package = name.removesuffix("-gcc").replace("_", "-")
        packages = f"gcc-{package} libc6-dev-{architecture.debian}-cross"
        raise UsageError(f"the cross compiler {name} is not installed; on Debian 'apt install {packages}'")
    return Toolchain(triple, (path,))


@cache
def _driver(tools: Toolchain) -> tuple[str, ...]:
    """The object files of the driver, in a folder that lives as long as this process."""
    folder = tempfile.mkdtemp(prefix="tlx-emulator-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if tools.has_library:
        return (_compiled(tools, _DRIVER, folder),)
    return (
        _compiled(tools, _DRIVER, folder, "-DBARE", "-fno-builtin"),
        _compiled(tools, _MATH, folder, "-fno-builtin", *_MATH_OPTIONS),
    )


def _compiled(tools: Toolchain, source: Path, folder: str, *options: str) -> str:
    """The path of an object file of C source in a folder."""
    path = str(Path(folder) / f"{source.stem}.o")
    command = [*tools.compiler, "-O1", "-c", *options, str(source), "-o", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        architecture = architecture_of(tools.triple)
        package = f"; on Debian 'apt install libc6-dev-{architecture.debian}-cross'" if architecture.has_library else ""
        raise UsageError(f"{tools.compiler[0]} cannot compile C programs: {_shortened(done.stderr)}{package}")
    return path


Guard = Literal["before", "after"]
"""Whether an inaccessible page ends right before an array, or begins right after it."""


@dataclass(frozen=True, slots=True)
class EmulatedArray:
    """An array to pass.

    Attributes:
        data: The array, one-dimensional or not; after the calls it has the program's contents.
        guard: Where an inaccessible page is.
    """

    data: Array
    guard: Guard = "before"


Call = tuple[int, Sequence[int]]
"""The number of a function in the table, and the numbers of the arrays that it takes."""


class EmulatedProgram:
    """A linked program and the process that runs it, started on demand.

    Args:
        tools: What links it.
        emulator: Words of the emulator's command.
        objects: Its object files by name; one of them defines the table of functions.
        threads: Whether it calls an OpenMP library.
        cpu_seconds: CPU time after which the process ends; None for no limit.

    Raises:
        EmulationError: The objects do not link.
    """

    def __init__(
        self,
        tools: Toolchain,
        emulator: Sequence[str],
        objects: Mapping[str, bytes],
        *,
        threads: bool = False,
        cpu_seconds: int | None = None,
    ) -> None:
        self._emulator = list(emulator)
        self._cpu_seconds = cpu_seconds
        folder = tempfile.mkdtemp(prefix="tlx-emulator-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._program = Path(folder) / "program"
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._order: Literal["<", ">"] = "<"
        tools.link(objects, self._program, threads=threads)

    def call(self, arrays: Sequence[EmulatedArray], calls: Sequence[Call]) -> list[bool]:
        """Call functions one after the other on the same arrays.

        Args:
            arrays: The arrays, whose contents are replaced by those after the calls if they can be written.
            calls: The calls.

        Returns:
            For each array, whether the rest of its pages is unchanged.

        Raises:
            EmulationError: The program dies.
        """
        process = self._started()
        assert process.stdin is not None
        words = [word for function, numbers in calls for word in (function, len(numbers), *numbers)]
        try:
            process.stdin.write(self._words(len(arrays)))
            for array in arrays:
                process.stdin.write(self._words(array.data.nbytes, int(array.guard == "after")))
                process.stdin.write(self._swapped(array.data).tobytes())
            process.stdin.write(self._words(len(calls), *words))
            process.stdin.flush()
        except BrokenPipeError:
            raise self._end_of_program() from None
        intact: list[bool] = []
        for array in arrays:
            (is_intact,) = struct.unpack(f"{self._order}I", self._read(4))
            intact.append(bool(is_intact))
            contents = np.frombuffer(self._read(array.data.nbytes), array.data.dtype).reshape(array.data.shape)
            if array.data.flags.writeable:
                array.data[...] = self._swapped(contents)
        return intact

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._end()
        self._process = self._errors = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        process = subprocess.Popen(
            [*self._emulator, str(self._program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=self._program.parent,
        )
        self._process = process
        self._end = weakref.finalize(self, _end, process, self._errors)
        with contextlib.suppress(ProcessLookupError, AttributeError):
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
            if self._cpu_seconds is not None:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (self._cpu_seconds, self._cpu_seconds))
        self._order = "<" if self._read(4) == struct.pack("<I", 1) else ">"
        return process

    def _read(self, count: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise self._end_of_program()
        return data

    def _end_of_program(self) -> EmulationError:
        """The error of a program that has ended."""
        assert self._process is not None
        assert self._errors is not None
        status = self._process.wait()
        self._errors.seek(0)
        said = " ".join(self._errors.read().decode(errors="replace").split())[-400:]
        self.close()
        emulator = os.path.basename(self._emulator[0])  # noqa: PTH119 (a name, not a path)
        return EmulationError(f"the program ended with status {status} under {emulator}{f': {said}' if said else ''}")

    def _words(self, *words: int) -> bytes:
        return struct.pack(f"{self._order}{len(words)}I", *words)

    def _swapped(self, array: Array) -> Array:
        """An array with the bytes of its elements in the order of the machine, or of this one."""
        contents = np.ascontiguousarray(array)
        is_same = (self._order == "<") == (sys.byteorder == "little")
        if is_same or contents.dtype.itemsize == 1:
            return contents
        return contents.view(f"u{contents.dtype.itemsize}").byteswap().view(contents.dtype)


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """End a process and close its files."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, errors):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
