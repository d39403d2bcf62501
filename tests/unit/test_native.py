"""The best target for a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlx import native
from tlx.diagnostics import UsageError
from tlx.ir.values import Value
from tlx.legalize._unlisted import unlisted
from tlx.target import Caches, Dot, Matrix, Target, targets


def no_code(*_: object) -> Value:
    pytest.fail("nothing is emitted here")


BF16 = Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "avx512bf16", no_code)
PLAIN = Target("plain", "any")
WIDE = Target(
    "wide",
    "wide",
    features=("+avx512f", "+avx512bf16"),
    vector_bytes=64,
    dots=(BF16,),
    requires=("avx512f",),
)
TILES = Target(
    "tiles", "tiles", vector_bytes=16, matrix=Matrix(16, 64, 8, (2, 2), ()), requires=("amx_tile", "avx512f")
)
ALL = (PLAIN, WIDE, TILES)


def best(*flags: str) -> Target:
    return native.best_target(ALL, frozenset(flags), Caches(l1=1, l2=2, l3=3))


def test_the_most_capable_fitting_target_wins() -> None:
    assert best().name == "plain"
    assert best("avx512f").name == "wide"
    assert best("avx512f", "amx_tile").name == "tiles"


def test_features_are_those_of_the_machine() -> None:
    assert best("avx512f").features == ("+avx512f",)
    assert best("avx512f").usable_dots == ()
    assert best("avx512f", "avx512_bf16").features == ("+avx512f", "+avx512bf16")
    assert best("avx512f", "avx512_bf16").usable_dots == (BF16,)


def test_caches_are_those_of_the_machine() -> None:
    assert best().caches == Caches(1, 2, 3)


@pytest.mark.parametrize(("text", "count"), [("0-7,16-23", 16), ("3", 1), ("0-1", 2), ("", 1), (None, 1)])
def test_processors_that_share_the_last_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, count: int
) -> None:
    """As Linux lists them; where it does not, there is one."""
    monkeypatch.setattr(native, "_CACHES", tmp_path)
    (tmp_path / "index3").mkdir()
    if text is not None:
        (tmp_path / "index3" / "shared_cpu_list").write_text(f"{text}\n")
    assert native.caches().sharers == count


def test_no_target_fits() -> None:
    with pytest.raises(UsageError, match="runs the code of no target"):
        native.best_target([WIDE], frozenset(), Caches())


def test_this_machine_has_a_target() -> None:
    assert native.native_target().name in targets()
    assert native.caches().l1 > 0


def test_llvm_knows_the_machine_too() -> None:
    by_llvm = native._flags_by_llvm()
    for target in targets().values():
        assert bool(native.missing(target, by_llvm)) == bool(native.missing(target, native.cpu_flags()))


def test_what_linux_does_not_list_is_what_llvm_finds() -> None:
    found = unlisted()
    assert found == {name for name in ("amx-fp16", "avxneconvert", "avxvnniint8") if name in native._flags_by_llvm()}
    assert found <= native.cpu_flags()
