"""Attention on the emulator: one kernel, with the scores in registers."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import tlx
from tests.nvidia.programs import lowered, normal
from tlx.target.launches import table_of

Run = Callable[..., list[Any]]
Array = npt.NDArray[Any]
DTYPES: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def attention(
    sizes: tuple[int, int, int, int, int],
    dtype: str = "bfloat16",
    *,
    scores: str = "float32",
    reassociated: bool = False,
    masked: bool = False,
) -> str:
    """softmax(q k' / sqrt(k) + mask) v.

    Args:
        sizes: Heads, rows of q, rows of k and v, columns of k, columns of v.
        dtype: Element type of all but the mask, which is added to all heads.
        scores: What the scores are rounded to.
        reassociated: Whether the program permits the division to be done last.
        masked: Whether there is a mask.
    """
    heads, rows, positions, depth, width = sizes
    g = tlx.Graph("f")
    shapes = {"q": (heads, rows, depth), "k": (heads, positions, depth), "v": (heads, positions, width)}
    q, k, v = (g.parameter(name, shape, dtype) for name, shape in shapes.items())
    s = g.convert(g.matmul(q, k.transpose(0, 2, 1), scores), "float32") * depth**-0.5
    if masked:
        s = s + g.parameter("mask", (rows, positions), "float32")
    g.output(g.convert(g.softmax(s, reassociated=reassociated), dtype) @ v)
    return g.text()


def expected(q: Array, k: Array, v: Array, mask: Array | float, scores: Any) -> Array:
    """The same in numpy."""
    wide = [x.astype(np.float32) for x in (q, k, v)]
    s = (wide[0] @ wide[1].transpose(0, 2, 1)).astype(scores).astype(np.float32)
    s = s * np.float32(q.shape[-1] ** -0.5) + mask
    e = np.exp(s - s.max(-1, keepdims=True))
    p = (e / e.sum(-1, keepdims=True)).astype(q.dtype).astype(np.float32)
    return p @ wide[2]


def arrays(sizes: tuple[int, int, int, int, int], dtype: Any) -> list[Array]:
    """q, k and v; q is large, so that maxima grow."""
    heads, rows, positions, depth, width = sizes
    q = (3 * normal((heads, rows, depth), np.float32)).astype(dtype)
    return [q, normal((heads, positions, depth), dtype, 1), normal((heads, positions, width), dtype, 2)]


def check(
    run: Run, sizes: tuple[int, int, int, int, int], dtype: str, mask: Array | None = None, **options: Any
) -> None:
    text = attention(sizes, dtype, masked=mask is not None, **options)
    assert lowered(text).count("define ptx_kernel") == 1
    q, k, v = arrays(sizes, DTYPES[dtype])
    given = [q, k, v] if mask is None else [q, k, v, mask]
    *_, out = run(text, *given, np.zeros((*q.shape[:2], v.shape[-1]), q.dtype))
    scores = DTYPES.get(options.get("scores", ""), np.float32)
    want = expected(q, k, v, 0.0 if mask is None else mask, scores)
    np.testing.assert_allclose(out.astype(np.float32), want, atol=0.02 if dtype == "bfloat16" else 0.003)


@pytest.mark.parametrize("reassociated", [False, True], ids=["exact", "running"])
@pytest.mark.parametrize("sizes", [(2, 64, 128, 64, 64), (1, 70, 130, 40, 136)], ids=str)
def test_attention(run: Run, sizes: tuple[int, int, int, int, int], reassociated: bool) -> None:
    check(run, sizes, "bfloat16", reassociated=reassociated)


def test_half(run: Run) -> None:
    check(run, (1, 64, 128, 128, 64), "float16", reassociated=True)


def test_rounded_scores(run: Run) -> None:
    check(run, (1, 64, 64, 64, 64), "bfloat16", scores="bfloat16")


@pytest.mark.parametrize(
    ("sizes", "dtype", "reassociated"),
    [
        ((1, 130, 200, 128, 72), "bfloat16", False),
        ((2, 128, 256, 64, 128), "bfloat16", True),
        ((1, 64, 500, 128, 128), "bfloat16", True),
        ((1, 64, 500, 128, 64), "float16", False),
        ((1, 64, 128, 64, 64), "float16", True),
    ],
    ids=str,
)
def test_groups(run: Run, sizes: tuple[int, int, int, int, int], dtype: str, reassociated: bool) -> None:
    """Groups of warps multiply 64 rows; a block has two groups if that leaves no multiprocessor without one."""
    text = attention(sizes, dtype, reassociated=reassociated)
    assert "wgmma" in lowered(text, "sm_90a")
    q, k, v = arrays(sizes, DTYPES[dtype])
    out = np.zeros((*q.shape[:2], v.shape[-1]), q.dtype)
    *_, out = run(text, q, k, v, out, processor="sm_90a", multiprocessors=1)
    want = expected(q, k, v, 0.0, np.float32)
    np.testing.assert_allclose(out.astype(np.float32), want, atol=0.02 if dtype == "bfloat16" else 0.003)


@pytest.mark.parametrize(("positions", "reassociated"), [(192, True), (65, False)], ids=str)
def test_causal(run: Run, positions: int, reassociated: bool) -> None:
    """Tiles all of whose scores are -inf come first, in rows that have others later."""
    mask = np.where(np.arange(positions)[None, ::-1] > np.arange(70)[:, None], -np.inf, 0).astype(np.float32)
    check(run, (1, 70, positions, 64, 64), "bfloat16", mask, reassociated=reassociated)


@pytest.mark.parametrize("reassociated", [False, True], ids=["exact", "running"])
def test_rows_without_positions(run: Run, reassociated: bool) -> None:
    """A row all of whose scores are -inf is NaN, as 0 / 0 is."""
    mask = np.zeros((64, 128), np.float32)
    mask[5] = -np.inf
    sizes = (1, 64, 128, 64, 64)
    q, k, v = arrays(sizes, ml_dtypes.bfloat16)
    text = attention(sizes, masked=True, reassociated=reassociated)
    *_, out = run(text, q, k, v, mask, np.zeros((1, 64, 64), q.dtype))
    assert np.isnan(out[0, 5].astype(np.float32)).all()
    assert np.isfinite(np.delete(out[0].astype(np.float32), 5, 0)).all()


@pytest.mark.parametrize("value", [-1e9, -1e30, float(np.finfo(np.float32).min)])
def test_finite_masks(run: Run, value: float) -> None:
    """Where a mask is a number, rows, and first tiles, with no other scores have equal weights."""
    mask = np.zeros((64, 192), np.float32)
    mask[5], mask[7, :64] = value, value
    check(run, (1, 64, 192, 64, 64), "bfloat16", mask, reassociated=True)


def test_unaligned_rows(run: Run) -> None:
    """K begins 8 bytes after its parameter, where no chunk of 16 bytes is aligned; Q has rows beyond its last one."""
    sizes, skipped = (1, 40, 64, 64, 64), 4
    text = attention(sizes).replace("entry:\n", "entry:\n  %from = getelementptr bfloat, ptr %k, i64 4\n", 1)
    text = text.replace("ptr elementtype(bfloat) %k,", "ptr elementtype(bfloat) %from,")
    assert "_attention" in lowered(text)
    q, k, v = arrays(sizes, ml_dtypes.bfloat16)
    given = np.concatenate([np.zeros(skipped, k.dtype), k.ravel()])
    *_, out = run(text, q, given, v, np.zeros((1, 40, 64), q.dtype))
    np.testing.assert_allclose(out.astype(np.float32), expected(q, k, v, 0.0, np.float32), atol=0.02)


def test_large_blocks(run: Run) -> None:
    """A grid of fewer multiprocessors gets blocks of 128 rows."""
    sizes = (2, 192, 64, 64, 64)
    text = attention(sizes, reassociated=True)
    assert '"grid":4,' in lowered(text, multiprocessors=4).replace("\\22", '"')
    q, k, v = arrays(sizes, ml_dtypes.bfloat16)
    *_, out = run(text, q, k, v, np.zeros((2, 192, 64), q.dtype), multiprocessors=4)
    np.testing.assert_allclose(out.astype(np.float32), expected(q, k, v, 0.0, np.float32), atol=0.02)


@pytest.mark.parametrize("causal", [False, True])
def test_jax(run: Run, causal: bool) -> None:
    """Heads are the second to last dimension; a mask is computed by a kernel before."""
    jax: Any = pytest.importorskip("jax")
    jit: Any = import_module("tlx.jax").jit
    q, k, v = (normal((2, 80, 2, 64), ml_dtypes.bfloat16, seed) for seed in range(3))

    def attend(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

    text = jit(attend).lower(q, k, v)
    assert [launch.kernel for launch in table_of(lowered(text))[0].launches][-1] == f"attend_{2 * causal}_attention"
    *_, out = run(text, q, k, v, np.zeros_like(q), entry="attend")
    np.testing.assert_allclose(out.astype(np.float32), np.asarray(attend(q, k, v), np.float32), atol=0.02)


def test_result_with_totals(run: Run) -> None:
    """What else reads the rows' sums has them: the products are scaled back."""
    sizes = heads, rows, positions, depth, width = (1, 32, 64, 32, 32)
    g = tlx.Graph("f")
    shapes = {"q": (heads, rows, depth), "k": (heads, positions, depth), "v": (heads, positions, width)}
    q, k, v = (g.parameter(name, shape, "bfloat16") for name, shape in shapes.items())
    s = g.matmul(q, k.transpose(0, 2, 1), "float32") * depth**-0.5
    powers = g.exp(s - g.max(s, 2, keep=True))
    totals = g.sum(powers, 2, keep=True)
    g.output(g.convert(g.matmul(g.convert(powers / totals, "bfloat16"), v, "float32") * totals, "bfloat16"))
    given = arrays(sizes, ml_dtypes.bfloat16)
    *_, out = run(g.text(), *given, np.zeros((heads, rows, width), given[0].dtype))
    wide = [x.astype(np.float32) for x in given]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) * np.float32(depth**-0.5)
    want = np.exp(scores - scores.max(-1, keepdims=True)) @ wide[2]
    np.testing.assert_allclose(out.astype(np.float32), want, atol=0.05, rtol=0.02)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%out", "%q"),  # the result overwrites what other blocks read
        ("reduce.max", "reduce.min"),
    ],
    ids=["in place", "minimum"],
)
def test_separate_kernels(old: str, new: str) -> None:
    text = attention((1, 64, 64, 64, 64))
    assert old in text
    text = text.replace(f", ptr noalias {old}", "").replace(f"ptr {old}", f"ptr {new}").replace(old, new)
    text = text.replace("ptr noalias readonly %q", "ptr noalias %q")
    assert "_attention" not in lowered(text)
