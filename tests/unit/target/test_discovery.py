"""Targets check their data, follow features, and are discovered, also in other packages."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.tools import HANG_S
from tlx.diagnostics import UsageError
from tlx.ir.builder import Builder
from tlx.ir.values import Value
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.target.discovery import provided_entry_points
from tlx.target.host import version_for
from tlx.target.installed import targets
from tlx.target.instructions.dots import Dot
from tlx.target.lookup import find_target
from tlx.target.matrix_unit import MatrixUnit, TileKind, TileOperations
from tlx.target.target import Target


def _emit(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    del b, lhs, rhs
    return acc


def _no_operations(*_: object, **__: object) -> TileOperations:
    pytest.fail("nothing is emitted here")


_DOT = Dot(("i8", "u"), ("i8", "s"), "i32", 4, "some", _emit)
_KIND = TileKind(16, 16, 64, 8, (2, 2), (_DOT,), 16, operands_take_tiles=True)
_DOUBLES = TileKind(4, 2, 32, 8, (2, 4), (replace(_DOT, accumulator="double"),), 2)
_UNIT = MatrixUnit((_KIND, _DOUBLES), _no_operations)


@pytest.mark.parametrize("width", [0, 3, 16])
def test_a_dot_product_adds_one_two_four_or_eight_products(width: int) -> None:
    with pytest.raises(ValueError, match=f"dot product of width {width}: instructions add 1 .*, 2, 4 or 8 products"):
        replace(_DOT, width=width)


def test_a_grid_of_accumulators_must_leave_tiles_for_operands() -> None:
    with pytest.raises(ValueError, match="a 3x3 grid needs 15 tiles, the unit has 8"):
        replace(_KIND, grid=(3, 3))
    with pytest.raises(ValueError, match="a 3x3 grid needs 9 tiles, the unit has 8"):
        replace(_DOUBLES, grid=(3, 3))


def test_sums_of_a_kind_of_tiles_have_one_known_width() -> None:
    with pytest.raises(ValueError, match="sums of type half: a matrix unit's sums are float, i32, double"):
        replace(_KIND, dots=(replace(_DOT, accumulator="half"),))
    with pytest.raises(ValueError, match="sums of one kind of tiles have one width"):
        replace(_KIND, dots=(_DOT, *_DOUBLES.dots))


def test_a_unit_finds_the_tiles_of_a_product() -> None:
    assert _UNIT.dots == (_DOT, *_DOUBLES.dots)
    assert [_UNIT.kind_of(dot) for dot in _UNIT.dots] == [_KIND, _DOUBLES]
    assert _UNIT.kind_for("i8", "double") is _DOUBLES
    assert _UNIT.with_dots((_DOT,)).kinds == (_KIND,)


@pytest.mark.parametrize("size", [0, 8, 24, 256])
def test_vector_registers_have_known_sizes(size: int) -> None:
    with pytest.raises(ValueError, match=f"target x: vector registers of {size} bytes; 16, 32, 64, 128 are supported"):
        Target("x", "a machine", vector_bytes=size)


@pytest.mark.parametrize("count", [0, 3])
def test_registers_hold_sums_and_operands(count: int) -> None:
    with pytest.raises(ValueError, match=f"target x: {count} vector registers; at least 4 are supported"):
        Target("x", "a machine", registers=count)


@pytest.mark.parametrize("feature", ["avx2", ""])
def test_features_start_with_a_sign(feature: str) -> None:
    with pytest.raises(ValueError, match=f"target x: feature '{feature}' needs a '\\+' or '-' in front"):
        Target("x", "a machine", features=(feature,))


@pytest.mark.parametrize("target", targets().values(), ids=lambda t: t.name)
def test_the_installed_targets_are_valid(target: Target) -> None:
    assert target.title
    assert find_target(target.name) is target
    assert target.registers in (8, 16, 31, 32, 56, 61)
    assert len(set(target.features)) == len(target.features)
    if target.matrix is not None:
        assert target.usable_matrix_dots


def test_features_switch_dot_products() -> None:
    target = Target("x", "a machine", features=("+base", "+some"), dots=(_DOT,))
    assert target.usable_dots == (_DOT,)
    without = target.with_features(("-some", "+other"))
    assert without.features == ("+base", "+other")
    assert without.usable_dots == ()
    assert without.with_features(("+some",)).usable_dots == (_DOT,)
    assert target.with_features(("+some",)).features == target.features


def test_the_order_of_targets_is_that_of_their_files() -> None:
    assert list(targets()) == sorted(targets())
    assert {"amx", "avx2", "avx512", "generic"} <= set(targets())


def test_an_unknown_target_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"unknown target 'z80'; choose from native, .*amx, .*avx2, .*generic"):
        find_target("z80")


_OUTSIDE = """
from tlx.target.target import Target

