"""Operations in one loop over parts of their results: the same meaning at every stage, and the loops that are made."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tests.support.tools import quick
from tlx.api.validation import validate
from tlx.graph import Graph, Value
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

LOOP = "part.loop"
SEEDS = (1, 3, 7)
"""Odd decision seeds, by which operations are computed in one loop wherever possible, by other numbers of rows."""
ZERO = "zeroinitializer"


def vector(*numbers: int) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


def load(name: str, pointer: str, shape: tuple[int, ...], element: str = "float") -> str:
    rank = len(shape)
    zeros = f"<{rank} x i32> {ZERO}"
    order = vector(*range(rank))
    arguments = f"ptr elementtype({element}) {pointer}, {vector(*shape)}, {order}, {zeros}, {zeros}"
    return f"{name} = call token @llvm.tensor.load({arguments})"


def token(name: str, value: str, shape: tuple[int, ...], padding: tuple[int, ...] = ()) -> str:
    arguments = f"{vector(*shape)}, {vector(*range(len(shape)))}, {vector(*(padding or (0,) * len(shape)))}"
    return f"{name} = call token @llvm.tensor.typeinfo({typed(shape)} {value}, {arguments})"


def typed(shape: tuple[int, ...], element: str = "float") -> str:
    return f"<{int(np.prod(shape))} x {element}>"


SCORES, OUT = (3, 4, 5), (3, 4, 2)
FIRST = [load("%q", "%a", (3, 4, 6)), load("%k", "%b", (3, 6, 5))]
SECOND = [load("%v", "%c", (3, 5, 2))]
PRODUCT = f"%s = call {typed(SCORES)} @llvm.tensor.matmul(token %q, token %k)"
EXP = [token("%st", "%s", SCORES), f"%e = call {typed(SCORES)} @llvm.tensor.exp(token %st)", token("%et", "%e", SCORES)]
LAST = f"%o = call {typed(OUT)} @llvm.tensor.matmul(token %et, token %v)"
STORE = f"store {typed(OUT)} %o, ptr %y"


def function(*lines: str, noalias: str = "noalias", end: str = "ret void") -> str:
    parameters = ", ".join(f"ptr {noalias} %{name}" for name in "abcyz")
    return f"define void @f({parameters}) {{\n  " + "\n  ".join([*lines, end]) + "\n}\n"


def after_stage1(text: str, seed: int = 1) -> str:
    return lower_text(text, "<string>", "generic", options=Options(decision_seed=seed, stop_after="to-2d"))


def check(text: str, *, fused: bool = True) -> str:
    """Check the meaning of each stage, and whether operations share a loop; returns the first stage's output."""
    for seed in SEEDS:
        assert validate(text, "generic", options=Options(decision_seed=seed), runs=1) == []
    lowered = after_stage1(text)
    assert (LOOP in lowered) == fused
    return lowered


def test_products_around_a_map() -> None:
    lowered = check(function(*FIRST, PRODUCT, *EXP, *SECOND, LAST, STORE))
    assert "alloca [60 x float]" not in lowered  # the scores of all batch elements


def test_results_that_others_read_are_kept() -> None:
    kept = f"store {typed(SCORES)} %s, ptr %z"
    for lines in (
        [*EXP, *SECOND, LAST, kept, STORE],
        [kept, *EXP, *SECOND, LAST, STORE],
        [*EXP, *SECOND, LAST, STORE, kept],
    ):
        for noalias in ("noalias", ""):
            for seed in SEEDS:
                text = function(*FIRST, PRODUCT, *lines, noalias=noalias)
                assert validate(text, "generic", options=Options(decision_seed=seed), runs=1) == []


def test_sums_over_all_parts_are_behind_the_loop() -> None:
    total = f"%sum = call {typed(SCORES[1:])} @llvm.tensor.reduce.add(token %st, {vector(3, 1, 1)}, {vector(1, 1, 1)})"
    stored = f"store {typed(SCORES[1:])} %sum, ptr %z"
    check(function(*FIRST, PRODUCT, *EXP, total, *SECOND, LAST, STORE, stored))
    check(function(*FIRST, PRODUCT, *EXP, total, stored, *SECOND, LAST, STORE))


