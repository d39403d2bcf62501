"""Several targets in one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.diagnostics import UsageError
from tlx.target.lookup import find_target, multiversion, resolve_target
from tlx.target.target import Target

_NAMES = ["avx2", "avx2.avxvnni", "avx512", "avx512.avx512vnni", "avx512.avx512vnni.avx512bf16", "amx"]


@pytest.mark.parametrize("names", ["avx2,avx512,amx", "amx,avx2,avx512", "avx512, amx, avx2"])
def test_the_order_of_the_names_means_nothing(names: str) -> None:
    target = find_target(names)
    assert target.name == "avx2,avx512,amx"
    assert [v.name for v in target.versions] == _NAMES
    assert [v.level for v in target.versions] == [1, 2, 3, 4, 5, 6]


def test_the_target_is_its_weakest() -> None:
    target = find_target("avx512,generic")
    generic = find_target("generic")
    assert (target.vector_bytes, target.registers, target.features) == (generic.vector_bytes, generic.registers, ())
    assert target.level == 0
    assert target.matrix is None


def test_each_version_has_the_features_of_its_tier() -> None:
    versions = find_target("avx512,avx2").versions
    assert versions[0].features == ("+avx2", "+fma", "+f16c")
    assert set(versions[1].features) - set(versions[0].features) == {"+avxvnni"}
    assert "+avx512vnni" not in versions[2].features
    assert set(versions[4].features) == set(find_target("avx512").features)


def test_features_apply_to_the_versions_that_know_them() -> None:
    target = find_target("avx2,avx512").with_features(("-avx512bf16", "+avxvnniint8"))
    assert all("+avx512bf16" not in v.features for v in target.versions)
    assert ["+avxvnniint8" in v.features for v in target.versions] == [True, True, False, False, False]
    assert target.features == target.versions[0].features


def test_versions_ignore_the_features_of_the_function() -> None:
    target = find_target("avx2,avx512")
    assert target.for_features("+avx2,+fma") is target
    assert target.on_cpu("alderlake") is target


def test_a_name_with_features() -> None:
    target = find_target("avx2+avxvnni+avxneconvert")
    assert target.name == "avx2.avxvnni.avxneconvert"
    assert target.features == (*find_target("avx2").features, "+avxvnni", "+avxneconvert")
    assert [v.name for v in find_target("avx2,avx2+avxneconvert").versions] == [
        "avx2",
        "avx2.avxvnni",
        "avx2.avxneconvert",
    ]


def test_a_target_is_named_once() -> None:
    with pytest.raises(UsageError, match="target 'avx2' is named twice"):
        find_target("avx2,avx512,avx2")


def test_targets_without_detection_cannot_be_combined() -> None:
    other = Target("other", "no x86", vector_bytes=64)
    with pytest.raises(UsageError, match="target 'other' cannot be one of several: a program cannot detect"):
        multiversion([find_target("avx2"), other])
    assert multiversion([find_target("avx2"), replace(other, vector_bytes=16)]).name == "other,avx2"


@pytest.mark.parametrize(
    ("name", "triple", "asking"),
    [
        ("avx2,amx", "x86_64-pc-windows-msvc", "amx"),
        ("amx,avx512", "x86_64-unknown-freebsd14", "amx"),
        ("neon,sve", "arm64-apple-macosx14.0.0", "sve"),
    ],
)
def test_versions_that_linux_is_asked_about_are_for_linux(name: str, triple: str, asking: str) -> None:
    message = f"target '{asking}' cannot be one of several for '{triple}': a program can detect its machines only on"
    with pytest.raises(UsageError, match=message):
        resolve_target(name, triple=triple)


@pytest.mark.parametrize(
    ("name", "triple"),
    [
        ("avx2,amx", "x86_64-linux-gnu"),
        ("avx2,amx", "x86_64-unknown-linux-android"),
        ("avx2,amx", "x86_64"),
        ("avx2,avx512", "x86_64-pc-windows-msvc"),
        ("amx", "x86_64-pc-windows-msvc"),
        ("neon,sve", "aarch64-unknown-linux-gnu"),
    ],
)
def test_other_versions_are_for_any_system(name: str, triple: str) -> None:
    assert resolve_target(name, triple=triple).name == name
