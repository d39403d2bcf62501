"""Knobs: constraints that fit are obeyed; others are refused, with a remedy."""

from __future__ import annotations

import pytest

from tlx.diagnostics import UsageError
from tlx.ir.types import BFLOAT, FLOAT, I8, I32, Type
from tlx.lower.knobs import (
    NO_KNOBS,
    FirstKnobSource,
    FixedKnobs,
    KnobOrigin,
    KnobQuery,
    Knobs,
    knobs_from,
    no_knobs,
    parse_knobs,
)
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.remarks import Remarks
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.remarks import describe_product
from tlx.lower.to_tiles.select.selection import select
from tlx.target.lookup import find_target
from tlx.tuning.knobs_file import parse_knobs_file

AVX512 = find_target("avx512")
SQUARE = KnobQuery("matmul 64x64x64 float", "avx512", ())
PROGRAM = """
define void @square(ptr noalias %x, ptr noalias %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <1024 x float> @llvm.tensor.matmul(token %t, token %t)
  store <1024 x float> %v, ptr %y
  ret void
}
"""  # noqa: E501


def _gemm(m: int, n: int, k: int, element: Type = FLOAT, result: Type = FLOAT, *, columns: bool = False) -> Gemm:
    b = MatrixView(element, k, n, 1, k) if columns else MatrixView(element, k, n, n, 1)
    sign = "s" if element == I8 else "f"
    return Gemm(MatrixView(element, m, k, k, 1), b, MatrixView(result, m, n, n, 1), None, sign, sign)


def test_knobs_override_the_model() -> None:
    recipe = select(_gemm(96, 96, 512), AVX512, Knobs((4, 32), 128, 8, 64, pack_a=True, pack_b=True, ahead=5))
    assert (recipe.tile.mr, recipe.tile.nr, recipe.blocks.kc, recipe.blocks.mc, recipe.blocks.nc) == (4, 32, 128, 8, 64)
    assert recipe.prefetch.b_steps == 5
    assert recipe.packing.a
    assert recipe.packing.b


def test_without_knobs_the_model_decides() -> None:
    gemm = _gemm(100, 100, 100)
    assert select(gemm, AVX512, NO_KNOBS) == select(gemm, AVX512)


def test_blocks_end_with_the_product() -> None:
    recipe = select(_gemm(4, 16, 8), AVX512, Knobs((8, 48), kc=1000, mc=1000, nc=1000))
    assert (recipe.blocks.kc, recipe.blocks.mc, recipe.blocks.nc) == (8, 4, 16)


@pytest.mark.parametrize(
    ("knobs", "gemm", "message"),
    [
        (Knobs((12, 48)), _gemm(64, 64, 64), "tile 12x48 needs 40 registers, and avx512 has 32; use 12x32 or 9x48"),
        (Knobs((3, 8)), _gemm(64, 64, 64), "columns must fill whole registers of 16 elements; use 3x16"),
        (Knobs(pack_b=False), _gemm(8, 8, 8, columns=True), "B has to be packed, as it is column-major"),
        (Knobs(pack_b=False), _gemm(8, 8, 8, BFLOAT), "B has to be packed, as a dot product reads neighbours along K"),
        (Knobs(pack_a=False), _gemm(8, 8, 7, BFLOAT), "A has to be packed"),
        (Knobs(kc=5), _gemm(8, 8, 16, BFLOAT), "has steps of 2; use 6"),
        (Knobs(kc=4), _gemm(8192, 8192, 16, BFLOAT, BFLOAT), "all 16 of K are added up in registers; leave out kc"),
        (Knobs((8, 48), nc=16), _gemm(8, 96, 16), "nc=16: a block holds at least one register tile of 8x48"),
    ],
)
def test_knobs_that_do_not_fit_are_refused(knobs: Knobs, gemm: Gemm, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(gemm, AVX512, knobs)
    assert message in caught.value.message


def test_a_matrix_unit_s_tile_is_made_of_its_own() -> None:
    gemm = _gemm(64, 64, 64, I8, I32)
    for tile in ((32, 32), (16, 64), (64, 16), (16, 16), (48, 16)):
        recipe = select(gemm, find_target("amx"), Knobs(tile))
        assert (recipe.tile.mr, recipe.tile.nr) == tile


@pytest.mark.parametrize("tile", [(8, 32), (32, 24), (64, 32), (80, 16)])
def test_tiles_that_a_matrix_unit_has_no_room_for(tile: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="tiles of 16x16 side by side; the largest are 16x96, 32x32 or 64x16"):
        select(_gemm(64, 64, 64, I8, I32), find_target("amx"), Knobs(tile))


def test_a_matrix_unit_s_kernel_does_not_prefetch() -> None:
    with pytest.raises(UsageError, match="does not prefetch"):
        select(_gemm(64, 64, 64, I8, I32), find_target("amx"), Knobs(ahead=4))


def test_knobs_are_spelled_as_they_are_read() -> None:
    text = "tile=8x48,kc=512,pack_b=false"
    assert str(parse_knobs(text)) == text
    assert parse_knobs(text) == knobs_from({"tile": "8x48", "kc": 512, "pack_b": False})
    assert not NO_KNOBS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tile",
        "tile=",
        "tile=0x16",
        "tile=8x48x2",
        "kc=",
        "kc=1.5",
        "kc=-1",
        "mc=0",
        "pack_a=maybe",
        "ahead=65",
        "x=1",
    ],
)
def test_malformed_knobs_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_knobs(text)