def test_operand_that_depends_on_all_parts() -> None:
    """The second product reads a sum over the first one's batch, which no part of a loop can compute."""
    total = f"%sum = call {typed(SCORES[1:])} @llvm.tensor.reduce.add(token %st, {vector(3, 1, 1)}, {vector(1, 1, 1)})"
    spread = f"%b1 = call {typed(SCORES)} @llvm.tensor.broadcast(token %sumt, {vector(*SCORES)}, {vector(1, 2)})"
    lines = [*EXP, total, token("%sumt", "%sum", SCORES[1:]), spread, f"%d = fsub {typed(SCORES)} %e, %b1"]
    last = f"%o = call {typed(OUT)} @llvm.tensor.matmul(token %dt, token %v)"
    for seed in SEEDS:
        text = function(*FIRST, PRODUCT, *lines, token("%dt", "%d", SCORES), *SECOND, last, STORE)
        assert validate(text, "generic", options=Options(decision_seed=seed), runs=1) == []


@pytest.mark.parametrize("noalias", ["noalias", ""])
def test_memory_that_changes(noalias: str) -> None:
    """A store between a load and the place of the loop: the loop must read what the load read."""
    change = "store float 3.0, ptr %a"
    for lines in (
        [*FIRST, change, PRODUCT, *EXP, *SECOND, LAST, STORE],
        [*FIRST, PRODUCT, change, *EXP, *SECOND, LAST, STORE],
        [*FIRST, PRODUCT, *EXP, *SECOND, LAST, change, STORE],
        [*FIRST, *SECOND, PRODUCT, *EXP, LAST, "%r = load float, ptr %y", "store float %r, ptr %z", STORE],
        [*FIRST, *SECOND, PRODUCT, *EXP, LAST, STORE, "%r = load float, ptr %y", "store float %r, ptr %z"],
    ):
        for seed in SEEDS:
            text = function(*lines, noalias=noalias)
            assert validate(text, "generic", options=Options(decision_seed=seed), runs=1) == []


def test_call_between() -> None:
    text = "declare void @g()\n" + function(*FIRST, PRODUCT, "call void @g()", *EXP, *SECOND, LAST, STORE, noalias="")
    lowered = after_stage1(text)
    assert "call void @g()" in lowered
    if LOOP in lowered:  # only what does not read memory that the call may change
        assert lowered.index("@llvm.tensor.matmul") < lowered.index("call void @g()")


def test_in_place() -> None:
    """The result overwrites an operand of the first product."""
    text = function(*FIRST, PRODUCT, *EXP, *SECOND, LAST, f"store {typed(OUT)} %o, ptr %a")
    check(text)


def test_vector_loads_and_extracted_elements() -> None:
    lines = [
        f"%av = load {typed((3, 4, 6))}, ptr %a",
        token("%q", "%av", (3, 4, 6)),
        FIRST[1],
        PRODUCT,
        f"%f = freeze {typed(SCORES)} %s",
        token("%st", "%f", SCORES),
        *EXP[1:],
        *SECOND,
        LAST,
        STORE,
        f"%x = extractelement {typed(SCORES)} %s, i32 7",
        "store float %x, ptr %z",
    ]
    check(function(*lines))


def test_bits_of_floats() -> None:
    """A map of floats and then of their bits shares a loop with a product of positions of greatest elements."""
    graph = Graph("f")
    x, table = graph.parameter("x", (3, 2, 2)), graph.parameter("table", (2, 33), "int32")
    graph.output(graph.argmax(x, 1) @ table, "rows")
    bits = graph.bitcast(x + 1.0, "int32")
    graph.output(bits ^ (bits >> 31), "keys")
    check(graph.text())


def test_padded_operands() -> None:
    """Padding in other dimensions than that of the loop."""
    padded = f"ptr elementtype(float) %a, {vector(3, 4, 7)}, {vector(0, 1, 2)}, {vector(0, 0, 1)}, <3 x i32> {ZERO}"
    check(function(f"%q = call token @llvm.tensor.load({padded})", FIRST[1], PRODUCT, *EXP, *SECOND, LAST, STORE))


