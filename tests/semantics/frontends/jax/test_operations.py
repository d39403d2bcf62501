"""Operations of `jax.numpy` and `jax.lax` compute what JAX computes."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from tests.semantics.frontends.jax.checks import check
from tlx.bench.models.programs import jax, jnp, lax, max_pool, normal

Function = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
_rng: Final = np.random.default_rng(1)


def integers(low: int, high: int, *shape: int, dtype: str = "i4") -> Any:
    return _rng.integers(low, high, shape).astype(dtype)


_X: Final = normal(_rng, 3, 7)
_SPECIAL: Final = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-3, 0.3, -0.7, 5.0, -40.0, 90.0], "f4")
_KEY: Final = np.array([7, 42], "u4")
_EMPTY: Final = np.zeros((0, 7), "f4")
_ROWS: Final = np.array([3, 0, 3], "i4")


def squared(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The gradient of the sum of squares of a function."""

    def loss(x: Any) -> Any:
        return (function(x) ** 2).sum()

    return jax.grad(loss)


def average_pool(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def min_pool(x: Any) -> Any:
    return lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def group_convolution(w: Any) -> Any:
    x = jnp.sin(jnp.arange(200.0)).reshape(2, 5, 5, 4)
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=2, dimension_numbers=dimensions)


def dilated_convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (2,), [(1, 2)], lhs_dilation=(2,), rhs_dilation=(3,))


