"""`tlx translate`, and `tlx-lower` on files in the tensor language."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import tlx
from tlx.api import files
from tlx.diagnostics import UsageError
from tlx.frontends import tensor_language as tl
from tlx.lower import pipeline

BIN: Final = Path(sys.executable).parent

STORE: Final = """func @store(%a: f32, %A: memref<f32x4>) {
    %0 = constant 1 : index
    store %a, %A[%0]
}
"""
WRONG: Final = """func @wrong(%a: f32, %A: memref<f32x4>) {
    store %a, %A[%i]
    store %a, %A[]
    store %b, %A[%a]
}
"""
V1: Final = """func @v1(%A: memref<f32x4x4>, %B: memref<f32x4x4>) {
    gemm.n.t 1.0, %A, %A, 0.0, %B : f32, memref<f32x4x4>, memref<f32x4x4>, f32, memref<f32x4x4>
}
"""


def run(folder: Path, *command: str, stdin: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=folder, input=stdin, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"store": STORE, "wrong": WRONG, "v1": V1}.items():
        (tmp_path / f"{name}.tl").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_command_writes_what_the_function_returns(folder: Path) -> None:
    assert run(folder, "tlx", "translate", "store.tl", "-o", "store.ll") == (0, "", "")
    assert (folder / "store.ll").read_text(encoding="utf-8").strip() == str(tl.translate(STORE, "store.tl")).strip()


def test_reads_standard_input(folder: Path) -> None:
    status, out, err = run(folder, "tlx", "translate", stdin=STORE)
    assert (status, err) == (0, "")
    assert out == str(tl.translate(STORE)).strip() + "\n"


def test_typed_pointers_are_for_old_llvm(folder: Path) -> None:
    assert "float* %A" in run(folder, "tlx", "translate", "store.tl", "--typed-pointers")[1]
    assert "ptr %A" in run(folder, "tlx", "translate", "store.tl")[1]


def test_threads_are_enabled(folder: Path) -> None:
    assert "GOMP_parallel" in run(folder, "tlx", "translate", "store.tl", "--threads=openmp")[1]
    assert "GOMP_parallel" not in run(folder, "tlx", "translate", "store.tl", "--threads=none")[1]


def test_the_tree_is_spelled_in_version_2(folder: Path) -> None:
    status, out, _ = run(folder, "tlx", "translate", "store.tl", "--emit=ast")
    assert status == 0
    assert tl.parse(out) == tl.parse(STORE)
    assert run(folder, "tlx", "translate", "-", "--emit=ast", stdin=out)[1] == out


def test_the_first_version_is_converted(folder: Path) -> None:
    status, out, err = run(folder, "tlx", "translate", "v1.tl", "--emit=v2")
    assert (status, err) == (0, "")
    assert "gemm.n.t %" in out
    assert tl.parse(out) == tl.parse(V1, std="v1")
    assert run(folder, "tlx", "translate", "v1.tl", "--std=v1")[0] == 0


def test_the_first_version_is_an_error_in_the_second(folder: Path) -> None:
    status, out, err = run(folder, "tlx", "translate", "v1.tl")
    assert (status, out) == (1, "")
    assert err.startswith("v1.tl:2:")


def test_prints_prototypes(folder: Path) -> None:
    status, out, _ = run(folder, "tlx", "translate", "store.tl", "--emit=signature")
    assert status == 0
    assert out.startswith("void store(float a, float *A, int64_t num_groups_x,")
    assert "  A             %A: memref<f32x4>, address of its first element\n" in out


@pytest.mark.parametrize("form", ["ll", "signature", "header", "v2"])
def test_all_errors_are_shown_and_nothing_is_written(folder: Path, form: str) -> None:
    status, out, err = run(folder, "tlx", "translate", "wrong.tl", "--std=v2", f"--emit={form}", "-o", "out")
    assert (status, out) == (1, "")
    assert [line.split(": ")[0] for line in err.splitlines() if "error:" in line][:2] == [
        "wrong.tl:2:18",
        "wrong.tl:3:15",
    ]
    assert "wrong.tl:4:11: error:" in err
    assert "Traceback" not in err
    assert not (folder / "out").exists()


@pytest.mark.parametrize("data", [b"\xff", b"func @f( \x00", b"", b"func @f() {} func @f() {}"])
def test_no_input_gives_a_traceback(folder: Path, data: bytes) -> None:
    (folder / "bad.tl").write_bytes(data)
    status, _, err = run(folder, "tlx", "translate", "bad.tl")
    assert "internal error" not in err
    assert "Traceback" not in err
    assert status == (0 if not data else 1)
    assert not data or err.startswith("bad.tl:1:")


def test_lower_reads_it_directly(folder: Path) -> None:
    status, out, err = run(folder, "tlx-lower", "store.tl", "--target=avx2")
    assert (status, err) == (0, "")
    assert "define dso_local void @store(" in out
    assert run(folder, "tlx-lower", "store.tl", "--emit=asm")[1].count("store.group:") == 1


def test_lower_reports_all_errors(folder: Path) -> None:
    status, out, err = run(folder, "tlx-lower", "wrong.tl")
    assert (status, out) == (1, "")
    assert err.count("error:") >= 3


def test_other_commands_read_the_language(folder: Path) -> None:
    assert run(folder, "tlx", "verify", "store.tl") == (0, "", "")
    assert run(folder, "tlx", "verify", "wrong.tl")[0] == 1


def test_assembly_from_a_file_of_that_kind_has_a_name_of_its_own(folder: Path) -> None:
    assert files.ir_name("a.tl") == "a.tl (translated)"
    assert files.ir_name("a.ll") == "a.ll"
    assert files.ir_name("-") == "<stdin>"
    assert "define dso_local void @store(" in files.read_ir(str(folder / "store.tl"))


def test_the_front_end_is_discovered() -> None:
    assert tl in pipeline.front_ends()
    assert tlx.tensor_language is tl
    assert "tensor_language" in dir(tlx)
    with pytest.raises(AttributeError, match="no attribute 'tensor_tongue'"):
        _ = tlx.tensor_tongue


def test_unknown_versions_are_refused() -> None:
    with pytest.raises(UsageError, match="choose from v1, v2"):
        tl.parse("", std="v3")  # pyright: ignore[reportArgumentType]