TARGET = Target("outside", "a target of another package", vector_bytes=32, registers=16)
"""
_ENTRY = "[tlx.legalize]\noutside = tlx_outside_target:TARGET\n"
_METADATA = "Metadata-Version: 2.1\nName: tlx-outside-target\nVersion: 1.0\n"
_PROGRAM = """
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 3, i32 8>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %m, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
"""


def _install_outside(folder: Path) -> None:
    (folder / "tlx_outside_target.py").write_text(_OUTSIDE)
    information = folder / "tlx_outside_target-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(_METADATA)
    (information / "entry_points.txt").write_text(_ENTRY)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that announces a target under the entry point group."""
    _install_outside(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    targets.cache_clear()
    provided_entry_points.cache_clear()
    yield
    sys.modules.pop("tlx_outside_target", None)
    targets.cache_clear()
    provided_entry_points.cache_clear()


@pytest.mark.usefixtures("outside")
def test_a_target_of_another_package_lowers() -> None:
    assert find_target("outside").title == "a target of another package"
    lowered = lower_text(_PROGRAM, target="outside")
    assert "llvm.tensor." not in lowered
    assert "@llvm.fmuladd.v8f32(" in lowered


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("old", "said"),
    [
        ('Target("outside", "", fused=True)', "got an unexpected keyword argument 'fused'"),
        ("import tlx.target.hardware", "No module named 'tlx.target.hardware'"),
    ],
)
def test_a_target_written_for_another_version_is_named(tmp_path: Path, old: str, said: str) -> None:
    (tmp_path / "tlx_outside_target.py").write_text(f"from tlx.target.target import Target\n{old}\n")
    message = f"target 'outside' of package tlx-outside-target 1.0 cannot be loaded: .*{said}; update or uninstall"
    with pytest.raises(UsageError, match=message):
        find_target("outside")


@pytest.mark.usefixtures("outside")
def test_a_package_cannot_replace_a_target(tmp_path: Path) -> None:
    (tmp_path / "tlx_outside_target.py").write_text(_OUTSIDE.replace('"outside"', '"avx2"'))
    with pytest.raises(UsageError, match="a package provides a target named 'avx2', which is the name of another"):
        targets()


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("name", ["outside", "outside+avx", "outside,avx2"])
def test_a_misspelled_feature_of_a_packages_target_is_an_error(tmp_path: Path, name: str) -> None:
    """LLVM itself ignores features that it does not know."""
    text = _OUTSIDE.replace("registers=16", 'registers=16, features=("+sse42",)')
    (tmp_path / "tlx_outside_target.py").write_text(text)
    message = r"target outside.* needs features that triple '.*' does not have: sse42; did you mean 'sse4\.2'\?"
    with pytest.raises(UsageError, match=message):
        lower_text(_PROGRAM, target=name)


@pytest.mark.parametrize(("name", "size"), [("sve", 16), ("sve256", 32), ("sme512", 64), ("rvv256", 32)])
def test_each_length_of_vectors_is_a_target(name: str, size: int) -> None:
    target = find_target(name)
    assert (target.name, target.vector_bytes) == (name, size)
    assert targets()[name] is target
    if size > 16:
        with pytest.raises(UsageError, match=f"target {name} has vectors of {size * 8} bits"):
            target.with_vector_bits(128)


def test_packages_are_searched_only_where_one_has_targets(tmp_path: Path) -> None:
    def run(program: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", f"import sys, tlx; {program}"],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_S,
        ).stdout.strip()

    searches = "tlx.find_target('native'); print('importlib.metadata' in sys.modules)"
    assert run(searches) == "False"
    _install_outside(tmp_path)
    assert run(searches) == "True"
    assert run("print(tlx.find_target('outside').title)") == "a target of another package"


def test_without_the_package_the_target_is_gone() -> None:
    with pytest.raises(UsageError, match="unknown target 'outside'"):
        find_target("outside")


@pytest.mark.parametrize(
    ("features", "size"),
    [("+sse2", (16, 16)), ("+avx,+avx2,+fma", (32, 16)), ("+avx2,+avx512f", (64, 32)), ("", (16, 16))],
)
def test_generic_vectors_are_those_of_the_function(features: str, size: tuple[int, int]) -> None:
    target = find_target("generic").for_features(features)
    assert (target.vector_bytes, target.registers) == size
    assert target.features == (tuple(features.split(",")) if size != (16, 16) else ())


def test_generic_vectors_are_those_of_a_processor_or_an_architecture() -> None:
    generic = find_target("generic")
    assert generic.on_cpu("znver5").vector_bytes == 64
    assert generic.on_cpu("znver3").vector_bytes == 32
    assert generic.on_cpu("some-machine") == generic
    assert generic.for_triple("aarch64-unknown-linux-gnu").registers == 32
    assert generic.for_triple("x86_64-pc-linux-gnu") == generic


