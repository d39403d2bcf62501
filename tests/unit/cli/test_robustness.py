"""Outputs of commands that are killed, lack room, or write one file together; the same bytes on every run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import tlx
from tests.support.tools import HANG_S, quick
from tlx.api import files
from tlx.diagnostics import UsageError

_EXAMPLES: Final = Path(__file__).parents[3] / "examples"
_LOWER: Final = (str(Path(sys.executable).parent / "tlx-lower"), str(_EXAMPLES / "ir/mlp.ll"))
_OLD: Final = "; the old file\n"
_WRITES: Final = """
import os, sys
from tlx.api import files
from tlx.diagnostics import UsageError
os.setuid(65534)
for name in ("file", "inside/new", "new"):
    try:
        files.write_output(f"{sys.argv[1]}/{name}", "text")
    except UsageError as error:
        print(error.message)
"""
"""Writes files as the user that may write least."""


def _started(*options: str, **variables: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **variables}
    return subprocess.Popen([*_LOWER, *options], env=environment, stderr=subprocess.PIPE, process_group=0)


def _lowered(*options: str, **variables: str) -> str:
    done = subprocess.run(
        [*_LOWER, *options],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _processes_with(marker: str) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text(encoding="utf-8").replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("rounds", [4, pytest.param(40, marks=pytest.mark.long)])
def test_kills_at_any_moment(tmp_path: Path, rounds: int) -> None:
    """The output is the old file or the new one, and the process of LLVM ends too."""
    output = tmp_path / "out.ll"
    begun = time.monotonic()
    expected = _lowered("--target=avx512")
    length = time.monotonic() - begun
    choose, marker = random.Random(7), f"TLX_TEST={tmp_path}"
    for _ in range(rounds):
        output.write_text(_OLD, encoding="utf-8")
        with _started("--target=avx512", "-o", str(output), TLX_TEST=str(tmp_path)) as process:
            time.sleep(choose.uniform(0, 1.2 * length))
            process.send_signal(choose.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
            process.wait(HANG_S)
        assert output.read_text(encoding="utf-8") in (_OLD, expected)
    deadline = time.monotonic() + HANG_S
    while _processes_with(marker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _processes_with(marker)


@pytest.mark.parametrize("size", quick([10_000, 0, 1000, 20_000]))
def test_no_room(tmp_path: Path, size: int) -> None:
    """A disk without room, as a limit on the size of files: an error in words, and the old file."""
    output = tmp_path / "out.ll"
    output.write_text(_OLD, encoding="utf-8")
    command = (*_LOWER, "--target=avx512", "-o", str(output))
    limited = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, 2 * (int(sys.argv[1]),)); "
    done = subprocess.run(
        [sys.executable, "-c", f"{limited}os.execv(sys.argv[2], sys.argv[2:])", str(size), *command],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("tlx-lower: error: could not write ")
    assert "File too large" in done.stderr or "usable temporary directory" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out.ll"]
    assert output.read_text(encoding="utf-8") == _OLD


def test_two_writers(tmp_path: Path) -> None:
    expected = {_lowered(f"--target={target}") for target in ("avx512", "avx2")}
    assert len(expected) == 2
    output = tmp_path / "out.ll"
    both = [_started(f"--target={target}", "-o", str(output)) for target in ("avx512", "avx2")]
    for process in both:
        with process:
            assert process.wait(HANG_S) == 0
    assert output.read_text(encoding="utf-8") in expected
    assert [path.name for path in tmp_path.iterdir()] == ["out.ll"]


def test_symbolic_links(tmp_path: Path) -> None:
    """Files are written through links; the links stay."""
    file, link, dangling, loop = (tmp_path / name for name in ("file", "link", "dangling", "loop"))
    file.write_text(_OLD, encoding="utf-8")
    link.symlink_to(file)
    dangling.symlink_to(tmp_path / "new")
    loop.symlink_to(loop)
    for path in (link, dangling):
        files.write_output(str(path), "text")
        assert path.is_symlink()
        assert path.resolve().read_text(encoding="utf-8") == "text"
    with pytest.raises(UsageError, match=r"could not open output file '.*loop': Too many levels of symbolic links"):
        files.write_output(str(loop), "text")
    with pytest.raises(UsageError, match="Too many levels of symbolic links"):
        files.check_writable(str(loop))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_read_only_outputs() -> None:
    """A file, or a folder, that the user may not write; root may write all of them."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o777)
        (folder / "file").write_text(_OLD, encoding="utf-8")
        (folder / "inside").mkdir(0o755)
        done = subprocess.run(
            [sys.executable, "-c", _WRITES, str(folder)], capture_output=True, text=True, check=False, timeout=HANG_S
        )
        assert done.returncode == 0, done.stderr
        for line, name in zip(done.stdout.splitlines(), ("file", "inside/new"), strict=True):
            assert line.startswith("could not open output file '")
            assert line.endswith(f"{name}': Permission denied")
        assert (folder / "file").read_text(encoding="utf-8") == _OLD
        assert sorted(path.name for path in folder.iterdir()) == ["file", "inside", "new"]
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("options", quick([("--target=avx512",), ("--target=amx,avx2", "--threads=openmp"), ("-O2",)]))
def test_the_same_bytes_with_every_hash_seed(options: tuple[str, ...]) -> None:
    assert len({_lowered(*options, PYTHONHASHSEED=seed) for seed in ("0", "1", "4242")}) == 1


@pytest.mark.parametrize("rounds", [4, pytest.param(300, marks=pytest.mark.long)])
def test_threads_compile_and_call(rounds: int) -> None:
    """Two threads compile functions of their own and call them at the same time."""
    failures: list[str] = []

    def work(first: int) -> None:
        try:
            for number in range(first, rounds, 2):
                size = 4 + number % 29
                vector = f"<{size} x float>"
                program = tlx.compile(
                    f"define void @f(ptr noalias %x, ptr noalias %y) {{\n"
                    f"  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 {size}>, "
                    f"<1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)\n"
                    f"  %v = call {vector} @llvm.tensor.relu(token %a)\n"
                    f"  store {vector} %v, ptr %y\n  ret void\n}}\n"
                )
                x, y = np.arange(size, dtype="f4") - number % 7, np.zeros(size, "f4")
                program.f(x, y)
                np.testing.assert_array_equal(y, np.maximum(x, 0))
        except Exception as error:  # noqa: BLE001 (a thread's error would be lost)
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
