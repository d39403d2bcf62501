"""Broken texts: the parser and the verifier report an error with a location, or none; they never fail otherwise.

A few hundred texts with a fixed seed; TLX_FUZZ=100000 makes as many, of another seed each time.
"""

from __future__ import annotations

import os
import random
import re
import time

import pytest

from tests.unit.ir.parser.modules import OPAQUE, TYPED
from tlx.diagnostics import ParseError, TlxError, VerifyError
from tlx.ir.control_flow import ControlFlow, natural_loops
from tlx.ir.parser.module import parse_fully
from tlx.ir.rewrite import uses
from tlx.ir.tensors.inference import collect_errors, verify_tensors

TENSORS = """\
define void @gemm(ptr noalias %c, ptr %a, <12 x float> %v, i32 %pad) {
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 8>)
  %y = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  %m = call <9 x float> @llvm.tensor.matmul(token %x, token %y)
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %t = call token @llvm.tensor.typeinfo(<9 x float> %m, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %r = call <9 x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<9 x float> %r, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> <i32 0, i32 3>), !dbg !0
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, 7
  br i1 %more, label %loop, label %end
end:
  ret void
}
declare token @llvm.tensor.load(ptr, <2 x i32>, <2 x i32>, <2 x i32>, <2 x i32>)
declare token @llvm.tensor.typeinfo(<12 x float>, <2 x i32>, <2 x i32>, <2 x i32>)
declare <9 x float> @llvm.tensor.matmul(token, token)
declare <9 x float> @llvm.tensor.relu(token)
declare void @llvm.tensor.store(ptr, token, <2 x i32>)
"""  # noqa: E501
SEEDS = (TENSORS, OPAQUE, TYPED)
PIECES = re.compile(r'"[^"]*"|[%@!#$]?[-\w.$]+|\s+|.', re.DOTALL)
COUNT = int(os.environ.get("TLX_FUZZ", "300"))
SEED = random.SystemRandom().getrandbits(32) if "TLX_FUZZ" in os.environ else 19
LONGEST_S = 20


def pieces_of(text: str) -> list[str]:
    return PIECES.findall(text)


VOCABULARY = sorted({piece for text in SEEDS for piece in pieces_of(text)} | {"\0", "\\", "9" * 5000, "é", "<" * 50})


def broken(seed: random.Random) -> str:
    """A text with a few pieces taken away, doubled, moved or replaced, and perhaps cut off."""
    text = seed.choices(SEEDS, (3, 1, 1))[0]
    pieces = pieces_of(text)
    for _ in range(seed.choice((0, 1, 1, 2, 5))):
        at = seed.randrange(len(pieces))
        match seed.randrange(5):
            case 0:
                del pieces[at : at + seed.choice((1, 1, 3, 30))]
            case 1:
                pieces.insert(at, seed.choice(VOCABULARY))
            case 2:
                pieces[at] = seed.choice(VOCABULARY)
            case 3:
                pieces[at:at] = pieces[seed.randrange(len(pieces)) :][: seed.choice((1, 3, 30))]
            case _:
                other = seed.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
        pieces = pieces or [""]
    text = "".join(pieces)
    return text[: seed.randrange(len(text) + 1)] if seed.random() < 0.3 else text


def examine(text: str) -> None:
    """Read and check a text.

    Raises:
        ParseError, VerifyError: Something is wrong with it.
    """
    module = parse_fully(text, "t.ll")
    for function in module.functions:
        uses(function)
        natural_loops(ControlFlow(function))
    str(module)
    collect_errors(module)
    verify_tensors(module)


@pytest.mark.parametrize("part", range(10))
def test_broken_texts(part: int) -> None:
    for number in range(part * COUNT // 10, (part + 1) * COUNT // 10):
        text = broken(random.Random(SEED + number))
        start = time.process_time()
        actual: TlxError | None = None
        try:
            examine(text)
        except (ParseError, VerifyError) as error:
            actual = error
        except Exception as error:
            error.add_note(f"seed {SEED + number}, text:\n{text}")
            raise
        assert actual is None or (actual.span is not None and actual.render()), f"{SEED + number}: {actual}"
        assert time.process_time() - start < LONGEST_S, SEED + number


@pytest.mark.parametrize("text", SEEDS)
def test_texts_cut_off(text: str) -> None:
    """Cut anywhere in the middle of a function, a text is incomplete and said to be."""
    start = text.index("\ndefine ") if text is not TENSORS else 0
    end = text.index("\n}", start)
    for cut in range(start + 30, end, max(1, (end - start) // 200)):
        with pytest.raises(ParseError) as caught:
            examine(text[:cut])
        assert caught.value.span is not None
