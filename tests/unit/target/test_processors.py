"""Processors by LLVM's names: what targets say of them is what LLVM says, and those that lack features are refused."""

from __future__ import annotations

import re

import pytest

from tlx.diagnostics import UsageError
from tlx.llvm.codegen import lacking_features
from tlx.target.installed import targets
from tlx.target.lookup import find_target, resolve_target

PROCESSORS = [(target.name, cpu) for target in targets().values() if target.grid is None for cpu in target.cpus]


@pytest.mark.parametrize(("name", "cpu"), PROCESSORS)
def test_targets_have_the_features_that_llvm_knows(name: str, cpu: str) -> None:
    target = targets()[name]
    listed = target.cpus[cpu].features
    features = tuple(dict.fromkeys([*listed, *target.used_features, *target.needed_features]))
    triple = target.triples[0] if target.triples else "x86_64-linux-gnu"
    lacking = lacking_features(triple, cpu, (), features)
    assert lacking is not None
    assert lacking.isdisjoint(listed)
    assert lacking.union(listed) == set(features)


@pytest.mark.parametrize(
    ("name", "cpu", "message"),
    [
        ("sve", "neoverse-n1", "cannot run target sve: it lacks sve; use --target=neon"),
        ("sme", "neoverse-v2", "cannot run target sme: it lacks sme; use --target=neon or --target=sve"),
        ("mma", "pwr9", "cannot run target mma: it lacks power10-vector, .*, mma; use --target=vsx"),
        (
            "amx",
            "znver4",
            "cannot run target amx: it lacks amx-tile, .*, amx-int8; use --target=avx2 or --target=avx512",
        ),
        (
            "avx512",
            "haswell",
            "cannot run target avx512: it lacks avx512f, .*, avx512vl; use --target=avx2",
        ),
        ("rvv", "sifive-u74", "cannot run target rvv: it lacks v; name another processor, or none"),
    ],
)
def test_a_processor_without_needed_features_is_refused(name: str, cpu: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"processor '{re.escape(cpu)}' {message}$"):
        resolve_target(name, cpu=cpu)


@pytest.mark.parametrize(
    ("name", "cpu", "features"),
    [
        ("sve", "neoverse-n1", ("+sve",)),
        ("sve+sve2", "neoverse-v2", ()),
        ("avx512", "haswell", ("+avx512f", "+avx512bw", "+avx512dq", "+avx512vl")),
        ("avx2,avx512", "haswell", ()),
        ("generic", "x86-64", ()),
        ("avx512", "generic", ()),
        ("rvv", "generic-rv64", ()),
        ("hvx", "hexagonv73", ()),
        ("sme512", "apple-m4", ()),
    ],
)
def test_added_features_and_optional_units_are_accepted(name: str, cpu: str, features: tuple[str, ...]) -> None:
    resolve_target(name, cpu=cpu, features=features)


def test_a_processor_that_a_target_has_no_data_of_has_the_features_that_llvm_knows() -> None:
    dots = {dot.feature for dot in resolve_target("neon", cpu="cortex-a76").usable_dots}
    assert dots == {"dotprod"}
    assert "+bf16" in resolve_target("neon", cpu="cortex-a76", features=("+bf16",)).features
    assert "+zvfh" in resolve_target("rvv", cpu="sifive-p870").features


def test_a_processor_that_llvm_cannot_compile_for_has_no_optional_features() -> None:
    assert resolve_target("rvv", cpu="rocket-rv32").features == resolve_target("rvv").features
    assert resolve_target("avx2", cpu="pentium4", triple="x86_64-linux-gnu").features == ("+avx2", "+fma", "+f16c")


def test_a_feature_of_another_width_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'\+hvx-length64b': target hvx has vectors of 1024 bits"):
        resolve_target("hvx", features=("+hvx-length64b",))


def test_the_native_target_is_named_if_a_processor_cannot_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlx.target.host.native_target", lambda: find_target("avx512"))
    with pytest.raises(UsageError, match=r"'haswell' cannot run target avx512, native on this machine: it lacks"):
        resolve_target("native", cpu="haswell")