@pytest.mark.parametrize("is_vector", [False, True])
def test_results_padded_along_the_loop(*, is_vector: bool) -> None:
    """Their loops are along other dimensions: no part would write the padding, which is zero in the vector."""
    rows, padded = (2, 3, 1, 1), (2, 4, 1, 1)
    padding = (0, 1, 0, 0)
    zeros = f"<4 x i32> {ZERO}"
    stored = f"call void @llvm.tensor.store(ptr elementtype(float) %y, token %qt, {zeros})"
    check(
        function(
            load("%at", "%a", rows),
            load("%bt", "%b", rows),
            f"%p = call {typed(rows)} @llvm.tensor.matmul(token %at, token %bt)",
            token("%pt", "%p", rows),
            f"%ct = call token @llvm.tensor.load(ptr elementtype(float) %c, {vector(*padded)}, {vector(0, 1, 2, 3)}, "
            f"{vector(*padding)}, {zeros})",
            f"%q = call {typed(padded)} @llvm.tensor.matmul(token %pt, token %ct)",
            token("%qt", "%q", padded, padding),
            f"store {typed(padded)} %q, ptr %y" if is_vector else stored,
            noalias="",
        )
    )


def test_results_read_in_another_block() -> None:
    text = f"""define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %y, i1 %p) {{
entry:
  {FIRST[0]}
  {FIRST[1]}
  {PRODUCT}
  {EXP[0]}
  {EXP[1]}
  {EXP[2]}
  {SECOND[0]}
  {LAST}
  br i1 %p, label %then, label %end

then:
  %sum = fadd {typed(OUT)} %o, %o
  br label %end

end:
  %r = phi {typed(OUT)} [ %o, %entry ], [ %sum, %then ]
  store {typed(OUT)} %r, ptr %y
  ret void
}}
"""
    check(text)


def test_results_stored_in_another_block() -> None:
    """Their stores stay there: whether they run depends on a condition."""
    stored = f"store {typed(SCORES)} %s, ptr %z"
    lines = "\n  ".join([*FIRST, PRODUCT, *EXP, *SECOND, LAST, "br i1 %p, label %then, label %end"])
    parameters = "ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %y, ptr noalias %z, i1 %p"
    for stores in ([STORE], [stored], [stored, STORE]):
        then, after = "\n  ".join(stores), "" if STORE in stores else STORE
        text = f"define void @f({parameters}) {{\n  {lines}\n\nthen:\n  {then}\n  br label %end\n\nend:\n  {after}\n"
        text += "  ret void\n}\n"
        for seed in SEEDS:
            assert validate(text, "generic", options=Options(decision_seed=seed), runs=3) == []


def test_inside_a_loop() -> None:
    """The operations are in a loop of the program that carries a tensor."""
    text = f"""define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %y) {{
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x = phi {typed((3, 4, 6))} [ {ZERO}, %entry ], [ %o, %loop ]
  {token("%q", "%x", (3, 4, 6))}
  {load("%k", "%b", (3, 6, 5))}
  {PRODUCT}
  {EXP[0]}
  {EXP[1]}
  {EXP[2]}
  {load("%v", "%c", (3, 5, 6))}
  %o = call {typed((3, 4, 6))} @llvm.tensor.matmul(token %et, token %v)
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, 3
  br i1 %again, label %loop, label %end

end:
  store {typed((3, 4, 6))} %o, ptr %y
  ret void
}}
"""
    for seed in SEEDS:
        assert validate(text, "generic", options=Options(decision_seed=seed), runs=1) == []


def test_two_loops_of_one_block() -> None:
    second = [line.replace("%", "%m.").replace("ptr %m.", "ptr %") for line in (*FIRST, PRODUCT, *EXP, *SECOND, LAST)]
    text = function(*FIRST, PRODUCT, *EXP, *SECOND, LAST, STORE, *second, f"store {typed(OUT)} %m.o, ptr %z")
    lowered = check(text.replace("elementtype(float) %m.", "elementtype(float) %"))
    assert len(re.findall(rf"(?m)^{re.escape(LOOP)}[.\d]*:", lowered)) >= 2


# Random programs ---------------------------------------------------------------------------------------------------

_TYPES = ("float32", "float32", "float64", "bfloat16", "float16")
_MASKS = ("none", "matrix", "row", "batch", "where", "causal")
_MAPS = ("softmax", "softmax", "exp", "relu", "centred", "tanh")
_READERS = ("none", "merged heads", "twice", "product", "shared weights", "sum", "scores", "sum of scores", "softmax")


