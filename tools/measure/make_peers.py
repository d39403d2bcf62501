"""Install the libraries that `tlx bench` compares with into a folder: `python tools/measure/make_peers.py peers`.

    venv/     mkl, scipy-openblas32, onednn-cpu-gomp and torch from PyPI
    lib/      libxsmm.so, from Debian's libxsmm-dev (release 1.17) if that is installed, and
              libxsmm_amx.so, a newer version with AMX, from the wheel of intel-extension-for-pytorch
    lib/      libdnnl.so.3, a newer oneDNN, from the wheel of paddlepaddle

The optional second argument is a processor in the spelling of clang's -march, for machines without clang: the C loops
and matrix code to compare with are compiled into clang/ (this needs TLX and clang here).

    python tools/measure/make_peers.py peers sapphirerapids

Then `export TLX_PEERS=$PWD/peers`, or `tlx bench --peers-path=peers`. Libraries that cannot be installed are skipped.

The wheel's library links libxsmm statically and exports its functions, but needs all of PyTorch. To load a copy of it
alone, these dependencies are removed from its dynamic section:

    DT_NEEDED of PyTorch's libraries   -> that of libc.so.6
    DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ   -> 0: constructors would call PyTorch; whoever loads it calls libxsmm_init()
    undefined global symbols           -> weak ones, which need not exist
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

_PACKAGES = ("mkl", "scipy-openblas32", "onednn-cpu-gomp", "torch")
_WHEELS = {
    "intel-extension-for-pytorch": ("libintel-ext-pt-cpu.so", "libxsmm_amx.so"),
    "paddlepaddle": ("libdnnl.so.3", "libdnnl.so.3"),
}
_STATIC = ("/usr/lib/libxsmm.a", "/usr/lib/libxsmmnoblas.a")
_KEPT = ("libc.", "libm.", "libgcc_s", "libstdc++", "libpthread", "libdl", "libgomp", "librt", "ld-linux")
_NEEDED, _STRINGS, _INIT_ARRAY_SIZE, _FINI_ARRAY_SIZE = 1, 5, 27, 28
_DYNAMIC_SYMBOLS = 11
_GLOBAL, _WEAK = 1, 2


def main(folder: Path) -> None:
    """Fill the folder."""
    libraries = folder / "lib"
    libraries.mkdir(parents=True, exist_ok=True)
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    for package in _PACKAGES:
        subprocess.run([str(python), "-m", "pip", "install", "-q", package], check=False)
    if all(Path(archive).exists() for archive in _STATIC):
        whole = ["-Wl,--whole-archive", *_STATIC, "-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]
        subprocess.run(["cc", "-shared", "-o", str(libraries / "libxsmm.so"), *whole], check=False)
    for package, (inner, name) in _WHEELS.items():
        image = _out_of_wheel(str(python), package, inner)
        if image is not None:
            (libraries / name).write_bytes(_alone(image) if name.startswith("libxsmm") else image)


def _out_of_wheel(python: str, package: str, name: str) -> bytes | None:
    """A library from a package on PyPI; None if there is none for this machine."""
    with tempfile.TemporaryDirectory() as place:
        download = [python, "-m", "pip", "download", "-q", "--no-deps", "-d", place, package]
        subprocess.run(download, check=False)
        for wheel in Path(place).glob("*.whl"):
            with zipfile.ZipFile(wheel) as contents:
                for member in contents.namelist():
                    if member.endswith(f"/{name}"):
                        return contents.read(member)
    return None


def _alone(image: bytes) -> bytes:
    """A copy of a shared library (64-bit ELF) that can be loaded without its dependencies."""
    data = bytearray(image)
    entries = list(_dynamic_entries(data))
    strings = _offset(data, next(value for _, tag, value in entries if tag == _STRINGS))

    def text(value: int) -> str:
        return data[strings + value : data.index(0, strings + value)].decode()

    libc = next(value for _, tag, value in entries if tag == _NEEDED and text(value) == "libc.so.6")
    for place, tag, value in entries:
        if tag == _NEEDED and not text(value).startswith(_KEPT):
            struct.pack_into("<Q", data, place + 8, libc)
        if tag in {_INIT_ARRAY_SIZE, _FINI_ARRAY_SIZE}:
            struct.pack_into("<Q", data, place + 8, 0)
    for place in _symbols(data):
        _, info, _, section = struct.unpack_from("<IBBH", data, place)
        if section == 0 and info >> 4 == _GLOBAL:
            data[place + 4] = _WEAK << 4 | info & 15
    return bytes(data)


def _segments(data: bytearray) -> Iterator[tuple[int, int, int, int]]:
    """(type, offset, address, size in the file) of each program header."""
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for index in range(count):
        type_, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, start + index * size)
        yield type_, offset, address, length


def _offset(data: bytearray, address: int) -> int:
    return next(o + address - a for kind, o, a, size in _segments(data) if kind == 1 and a <= address < a + size)


def _dynamic_entries(data: bytearray) -> Iterator[tuple[int, int, int]]:
    """(offset, tag, value) of each entry of the dynamic section."""
    start, size = next((offset, size) for kind, offset, _, size in _segments(data) if kind == 2)
    for place in range(start, start + size, 16):
        tag, value = struct.unpack_from("<qQ", data, place)
        yield place, tag, value


def _symbols(data: bytearray) -> Iterator[int]:
    """Offsets of the dynamic symbols, without the first, which is null."""
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for index in range(count):
        _, kind, _, _, offset, length = struct.unpack_from("<IIQQQQ", data, start + index * size)
        if kind == _DYNAMIC_SYMBOLS:
            yield from range(offset + 24, offset + length, 24)


def compile_loops(folder: Path, processor: str) -> None:
    """Fill `clang/` with libraries for a processor."""
    from tlx.bench import workloads
    from tlx.bench.peers import clang

    folder.mkdir(parents=True, exist_ok=True)
    clang.build(workloads.all_workloads(), folder, processor)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    for name in sys.argv[2:]:
        compile_loops(Path(sys.argv[1]) / "clang", name)
