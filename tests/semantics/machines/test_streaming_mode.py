"""Code for SME needs no SVE outside of streaming mode, as processors with SME but without SVE (Apple M4) require.

QEMU has no such processor, so machine code is disassembled: see `tests.support.streaming_mode`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.semantics.dynamic.test_dynamic import PROGRAMS
from tests.semantics.machines import programs
from tests.support.streaming_mode import StreamingModeReport, check_streaming_mode
from tests.support.tools import quick, require
from tlx.llvm.codegen import emit_code
from tlx.lower.options import Options, Threads
from tlx.lower.pipeline import lower_text

TRIPLE = "aarch64-linux-gnu"
CPU = "apple-m4"
TEXTS = {
    "products": "".join(programs.fused_product_text(kind, (16, 24, 32)) for kind in programs.KINDS if kind != "double"),
    **{example.name: example.text for example in programs.LAYERS},
    "half": programs.half_text(3, 21),
    "run-time sizes": PROGRAMS[next(iter(PROGRAMS))].text,
}


def check(
    folder: Path, text: str, target: str, *, level: int = 2, compiler: str = "", threads: Threads = "none"
) -> StreamingModeReport:
    """Compile a program and check its instructions."""
    cpu = "" if "," in target else CPU
    lowered = lower_text(text, target=target, options=Options(triple=TRIPLE, cpu=cpu, threads=threads))
    file = folder / "program.o"
    if compiler:
        source = folder / "program.ll"
        source.write_text(lowered, encoding="utf-8")
        options = [f"--target={TRIPLE}", f"-mcpu={CPU}", f"-O{level}", "-Wno-override-module", "-c", "-o", str(file)]
        subprocess.run([require(compiler), *options, str(source)], check=True)
    else:
        file.write_bytes(emit_code(lowered, "obj", level, cpu, triple=TRIPLE))
    return check_streaming_mode(file)


@pytest.mark.parametrize("target", quick(["sme512", "sme256", "sme"], 1))
@pytest.mark.parametrize("name", TEXTS)
def test_code_needs_no_sve_outside_of_streaming_mode(tmp_path: Path, name: str, target: str) -> None:
    report = check(tmp_path, TEXTS[name], target)
    assert not report.faults
    assert report.streaming > 0 or name not in ("products", "mlp")


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", quick(["mlp", "products", "convolution"], 1))
def test_code_of_clang(tmp_path: Path, name: str, level: int) -> None:
    report = check(tmp_path, TEXTS[name], "sme512", level=level, compiler="clang-19")
    assert not report.faults
    assert report.streaming > 0


def test_unoptimised_code(tmp_path: Path) -> None:
    report = check(tmp_path, TEXTS["mlp"], "sme512", level=0)
    assert not report.faults
    assert report.streaming > 0


def test_code_with_threads(tmp_path: Path) -> None:
    report = check(tmp_path, TEXTS["mlp"], "sme512", threads="openmp")
    assert not report.faults
    assert report.streaming > 0


@pytest.mark.parametrize("target", quick(["neon,sme512", "neon,sme,sme256,sme512"], 1))
def test_detection_and_versions(tmp_path: Path, target: str) -> None:
    report = check(tmp_path, TEXTS["mlp"], target)
    assert not report.faults
    assert report.streaming > 0


SCALABLE = """
define void @f(ptr %x) {attributes} {{
  %v = load <vscale x 4 x i32>, ptr %x
  %w = add <vscale x 4 x i32> %v, %v
  store <vscale x 4 x i32> %w, ptr %x
  ret void
}}
"""


@pytest.mark.parametrize(
    ("attributes", "is_fault"),
    [('"target-features"="+sve"', True), ('"target-features"="+sme" "aarch64_pstate_sm_body"', False)],
    ids=["outside", "in streaming mode"],
)
def test_the_check_finds_sve(tmp_path: Path, attributes: str, *, is_fault: bool) -> None:
    file = tmp_path / "scalable.o"
    file.write_bytes(emit_code(SCALABLE.format(attributes=attributes), "obj", 2, triple=TRIPLE))
    report = check_streaming_mode(file)
    assert bool(report.faults) == is_fault
    assert bool(report.streaming) != is_fault
