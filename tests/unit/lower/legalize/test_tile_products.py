"""Loads and products of tiles are spread over vector code, but not behind what may change their operands."""

from __future__ import annotations

import pytest

from tlx.ir.builder import Builder
from tlx.ir.instructions import Block
from tlx.ir.parser.module import parse_fully
from tlx.lower.legalize.scheduling.tile_products import spread_evenly
from tlx.target.lookup import find_target


def block_with_tiles(code: str, use: str = "") -> tuple[Builder, Block]:
    """A block with two loads and a product of tiles before vector code, and its builder."""
    module = parse_fully(f"""
define void @f(ptr %a, ptr %b, ptr %c, ptr %places, <16 x float> %x) {{
entry:
  %c.row = getelementptr inbounds float, ptr %c, i64 16
  %a.row = getelementptr inbounds float, ptr %a, i64 1024
  %unknown = load ptr, ptr %places
  br label %loop
loop:
  %at = getelementptr inbounds float, ptr %a, i64 32
  %t = call <256 x i32> @load(ptr %at)
  %u = call <256 x i32> @load(ptr %b)
  %s = call <256 x i32> @multiply(<256 x i32> %t, <256 x i32> %u)
  {use}
  {code}
  br label %end
end:
  %sum = call <256 x i32> @multiply(<256 x i32> %s, <256 x i32> %u)
  ret void
}}
declare <256 x i32> @load(ptr)
declare <256 x i32> @multiply(<256 x i32>, <256 x i32>)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
""")
    function = module.function("f")
    block = function.block("loop")
    return Builder(module, function, block), block


def scheduled(*, to: str = "%c", rows: int = 8, use: str = "") -> tuple[str, str]:
    """A block before and after: t for loads and products of tiles, v for vector code, p for pinned vectors."""
    vectors = [f"%v{row} = fmul <16 x float> %{f'v{row - 1}' if row else 'x'}, %x" for row in range(rows)]
    stores = [f"store <16 x float> %v{row}, ptr {to}" for row in range(rows)]
    code = "\n  ".join(line for both in zip(vectors, stores, strict=True) for line in both)
    b, block = block_with_tiles(code, use)
    moving = block.instructions[:4]

    def letters() -> str:
        others = ("p" if "asm" in i.text else "v" for i in block.instructions)
        return "".join("t" if i in moving else other for i, other in zip(block.instructions, others, strict=True))

    before = letters()
    spread_evenly(b, block, moving, find_target("amx"))
    return before, letters()


@pytest.mark.parametrize("to", ["%c", "%c.row"])
def test_loads_and_products_are_spread_over_the_rows_of_another_object(to: str) -> None:
    before, after = scheduled(to=to)
    assert before == "tttt" + "v" * 17
    assert after.replace("p", "") == "ttvvvvvtvvvvvtvvvvvvv"
    assert "p" in after


@pytest.mark.parametrize("to", ["%a", "%a.row", "%b", "%unknown"])
def test_no_load_moves_behind_a_store_that_may_change_the_tile(to: str) -> None:
    before, after = scheduled(to=to)
    assert after == before


def test_sums_that_the_block_uses_stay_before_their_use() -> None:
    before, after = scheduled(use="%used = add <256 x i32> %s, %u")
    assert after == before


def test_little_vector_code_moves_nothing() -> None:
    before, after = scheduled(rows=4)
    assert after == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("fmul contract <16 x float> %x{n}, %x", "fadd contract <16 x float> %v{n}, %x"),
        (
            "fneg <16 x float> %x{n}",
            "call <16 x float> @llvm.fma.v16f32(<16 x float> %v{n}, <16 x float> %x, <16 x float> %x)",
        ),
        ("fcmp olt <16 x float> %x{n}, %x", "select <16 x i1> %v{n}, <16 x float> %x, <16 x float> %x{n}"),
    ],
)
def test_values_between_instructions_that_may_become_one_are_not_pinned(first: str, second: str) -> None:
    """Four of each side by side, so that tiles are loaded between them; only what they start from is pinned."""
    lines = [f"%x{n} = fsub <16 x float> %x, splat (float {n}.0)" for n in range(4)]
    lines += [f"%v{n} = {first.format(n=n)}" for n in range(4)] + [f"%w{n} = {second.format(n=n)}" for n in range(4)]
    lines += [f"store <16 x float> %w{n}, ptr %c" for n in range(4)]
    b, block = block_with_tiles("\n  ".join(lines))
    spread_evenly(b, block, block.instructions[:4], find_target("amx"))
    joined = {f"%v{n}" for n in range(4)}
    pins = 0
    for i in block.instructions:
        if "asm" in i.text:
            assert str(i.args[0]) not in joined
            pins += 1
        elif i.opcode == first.split(maxsplit=1)[0]:
            joined |= set(map(str, i.operands))
    assert pins