@pytest.mark.parametrize(
    ("target", "masked"), [("generic", 0), ("generic+avx2", 2), ("generic+avx512f", 2), ("avx2", 2)]
)
def test_masked_instructions_of_generic_follow_its_features(target: str, masked: int) -> None:
    ragged = _PROGRAM.replace("<16 x float>", "<14 x float>").replace("i32 2, i32 8", "i32 2, i32 7")
    ragged = ragged.replace("i32 3, i32 8", "i32 3, i32 7")
    lowered = lower_text(ragged, target=target)
    assert lowered.count("call void @llvm.masked.store") == masked


def test_generic_vectors_have_the_requested_width() -> None:
    generic = find_target("generic")
    wide = [generic.with_vector_bits(bits) for bits in (128, 256, 512)]
    assert [(t.vector_bytes, t.registers, t.features) for t in wide] == [(16, 16, ()), (32, 16, ()), (64, 32, ())]
    assert all(t.for_features("+avx512f").vector_bytes == t.vector_bytes for t in wide)
    assert find_target("avx2").with_vector_bits(256) == find_target("avx2")
    with pytest.raises(UsageError, match="vectors of 512 bits: target avx2 has vectors of 256 bits"):
        find_target("avx2").with_vector_bits(512)
    with pytest.raises(UsageError, match="'vector_bits': '64' is not one of '128', '256', '512'"):
        Options(vector_bits=64)


def test_all_stages_use_the_requested_vector_width() -> None:
    """Non-temporal stores, aligned to 16 bytes by the second stage, were 64 bytes long and aligned in the third."""
    count = 1 << 24
    text = f"""
define void @f(ptr noalias %x, ptr noalias %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 {count}>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <{count} x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<{count} x float> %v, <1 x i32> <i32 {count}>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %u, <1 x i32> zeroinitializer)
  ret void
}}
"""  # noqa: E501
    lowered = lower_text(text, target="generic", options=Options(features=("+avx512f",), vector_bits=128))
    assert set(re.findall(r"store <(\d+) x float>.*align (\d+), !nontemporal", lowered)) == {("4", "16")}
    assert '"target-features"="+avx512f"' in lowered
    assert '"prefer-vector-width"="512"' not in lowered


def test_a_module_says_by_its_triple_how_many_registers_there_are() -> None:
    at = _PROGRAM.replace("<16 x float>", "<384 x float>").replace("i32 2, i32 8", "i32 8, i32 48")
    at = at.replace("i32 2, i32 3", "i32 8, i32 3").replace("i32 3, i32 8", "i32 3, i32 48")
    arm = lower_text('target triple = "aarch64-unknown-linux-gnu"\n' + at, target="generic")
    assert arm.count("= phi <4 x float>") > lower_text(at, target="generic").count("= phi <4 x float>")


def test_the_speed_of_dot_products_follows_the_processor() -> None:
    avx512 = targets()["avx512"]
    assert _cycles(avx512) == _cycles(avx512.on_cpu("znver5")) == 0.5
    assert _cycles(avx512.on_cpu("sapphirerapids")) == 2.0
    assert _cycles(avx512.for_features(",".join((*avx512.features, "+avx512fp16")))) == 2.0


def _cycles(target: Target) -> float:
    return next(dot.cycles for dot in target.dots if dot.feature == "avx512bf16")


def test_an_extension_of_the_matrix_unit_is_used_on_request() -> None:
    amx = find_target("amx")
    assert not any(dot.feature == "amx-fp16" for dot in amx.usable_matrix_dots)
    assert not any(dot.feature == "amx-fp16" for dot in amx.on_cpu("sapphirerapids").usable_matrix_dots)
    for more in (amx.with_features(("+amx-fp16",)), amx.on_cpu("graniterapids"), find_target("amx+amx-fp16")):
        assert any(dot.feature == "amx-fp16" for dot in more.usable_matrix_dots)
        assert len(more.usable_matrix_dots) == len(amx.usable_matrix_dots) + 1


def test_features_of_a_name_are_required() -> None:
    assert find_target("avx2+avxvnniint8").requires == (*find_target("avx2").requires, "avxvnniint8")


def test_the_version_that_a_machine_runs() -> None:
    both = find_target("avx2,avx512")
    haswell = frozenset({"avx2", "fma", "f16c"})
    skylake = haswell | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
    assert version_for(both, haswell).name == "avx2"
    assert version_for(both, skylake).name == "avx512"
    assert version_for(both, skylake | {"avx512_vnni"}).name == "avx512.avx512vnni"
    assert version_for(find_target("avx2"), frozenset()).name == "avx2"
