"""Which features kernels use: --mattr and --mcpu, else the function's, else the target's."""

from __future__ import annotations

import re

import pytest

from tlx.diagnostics import UsageError
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower, lower_text
from tlx.target.lookup import find_target, resolve_target

_FUNCTION = """
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c) ATTRIBUTES {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x i32> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<64 x i32> %m, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
attributes #0 = { "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl" }
attributes #1 = { "target-features"="+sse2" }
"""


def _kernel(attributes: str, options: Options) -> tuple[set[str], bool]:
    """The kernel's features, and whether it multiplies bytes by dot products."""
    module = lower(parse(_FUNCTION.replace("ATTRIBUTES", attributes)), "avx512", options=options)
    features = re.search(r'define internal.*"target-features"="([^"]*)"', str(module))
    assert features is not None
    return set(features.group(1).split(",")), "vpdpbusd" in str(module)


@pytest.mark.parametrize(
    ("attributes", "options", "dots"),
    [
        ("", Options(), True),
        ("#1", Options(), True),
        ("#0", Options(), False),
        ('"target-features"="+avx512f,+avx512vnni"', Options(), True),
        ("#0", Options(features=("+avx512vnni",)), True),
        ("", Options(features=("-avx512vnni",)), False),
        ("", Options(cpu="skylake-avx512"), False),
        ("#0", Options(cpu="cascadelake"), True),
        ("", Options(cpu="cascadelake", features=("-avx512vnni",)), False),
        ("", Options(cpu="generic"), True),
    ],
)
def test_dot_products_follow_the_features(attributes: str, options: Options, dots: bool) -> None:
    features, used = _kernel(attributes, options)
    assert used == dots
    assert ("+avx512vnni" in features) == dots


def test_kernels_for_different_machines_are_not_shared() -> None:
    text = _FUNCTION.replace("ATTRIBUTES", "#0")
    other = text.split("}\n")[0].replace("@f(", "@g(").replace("#0", "") + "}\n"
    module = lower(parse(other + text), "avx512")
    assert len(re.findall("define internal", str(module))) == 2


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("avx512", Options(features=("+avx512vnin",)), "unknown feature 'avx512vnin'; did you mean 'avx512vnni'?"),
        ("avx512", Options(features=("-avx512f",)), "feature '-avx512f': target avx512 is for machines with avx512f"),
        (
            "amx",
            Options(features=("-avx2",)),
            "target amx is for machines with avx512f, which implies it; 'tlx",
        ),
        ("sve", Options(features=("-fullfp16",)), "'-fullfp16': target sve is for machines with sve, which implies it"),
        ("avx2,avx512", Options(features=("-avx",)), "feature '-avx': target avx2 is for machines with avx2, which"),
        ("amx", Options(features=("-amx-tile",)), "feature '-amx-tile': target amx is for machines with amx-tile"),
        (
            "avx2,avx512",
            Options(features=("-avx512f",)),
            "target avx512 is for machines with avx512f; 'tlx targets' lists",
        ),
        ("avx512", Options(cpu="some-new-machine"), "unknown processor 'some-new-machine'"),
        ("avx512", Options(cpu="native"), "unknown processor 'native'; use --target=native for this machine"),
        ("avx512", Options(cpu="help"), "unknown processor 'help'"),
        ("avx512", Options(features=("+help",)), "unknown feature 'help'"),
        (
            "avx2",
            Options(triple="aarch64-linux-gnu"),
            "not for triple 'aarch64-linux-gnu'; targets for it: generic, neon, ",
        ),
    ],
)
def test_unknown_names_are_errors(target: str, options: Options, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        lower(parse(_FUNCTION.replace("ATTRIBUTES", "")), target, options=options)


def test_each_unknown_name_has_a_suggestion() -> None:
    """LLVM lists the names that it knows once in the life of a process."""
    for name, known in (("avx512vnin", "avx512vnni"), ("avx512vbm", "avx512vbmi")):
        with pytest.raises(UsageError, match=f"unknown feature '{name}'; did you mean '{known}'"):
            lower(parse(_FUNCTION.replace("ATTRIBUTES", "")), "avx512", options=Options(features=(f"+{name}",)))


def test_the_triple_of_a_file_is_checked() -> None:
    text = 'target triple = "aarch64-linux-gnu"\n' + _FUNCTION.replace("ATTRIBUTES", "")
    with pytest.raises(UsageError, match="not for triple 'aarch64-linux-gnu'"):
        lower(parse(text), "avx512")
    lower(parse(text), "generic")


def test_names_are_those_of_the_triple_where_nothing_is_lowered() -> None:
    text = "define void @f() {\n  ret void\n}\n"
    there = Options(triple="aarch64-linux-gnu", features=("+sve",), cpu="neoverse-v1")
    assert lower_text(text, target="generic", options=there) == text
    arm = 'target triple = "aarch64-linux-gnu"\n' + text
    assert lower_text(arm, target="generic", options=Options(features=("+sve",))) == arm
    assert lower_text(arm, target="avx512") == arm


@pytest.mark.parametrize("feature", ["-amx-bf16", "-amx-int8", "-avx512vbmi", "-avx512vnni"])
def test_optional_features_can_be_removed(feature: str) -> None:
    assert f"+{feature[1:]}" not in find_target("amx").with_attributes((feature,)).features


def test_optional_features_that_imply_a_removed_one_are_removed() -> None:
    """AVX-512 BF16 and VBMI have instructions of AVX-512 BW."""
    features = set(find_target("amx").features) - set(resolve_target("amx", features=("-avx512bw",)).features)
    assert features == {"+avx512bw", "+avx512bf16", "+avx512vbmi"}


@pytest.mark.parametrize("requested", [("+avx512bitalg", "-avx512bw"), ("-avx512bw", "+avx512bitalg")])
def test_added_features_that_imply_a_removed_one_are_removed(requested: tuple[str, ...]) -> None:
    assert not {"+avx512bitalg", "+avx512bw"} & set(resolve_target("amx", features=requested).features)


def test_required_features_stay_if_they_are_added_again() -> None:
    with pytest.raises(UsageError, match="feature '-avx2': target amx is for machines with avx512f, which implies it"):
        resolve_target("amx", features=("+avx512f", "-avx2"))


@pytest.mark.parametrize("added", [(), ("+avx512f",)])
def test_features_of_a_processor_that_imply_a_removed_one_are_removed(added: tuple[str, ...]) -> None:
    """`generic` has no features of its own."""
    features = resolve_target("generic", cpu="cooperlake", features=(*added, "-fma")).features
    assert not [name for name in features if name[0] == "+" and name.startswith(("+avx512", "+fma"))]