def transposed_convolution(x: Any, w: Any) -> Any:
    return lax.conv_transpose(x, w, (2, 3), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


FUNCTIONS: Final[dict[str, tuple[Function, tuple[Any, ...]]]] = {
    "special values": (lambda x: [f(x) for f in (jnp.exp, jnp.tanh, jnp.sign, jnp.floor, jnp.round)], (_SPECIAL,)),
    "expm1": (lambda x: (jnp.expm1(x), jnp.expm1(x * 1e-3)), (_SPECIAL,)),
    "log1p": (lambda x: (jnp.log1p(jnp.abs(x)), jnp.log1p(x * 1e-3)), (_SPECIAL,)),
    "cbrt": (jnp.cbrt, (_SPECIAL,)),
    "tan": (lambda x: (jnp.tan(x), jnp.sin(x), jnp.cos(x)), (normal(_rng, 9),)),
    "arctan2": (lambda y, x: jnp.arctan2(y[:, None], x), (_SPECIAL, _SPECIAL)),
    "hyperbolic": (lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arctan(x)), (normal(_rng, 9),)),
    "erf": (lambda x: (jax.scipy.special.erf(x), jax.scipy.special.erfc(x)), (normal(_rng, 9, scale=2),)),
    "power": (lambda x: (x**2, x**-1, jnp.abs(x) ** 1.7), (normal(_rng, 9),)),
    "rounding": (lambda x: (lax.round(x), jnp.round(x), jnp.trunc(x)), (np.array([0.5, -1.5, 2.4, 1e9], "f4"),)),
    "integers": (
        lambda a, b: (a // b, a % b, a << 2, a >> 1, a & b, ~a, lax.population_count(a), lax.clz(a)),
        (integers(-99, 99, 6), integers(1, 9, 6)),
    ),
    "bytes": (lambda a: (lax.population_count(a), lax.clz(a), a + a), (integers(0, 255, 6, dtype="u1"),)),
    "booleans": (lambda a, b: (a & b, a | b, a ^ b, ~a, a.any(), b.all(), a.sum()), (_X > 0, _X > 0.1)),
    "conversions": (lambda x: (x.astype("i4"), x.astype("f2"), x.astype("i1"), x > 0), (normal(_rng, 9, scale=50),)),
    "bfloat constants": (
        lambda x: x * jnp.asarray([[0.5], [-3], [1e-3]], "bfloat16") + jnp.asarray([jnp.inf, 2], "bfloat16")[1],
        (_X.astype(jnp.bfloat16),),
    ),
    "small floats": (
        lambda x, y: (
            x.astype(jnp.float8_e5m2).astype("f4") + jnp.asarray([1, 0.5, jnp.nan], jnp.float8_e4m3fn).astype("f4"),
            lax.dot(x.astype(jnp.float8_e4m3fn), y.astype(jnp.float8_e5m2), preferred_element_type=jnp.float32),
            jnp.dot(x.astype(jnp.float8_e5m2), y.astype(jnp.float8_e5m2)).astype("f4"),
        ),
        (normal(_rng, 5, 3), normal(_rng, 3, 4)),
    ),
    "reduce precision": (lambda x: lax.reduce_precision(x, 8, 7), (normal(_rng, 9),)),
    "shapes": (lambda x: (x.T, x[::2, 1:5:3], x.reshape(7, 3), jnp.flip(x, 1), jnp.roll(x, 2, 0)), (_X,)),
    "pad": (lambda x, y: (jnp.pad(x, 1), lax.pad(x, y, [(1, -1, 0), (0, 2, 1)])), (_X, np.float32(3))),
    "concatenate": (lambda x: (jnp.concatenate([x, x], 1), jnp.stack([x, 2 * x]), jnp.tile(x, 2)), (_X,)),
    "triangle": (lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.eye(3) @ x), (_X,)),
    "reductions": (lambda x: (x.sum(), x.mean(1), x.max(0), x.min(), x.prod(1), x.std(), jnp.ptp(x)), (_X,)),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x), jnp.nanargmax(x)), (_X,)),
    "argmax of NaN": (lambda x: (jnp.argmax(x), jnp.argmin(x)), (_SPECIAL,)),
    "argmax of booleans": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x), x.max(0)), (_X > 0.5,)),
    "argmax of integers": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)), (integers(0, 3, 4, 5),)),
    "reduction of pairs": (
        lambda x, y: lax.reduce((x, y), (1.0, 0.0), lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (1,)),
        (_X, _X + 1),
    ),
    "logsumexp": (lambda x: (jax.nn.logsumexp(x, -1), jax.nn.softmax(x, 0)), (_X,)),
    "cumulative": (
        lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1, reverse=True), lax.cummin(x, 0)),
        (_X,),
    ),
    "cumlogsumexp": (lax.cumlogsumexp, (_X[0],)),
    "windows": (
        lambda x: (
            lax.reduce_window(x, 1.0, lax.add, (2, 3), (1, 2), "SAME"),
            lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "VALID", window_dilation=(1, 2)),
            lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), ((1, 0), (2, 1)), base_dilation=(2, 3)),
        ),
        (_X,),
    ),
    "cumsum gradient": (squared(lambda x: jnp.cumsum(x, axis=1)), (_X,)),
    "associative scan": (lambda x: lax.associative_scan(jnp.multiply, x), (normal(_rng, 8),)),
    "einsum": (lambda x, y: jnp.einsum("abc,dcb->ad", x, y), (normal(_rng, 2, 3, 4), normal(_rng, 5, 4, 3))),
    "products": (lambda x, y: (x @ y, jnp.vdot(x, x), jnp.outer(x[0], y[:, 0])), (_X, normal(_rng, 7, 2))),
    "product of integers": (
        lambda x, y: lax.dot(x, y, preferred_element_type="i4"),
        (integers(-9, 9, 3, 4, dtype="i1"), integers(-9, 9, 4, 2, dtype="i1")),
    ),
    "product of booleans": (lambda x, y: (x @ y, jnp.dot(x[0], y[:, 1])), (_X > 0.5, normal(_rng, 7, 2) > 0)),
    "convolution without spatial dimensions": (
        lambda x, w: (lax.conv_general_dilated(x, w, (), []), jax.grad(lambda v: lax.conv(v, w, (), []).sum())(x)),
        (normal(_rng, 4, 3), normal(_rng, 5, 3)),
    ),
    "groups of the batch without spatial dimensions": (
        lambda x, w: lax.conv_general_dilated(x, w, (), [], batch_group_count=2),
        (normal(_rng, 4, 3), normal(_rng, 6, 3)),
    ),
    "vmap of a loop": (
        jax.vmap(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 2 + 1, x)),
        (abs(normal(_rng, 5)),),
    ),
    "vmap of updates": (
        jax.vmap(lambda x, i: lax.dynamic_update_slice(x, jnp.ones(2), (i,))),
        (_X, np.array([0, 3, 9], "i4")),
    ),
    "vmap": (jax.vmap(jax.grad(lambda x, y: jnp.dot(x, jnp.tanh(y)))), (_X, _X)),
    "dilated convolution": (dilated_convolution, (normal(_rng, 2, 3, 9), normal(_rng, 4, 3, 2))),
    "gradients of a transposed convolution": (
        jax.grad(lambda x, w: (jnp.sin(transposed_convolution(x, w)) ** 2).sum(), (0, 1)),
        (normal(_rng, 2, 5, 4, 3), normal(_rng, 3, 4, 3, 2)),
    ),
    "group convolution gradient": (squared(group_convolution), (normal(_rng, 3, 3, 2, 4),)),
    "max pool gradient": (squared(max_pool), (normal(_rng, 1, 6, 6, 2),)),
    "max pool gradient, ties": (squared(max_pool), (integers(0, 2, 1, 6, 6, 2).astype("f4"),)),
    "min pool gradient": (squared(min_pool), (normal(_rng, 1, 5, 5, 2),)),
    "average pool gradient": (squared(average_pool), (normal(_rng, 1, 6, 6, 2),)),
    "one hot": (lambda i: jax.nn.one_hot(i, 5), (_ROWS,)),
    "gather": (
        lambda x, i: (x[i, :, 1], x[i], x[:, i % 3]),
        (normal(_rng, 4, 3, 2), np.array([[3, 0], [-1, 2]], "i4")),
    ),
    "batched gather": (lambda x, i: jnp.take_along_axis(x, i, 1), (_X, integers(0, 7, 3, 2))),
    "gather gradient": (jax.grad(lambda x, i: (x[i] ** 2).sum()), (normal(_rng, 4, 3), _ROWS)),
    "take out of bounds": (lambda x: jnp.take(x, jnp.array([0, 9]), mode="fill"), (normal(_rng, 4),)),
    "scatter": (
        lambda x, i, v: (x.at[i].add(v), x.at[i, 1].max(v[0]), x.at[1:3].set(0), x.at[i].multiply(v)),
        (normal(_rng, 4, 3), _ROWS, normal(_rng, 3, 3)),
    ),
    "scatter by other functions": (
        lambda x, i, v: (x.at[i].subtract(v), x.at[i[:2]].apply(jnp.sin), x.at[i, 1].divide(3)),
        (normal(_rng, 4, 3), _ROWS, normal(_rng, 3, 3)),
    ),
    "scatter of booleans": (lambda x, i: (x.at[i].max(x[i + 1]), x.at[i].min(x[i + 1])), (_X > 0, _ROWS)),
    "scatter by a function, vmap": (
        jax.vmap(lambda x, i: x.at[i].apply(lambda v: v * v)),
        (_X, np.array([[0, 3], [9, 2], [6, 5]], "i4")),
    ),
    "dynamic slice": (
        lambda x, i: (lax.dynamic_slice(x, (i, 1), (2, 2)), lax.dynamic_update_slice(x, x[:2] + 1, (i, 0))),
        (normal(_rng, 4, 3), np.int32(3)),
    ),
    "for": (lambda x, n: lax.fori_loop(0, n, lambda i, v: v * 1.5 + i, x), (normal(_rng, 3), np.int32(4))),
    "nested loops": (
        lambda x: lax.fori_loop(0, 3, lambda i, v: lax.fori_loop(0, i, lambda j, w: w + j * x, v), x),
        (normal(_rng, 3),),
    ),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(7), x, reverse=True), (_X,)),
    "cond": (lambda x, b: lax.cond(b, jnp.sin, lambda v: v * 2, x), (normal(_rng, 3), np.bool_(True))),
    "cond gradient": (jax.grad(lambda x: lax.cond(x > 0, jnp.sin, lambda v: v * v, x)), (np.float32(-0.3),)),
    "switch": (lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), (normal(_rng, 3), np.int32(7))),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.argsort(x, descending=True)), (_X,)),
    "sort of special values": (lambda x: (jnp.sort(x), jnp.argsort(x), lax.sort(x)), (_SPECIAL,)),
    "sort by two keys": (
        lambda x, y: lax.sort((x, y, x + 1), dimension=0, num_keys=2),
        (integers(0, 3, 9).astype("f4"), normal(_rng, 9)),
    ),
    "lexsort": (lambda x, y: jnp.lexsort((x, y)), (normal(_rng, 9), integers(0, 3, 9))),
    "top_k": (lambda x: lax.top_k(x, 3), (_X,)),
    "approximate top_k": (
        lambda x: (
            lax.approx_max_k(x, 3),
            lax.approx_min_k(x, 2, reduction_dimension=0),
            lax.approx_max_k(x, 3, aggregate_to_topk=False),
        ),
        (_X,),
    ),
    "gradient of approximate top_k": (jax.grad(lambda x: (lax.approx_max_k(x, 3)[0] ** 2).sum()), (_X,)),
    "median": (lambda x: (jnp.median(x), jnp.quantile(x, 0.3, axis=1)), (_X,)),
    "searchsorted": (jnp.searchsorted, (np.sort(normal(_rng, 7)), normal(_rng, 3))),
    "bitcast": (lambda x: (lax.bitcast_convert_type(x, "i4"), lax.bitcast_convert_type(x, "u2")), (_X,)),
    "random uniform": (lambda k: jax.random.uniform(k, (5, 3)), (_KEY,)),
    "random normal": (lambda k: jax.random.normal(k, (5, 3)), (_KEY,)),
    "random categorical": (lambda k: jax.random.categorical(k, jnp.zeros((4, 5))), (_KEY,)),
    "random permutation": (lambda k: jax.random.permutation(k, 10), (_KEY,)),
    "dropout": (lambda k, x: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x / 0.5, 0), (_KEY, _X)),
    "typed key": (lambda k: jax.random.uniform(jax.random.key(k), (3,)), (np.uint32(9),)),
    "random bits of XLA": (
        lambda k: [lax.rng_bit_generator(k, (5,), algorithm=a) for a in lax.RandomAlgorithm.__members__.values()],
        (integers(0, 99, 4, dtype="u4"),),
    ),
    "no elements": (
        lambda e, x: (
            jnp.exp(e) + 1,
            e.sum(0),
            (e.T @ e),
            jnp.concatenate([x, x[:, :0]], 1),
            jnp.pad(e, (1, 2)),
            x[3:],
        ),
        (_EMPTY, _X),
    ),
    "no elements, gradients": (jax.grad(lambda e, x: (e.T @ e).sum() + (x[:0] * e.sum()).sum(), (0, 1)), (_EMPTY, _X)),
    "no elements in loops": (
        lambda e, x: (
            lax.scan(lambda c, v: (c + v.sum(), c * 2), x, e),
            lax.scan(lambda c, v: (c * v.sum(), c.sum() + v), e, x),
            lax.cond(x.sum() > 0, lambda: (e * 2, x), lambda: (e, x + 1)),
        ),
        (_EMPTY, _X),
    ),
    "no elements, positions": (
        lambda e, x, k: (
            jax.ops.segment_sum(e, jnp.zeros(0, int), num_segments=4),
            jax.ops.segment_sum(x, jnp.zeros(3, int), num_segments=0),
            x.at[jnp.zeros(0, int)].add(1),
            jnp.take(x, jnp.zeros(0, int), axis=1),
            lax.top_k(x, 0),
            jnp.argsort(e),
            jax.random.normal(k, (0, 3)),
        ),
        (_EMPTY, _X, _KEY),
    ),
    "random integers": (lambda k: jax.random.randint(k, (9,), 0, 10), (_KEY,)),
    "random bits": (lambda k: jax.random.bits(jax.random.split(k)[1], (7,)), (_KEY,)),
}


def test_angles_in_double() -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-300, 1e300])
    spread = _rng.normal(size=(50, 3)) * np.exp(9 * _rng.normal(size=(50, 3)))
    with jax.enable_x64(True):
        check(lambda y, x: jnp.arctan2(y[:, None], x), special, special, tolerance=3e-16)
        check(lambda x: (jnp.arctan(x), jnp.arctan2(x, x[::-1])), spread, tolerance=5e-16)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operations(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    check(function, *arguments)