def test_the_first_source_with_an_answer_decides() -> None:
    answers = FirstKnobSource((no_knobs, FixedKnobs(Knobs(kc=1)), FixedKnobs(Knobs(kc=2))))
    assert answers(SQUARE).kc == 1
    assert FirstKnobSource(())(SQUARE) == NO_KNOBS


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("matmul 64x64x64 float", True),
        ("matmul *", True),
        ("*", True),
        ("matmul", True),
        ("matmul 64x??x64 float", True),
        ("avx512: matmul 64x64x64", True),
        ("avx*: matmul *", True),
        ("avx2: matmul *", False),
        ("matmul 64x64x64 flo[a]", False),
        ("matmul 64x64x6", False),
        ("*64 float", True),
        ("mat* 64x64x64 float", True),
        ("avx2+avxvnni: matmul", False),
    ],
)
def test_patterns(pattern: str, matches: bool) -> None:
    answers = parse_knobs_file(f'["{pattern}"]\nkc = 7\n', "k.toml")
    assert bool(answers(SQUARE)) == matches


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "a pattern names products, such as 'matmul 64x64x64 float'"),
        ("MATMUL *", "a pattern names products"),
        ("gemm 64x64x64", "a pattern names products"),
        ("matmul 64x64 float", "no product contains the word '64x64'; it is 'matmul MxNxK TYPES ...'"),
        ("matmul 64x64x64 f32", "no product contains the word 'f32'; write f32 as 'float'"),
        ("matmul 64x64x64 bf16", "write bf16 as 'bfloat -> float'"),
        ("matmul * float fusd", "no product contains the word 'fusd'"),
        ("avx3: matmul *", "unknown target 'avx3'; choose from native, "),
    ],
)
def test_patterns_of_no_product_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_knobs_file(f'["{pattern}"]\nkc = 7\n', "k.toml")
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.place == "k.toml:1:2"