def random_program(seed: int) -> str:
    """A chain of two products of batches, with maps, masks, softmax, transposes and other readers."""
    rng = np.random.default_rng(seed)
    graph, names, dtype = Graph("f"), iter("abcdefghijkl"), _TYPES[rng.integers(len(_TYPES))]
    batch = [int(n) for n in rng.integers(2, 5, 1 + rng.integers(3) // 2)]
    rank = len(batch)
    rows, cols, inner, width = (int(n) for n in rng.integers(1, 9, 4))
    rows, cols = (rows, cols) if rng.integers(3) else (8, 8)

    def parameter(*shape: int) -> Value:
        """A parameter whose dimensions are in any order."""
        order = [int(d) for d in (rng.permutation(len(shape)) if rng.integers(2) else range(len(shape)))]
        value = graph.parameter(next(names), tuple(shape[d] for d in order), dtype)
        return value.transpose(*(order.index(d) for d in range(len(shape))))

    q, k, v = parameter(*batch, rows, inner), parameter(*batch, cols, inner), parameter(*batch, cols, width)
    scores = q @ k.transpose(*range(rank), rank + 1, rank)
    scores = scores * 0.25 if rng.integers(2) else scores
    scores = _masked(graph, scores, _MASKS[rng.integers(len(_MASKS))])
    weights = _mapped(graph, scores, _MAPS[rng.integers(len(_MAPS))])
    result = weights @ v
    reader = _READERS[rng.integers(len(_READERS))]
    if reader in ("scores", "sum of scores"):
        graph.output(scores if reader == "scores" else graph.sum(scores, (0,)), "extra")
    elif reader == "merged heads":
        result = result.transpose(rank, *range(rank), rank + 1).reshape(rows, int(np.prod(batch)) * width)
    elif reader == "product":
        result = result @ parameter(*batch, width, 3)
    elif reader == "shared weights":
        result = graph.dot_general(result, graph.parameter("w", (width, 3), dtype), ((rank + 1,), (0,)), ((), ()))
    elif reader in ("twice", "sum", "softmax"):
        maps = {"twice": lambda: graph.relu(result) + result, "sum": lambda: graph.sum(result, (0,))}
        result = maps[reader]() if reader in maps else graph.softmax(result) @ parameter(*batch, width, 2)
    graph.output(result)
    return graph.text() if rng.integers(3) else graph.text().replace("noalias ", "")


def _masked(graph: Graph, scores: Value, mask: str) -> Value:
    *batch, rows, cols = scores.shape
    shapes = {"matrix": (rows, cols), "row": (cols,), "batch": (*batch, 1, 1)}
    if mask in shapes:
        return scores + graph.parameter("mask", shapes[mask], scores.dtype)
    if mask == "where":
        return graph.where(scores > 0.5, scores, -3.0)
    if mask == "causal":
        return graph.where(graph.iota((rows, cols), 0) >= graph.iota((rows, cols), 1), scores, -30.0)
    return scores


def _mapped(graph: Graph, scores: Value, name: str) -> Value:
    if name == "centred":
        return scores - graph.sum(scores, (-1,), keep=True) * 0.125
    maps = {"exp": lambda: graph.exp(scores * 0.1), "relu": lambda: graph.relu(scores)}
    maps |= {"softmax": lambda: graph.softmax(scores), "tanh": lambda: graph.tanh(scores) * scores}
    return maps[name]()


@pytest.mark.parametrize("chunk", quick(range(10), 2))
def test_random_programs(chunk: int) -> None:
    targets = ("generic", "avx2", "avx512", "amx")
    fused = 0
    for seed in range(10 * chunk, 10 * chunk + 10):
        text, options = random_program(seed), Options(decision_seed=2 * seed + 1)
        assert validate(text, targets[seed % len(targets)], options=options, runs=1) == [], seed
        fused += LOOP in after_stage1(text, 2 * seed + 1)
    assert fused >= 8


def test_sizes_at_which_a_loop_pays() -> None:
    """12 heads of 512 rows exceed the second-level cache: one loop, in which the scores are those of one head."""
    text = _attention(heads=12, rows=512, width=64)
    lowered = lower_text(text, "<string>", "avx512", options=Options(stop_after="to-2d"))
    assert f"<{512 * 512} x float>" in lowered
    assert f"<{12 * 512 * 512} x float>" not in lowered.split("declare", 1)[0]
    assert re.search(r"icmp slt i64 %part\.next, 12$", lowered, re.MULTILINE)
    for heads, rows in ((1, 512), (12, 128), (20000, 8)):
        text = _attention(heads=heads, rows=rows, width=8)
        assert LOOP not in lower_text(text, "<string>", "avx512", options=Options(stop_after="to-2d"))


def test_single_operation() -> None:
    """A product, or a product and its epilogue, has no result between operations."""
    graph = Graph("f")
    x, y = graph.parameter("x", (4, 1024, 64)), graph.parameter("y", (4, 64, 1024))
    graph.output(graph.exp(x @ y))
    assert LOOP not in lower_text(graph.text(), "<string>", "avx512", options=Options(stop_after="to-2d"))


def test_threads_share_the_fused_loop() -> None:
    text, options = _attention(heads=12, rows=512, width=64), Options(threads="openmp", stop_after="to-2d")
    assert LOOP in lower_text(text, "<string>", "avx512", options=options)
    small, seeded = _attention(heads=3, rows=4, width=2), Options(threads="openmp", thread_cycles=0, decision_seed=1)
    assert validate(small, "generic", options=seeded, runs=1) == []


def test_rows_of_one_head() -> None:
    text = _attention(heads=1, rows=2048, width=64)
    lowered = lower_text(text, "<string>", "avx512", options=Options(stop_after="to-2d"))
    assert LOOP in lowered
    assert f"<{2048 * 2048} x float>" not in lowered.split("declare", 1)[0]


@pytest.mark.parametrize("target", ["avx512", "amx"])
def test_projections_of_each_head_stay_whole(target: str) -> None:
    """The columns of a projection are heads, too, but a loop over them would read all of its input for each head."""
    heads, rows, width = 12, 512, 64
    graph = Graph("attention")
    x = graph.parameter("x", (rows, heads * width))
    projected = [x @ graph.parameter(name, (heads * width, heads * width)) for name in "qkv"]
    q, k, v = (y.reshape(rows, heads, width).transpose(1, 0, 2) for y in projected)
    graph.output(graph.softmax(q @ k.transpose(0, 2, 1)) @ v)
    lowered = lower_text(graph.text(), "<string>", target, options=Options(stop_after="to-2d"))
    assert re.findall(r"icmp slt i64 %part\.next\S*, (\d+)$", lowered, re.MULTILINE) == [str(heads)]


def test_heads_of_one_projection() -> None:
    """Queries are the first third of the columns, padded by keys and values: their product shares the loop, too."""
    check(_attention_of_projection(rows=6, heads=2, width=4))
    lowered = lower_text(_attention_of_projection(512, 12, 64), "<string>", "amx", options=Options(stop_after="to-2d"))
    assert re.findall(r"icmp slt i64 %part\.next\S*, (\d+)$", lowered, re.MULTILINE) == ["12"]
    assert len(re.findall(r"= call .*@llvm\.tensor\.matmul", lowered.split(f"{LOOP}:")[0])) == 1


def _attention_of_projection(rows: int, heads: int, width: int) -> str:
    graph = Graph("f")
    x = graph.parameter("x", (rows, heads * width))
    projected = x @ graph.parameter("w", (heads * width, 3 * heads * width))
    q, k, v = (projected.reshape(rows, 3, heads, width)[:, n] for n in range(3))
    weights = graph.softmax(graph.dot_general(q, k, ([2], [2]), ([1], [1])))
    graph.output(graph.dot_general(v, weights, ([0], [2]), ([1], [0])).transpose(2, 0, 1).reshape(rows, heads * width))
    return graph.text()


def _attention(heads: int, rows: int, width: int) -> str:
    graph = Graph("attention")
    q, k, v = (graph.parameter(name, (heads, rows, width)) for name in "qkv")
    graph.output(graph.softmax((q @ k.transpose(0, 2, 1)) * width**-0.5) @ v)
    return graph.text()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_machine_code(dtype: str) -> None:
    graph = Graph("attention")
    q, k, v = (graph.parameter(name, (6, 256, 32), dtype) for name in "qkv")
    graph.output(graph.softmax(q @ k.transpose(0, 2, 1)) @ v)
    rng = np.random.default_rng(0)
    array = np.dtype(getattr(ml_dtypes, dtype)) if dtype == "bfloat16" else np.dtype(dtype)
    x, y, z = (rng.uniform(-1, 1, (6, 256, 32)).astype(array) for _ in range(3))
    compiled = graph.compile(options=Options(decision_seed=1))
    assert LOOP in compiled.lowered
    wide = [a.astype("f8") for a in (x, y, z)]
    scores = np.exp(wide[0] @ wide[1].transpose(0, 2, 1))
    expected = scores / scores.sum(-1, keepdims=True) @ wide[2]
    np.testing.assert_allclose(compiled(x, y, z).astype("f8"), expected, atol=1e-5 if dtype == "float32" else 2e-2)
