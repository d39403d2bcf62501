"""The tables of x86 features: their bits of CPUID, the features of processors, and targets with them."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.tools import require
from tlx.legalize.x86.features import CPU_FEATURES
from tlx.legalize.x86.host import CPUID_BITS, XCR0_TILES, XCR0_YMM, XCR0_ZMM
from tlx.target.lookup import find_target
from tlx.target.target import Target, normalized_feature

_X86 = [find_target(name) for name in ("avx2", "avx512", "amx")]
_USED = frozenset[str]().union(*CPU_FEATURES.values())
_WITHOUT_REGISTERS = ("sse", "ssse", "popcnt", "bmi")  # and those of 128 bits, which all systems save


@pytest.mark.parametrize("target", _X86, ids=lambda t: t.name)
def test_cpuid_has_a_bit_for_every_feature_of_a_target(target: Target) -> None:
    matrix = target.matrix.dots if target.matrix else ()
    assert {f[1:] for f in target.features} | {d.feature for d in (*target.dots, *matrix)} <= set(CPUID_BITS)


@pytest.mark.parametrize("target", _X86, ids=lambda t: t.name)
def test_what_a_target_requires_are_features_of_its_kernels(target: Target) -> None:
    features = {normalized_feature(feature[1:]) for feature in target.features}
    assert {normalized_feature(flag) for flag in target.requires} <= features


def test_features_need_saved_registers() -> None:
    """512-bit registers include the 256-bit ones; tiles are apart from both, and what uses neither needs nothing."""
    assert XCR0_ZMM & XCR0_YMM == XCR0_YMM
    assert not XCR0_TILES & XCR0_ZMM
    for name, bit in CPUID_BITS.items():
        expected = XCR0_TILES if name.startswith("amx") else XCR0_ZMM if name.startswith("avx512") else XCR0_YMM
        assert bit.state == (0 if name.startswith(_WITHOUT_REGISTERS) else expected), name


def test_no_two_features_share_a_bit() -> None:
    places = [(b.leaf, b.subleaf, b.register, b.bit) for b in CPUID_BITS.values()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("cpu", CPU_FEATURES)
def test_features_of_processors_agree_with_clang(cpu: str) -> None:
    command = [require("clang-19"), "--target=x86_64-linux-gnu", f"-march={cpu}", "-dM", "-E", "-x", "c", "/dev/null"]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    defined = {normalized_feature(name.lower()) for name in re.findall(r"__(\w+)__ 1", macros)}
    assert {feature for feature in _USED if normalized_feature(feature) in defined} == set(CPU_FEATURES[cpu])


@pytest.mark.parametrize(
    ("name", "cpu", "has", "lacks"),
    [
        ("avx2", "haswell", {"+avx2"}, {"+avxvnni", "+avxvnniint8"}),
        ("avx2", "alderlake", {"+avx2", "+avxvnni"}, {"+avxvnniint8"}),
        ("avx2", "sierraforest", {"+avxvnni", "+avxvnniint8"}, {"+avx512f"}),
        ("avx2", "lunarlake", {"+avxvnni", "+avxvnniint8"}, {"+avx512f"}),
        ("avx512", "skylake-avx512", {"+avx512f", "+avx512bw"}, {"+avx512vnni", "+avx512bf16"}),
        ("avx512", "icelake-server", {"+avx512vnni"}, {"+avx512bf16"}),
        ("amx", "sapphirerapids", {"+amx-tile", "+avx512bf16"}, {"+avxvnni", "+amx-fp16"}),
        ("amx", "graniterapids", {"+amx-tile", "+avx512bf16", "+amx-fp16"}, {"+avxvnni"}),
    ],
)
def test_targets_follow_processors(name: str, cpu: str, has: set[str], lacks: set[str]) -> None:
    features = set(find_target(name).on_cpu(cpu).features)
    assert has <= features
    assert not lacks & features


def test_base_features_of_a_target_are_not_optional() -> None:
    """A function that names some of the features of its machine does not take away the others."""
    assert "+avx512bw" in find_target("avx512").for_features("+avx512f,+avx512vnni").features
    assert "+avx2" in find_target("avx2").for_features("+avx2").features