@pytest.mark.parametrize(("text", "place"), [('{"matmul": {"kc": DIGITS}}', "19"), ("[matmul]\nkc = DIGITS\n", "6")])
def test_a_number_with_too_many_digits_is_refused(text: str, place: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_knobs_file(text.replace("DIGITS", "9" * 5000), "k")
    assert caught.value.message == "a number has too many digits"
    assert caught.value.span is not None
    assert caught.value.span.place.endswith(f":{place}")


def test_patterns_take_both_spellings_of_a_target_with_features() -> None:
    answers = parse_knobs_file('["avx2+avxvnni: matmul"]\nkc = 7\n', "k.toml")
    assert answers(KnobQuery("matmul 8x8x8 float", find_target("avx2+avxvnni").name, ())).kc == 7


def test_unused_knobs_are_reported() -> None:
    remarks = Remarks()
    text = "['matmul 9x9x9']\nkc = 7\n['matmul']\nkc = 8\n['matmul 32*']\nkc = 9\n"
    lower_text(PROGRAM, target="avx512", options=Options(knobs=parse_knobs_file(text, "k.toml"), remarks=remarks))
    unused = [(remark.message, remark.span.place) for remark in remarks if remark.span and remark.kind == "analysis"]
    there = "there are matmul 32x32x32 float"
    assert (f"no product matches 'matmul 9x9x9'; {there}", "k.toml:1:2") in unused
    assert (f"no product matches 'matmul 32*'; {there}", "k.toml:5:2") in unused
    assert not any("of 'matmul'" in message for message, _ in unused)


def test_knobs_without_a_product_are_a_remark() -> None:
    remarks = Remarks()
    options = Options(
        knobs=FirstKnobSource((FixedKnobs(parse_knobs("kc=7", KnobOrigin("from --knobs"))),)), remarks=remarks
    )
    program = PROGRAM.replace("@llvm.tensor.matmul(token %t, token %t)", "@llvm.tensor.relu(token %t)")
    lower_text(program, target="avx512", options=options)
    assert "no product takes kc=7 from --knobs" in [remark.message for remark in remarks]
    lower_text(PROGRAM, target="avx512", options=options)


def test_words_of_a_product() -> None:
    assert _gemm(3, 4, 5).knob_key == "matmul 3x4x5 float"
    assert _gemm(3, 4, 5, I8, I32, columns=True).knob_key == "matmul 3x4x5 i8 -> i32 ss nt"
    wide = Gemm(
        MatrixView(FLOAT, 3, 5, 8, 1), MatrixView(FLOAT, 5, 4, 6, 1), MatrixView(FLOAT, 3, 4, 4, 1), None, "f", "f"
    )
    assert wide.knob_key == "matmul 3x4x5 float lda=8 ldb=6"


def test_soft_knobs_that_do_not_fit_are_ignored_with_a_remark() -> None:
    remarks = Remarks()
    origin = KnobOrigin("from long ago", binding=False)
    options = Options(knobs=FixedKnobs(Knobs((99, 16), origin=origin)), remarks=remarks)
    assert lower_text(PROGRAM, target="avx512", options=options) == lower_text(PROGRAM, target="avx512")
    messages = [r.message for r in remarks if r.kind == "missed"]
    left_out = "matmul 32x32x32 float: tile=99x16 from long ago ignored: "
    assert messages == [f"{left_out}tile 99x16 needs 101 registers, and avx512 has 32; use 30x16 or 14x32"]


def test_options_change_the_tile() -> None:
    options = Options(knobs=FixedKnobs(Knobs((2, 16))), stop_after="to-tiles")
    assert "phi <32 x float>" in lower_text(PROGRAM, target="avx512", options=options)


@pytest.mark.parametrize(
    ("gemm", "knobs", "part"),
    [
        (_gemm(512, 1000, 1000), NO_KNOBS, "; B packed: 3.8 MiB exceed L2's 1.0 MiB"),
        (_gemm(512, 1024, 512), NO_KNOBS, "; B packed: rows 4.0 KiB apart share cache sets"),
        (_gemm(64, 64, 64, columns=True), NO_KNOBS, "; B packed: it is column-major"),
        (
            _gemm(64, 64, 64),
            Knobs(pack_b=True, origin=KnobOrigin("from --knobs")),
            " of peak; pack_b=true from --knobs",
        ),
        (_gemm(64, 64, 7, BFLOAT, FLOAT), NO_KNOBS, "; A packed: K 7 is padded to a multiple of 2; B packed: the"),
    ],
)
def test_remarks_give_reasons(gemm: Gemm, knobs: Knobs, part: str) -> None:
    recipe = select(gemm, AVX512, knobs)
    text = describe_product(gemm, recipe, knobs, AVX512)
    assert f"; about {100 * recipe.efficiency:.0f} % of peak" in text
    assert part in text
