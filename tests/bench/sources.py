"""LLVM IR of real programs: C and C++ sources inside packages from PyPI, compiled by two versions of clang."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CLANGS: Final = ("clang-14", "clang-19")
_LEVELS: Final = {"O0": ["-O0"], "O2": ["-O2"], "O2g": ["-O2", "-g"]}


@dataclass(frozen=True)
class Package:
    """A source package.

    Attributes:
        requirement: Name and version.
        units: Files to compile.
        include: Folders of headers.
    """

    requirement: str
    units: tuple[str, ...]
    include: tuple[str, ...] = ()


PACKAGES: Final = (
    Package("zstandard==0.25.0", ("zstd/zstd.c",)),
    Package("pysimdjson==7.0.2", ("simdjson/simdjson.cpp",)),
    Package("pyroaring==1.2.0", ("pyroaring/roaring.c",)),
    Package(
        "brotli==1.2.1",
        ("c/enc/encode.c", "c/enc/backward_references_hq.c", "c/dec/decode.c"),
        ("c/include",),
    ),
    Package("lz4==4.4.5", ("lz4libs/lz4.c", "lz4libs/lz4hc.c")),
    Package(
        "ujson==6.1.0",
        (
            "src/ujson/deps/double-conversion/double-conversion/bignum.cc",
            "src/ujson/deps/double-conversion/double-conversion/string-to-double.cc",
        ),
        ("src/ujson/deps/double-conversion",),
    ),
)


@dataclass(frozen=True)
class Text:
    """A file of LLVM IR: what it is, and where."""

    name: str
    path: Path


def texts(cache: Path, only: str = "") -> list[Text]:
    """Files of LLVM IR whose name holds `only`; what is not in the cache is fetched and compiled.

    Raises:
        CalledProcessError: pip or clang failed.
        FileNotFoundError: There is no clang.
    """
    clangs = [clang for clang in _CLANGS if shutil.which(clang)]
    if not clangs:
        msg = f"none of {', '.join(_CLANGS)} was found"
        raise FileNotFoundError(msg)
    return [text for package in PACKAGES for text in _texts(package, cache, clangs, only)]


def _texts(package: Package, cache: Path, clangs: list[str], only: str) -> list[Text]:
    units = [
        (unit, clang, level, name)
        for unit in package.units
        for clang in clangs
        for level in _LEVELS
        if only in (name := f"{Path(unit).name}.{clang}.{level}.ll")
    ]
    if not units:
        return []
    folder = _fetched(package, cache)
    return [_compiled(package, folder, cache, *one) for one in units]


def _fetched(package: Package, cache: Path) -> Path:
    """The unpacked source package."""
    name, version = package.requirement.split("==")
    folder = cache / f"{name}-{version}"
    if folder.is_dir():
        return folder
    print(f"fetching {package.requirement}", file=sys.stderr)
    archive = cache / f"{name}-{version}.tar.gz"
    if not archive.exists():
        command = ["-m", "pip", "download", "-q", "--no-binary", ":all:", "--no-deps", "-d", str(cache)]
        subprocess.run([sys.executable, *command, package.requirement], check=True)
    with tarfile.open(archive) as contents:
        contents.extractall(cache, filter="data")
    return folder


def _compiled(package: Package, folder: Path, cache: Path, unit: str, clang: str, level: str, name: str) -> Text:
    output = cache / "ir"
    output.mkdir(parents=True, exist_ok=True)
    path = output / name
    if not path.exists():
        _compile(clang, _LEVELS[level], folder, package.include, unit, path)
    return Text(name, path)


def _compile(clang: str, flags: list[str], folder: Path, include: tuple[str, ...], unit: str, path: Path) -> None:
    print(f"compiling {path.name}", file=sys.stderr)
    headers = [f"-I{folder / place}" for place in include]
    fresh = path.with_suffix(".tmp")
    command = [clang, "-w", "-S", "-emit-llvm", *flags, *headers, str(folder / unit), "-o", str(fresh)]
    subprocess.run(command, check=True)
    fresh.replace(path)
