"""The models in JAX: each is a function of its parameters and inputs, with random arguments of any size.

They are the origin that every contestant is compared with, and what the tests of the front end compile.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any, Final

import numpy as np

jax: Any = import_module("jax")
jnp: Any = jax.numpy
lax: Any = jax.lax

_IMAGES: Final = ("NHWC", "HWIO", "NHWC")
_HEADS: Final = 2


def generator() -> np.random.Generator:
    """Where a function draws all of its arguments from, so that they do not depend on what was drawn before."""
    return np.random.default_rng(0)


def normal(rng: np.random.Generator, *shape: int, scale: float = 0.3, dtype: str = "f4") -> Any:
    """Normally distributed numbers."""
    return rng.normal(0, scale, shape).astype(dtype)


def descent(parameters: Any, gradients: Any, rate: float) -> Any:
    """Parameters after a step against their gradients."""

    def step(a: Any, b: Any) -> Any:
        return a - rate * b

    return jax.tree.map(step, parameters, gradients)


# Multi-layer perceptron ----------------------------------------------------------------------------------------


def mlp(p: Any, x: Any) -> Any:
    """A multi-layer perceptron: layers with ReLU between them."""
    for w, b in p[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = p[-1]
    return x @ w + b


def mlp_loss(p: Any, x: Any, y: Any) -> Any:
    """Mean cross entropy of the labels `y`."""
    logits = jax.nn.log_softmax(mlp(p, x))
    return -(logits * jax.nn.one_hot(y, logits.shape[-1], dtype=jnp.float32)).sum(1).mean()


def mlp_step(p: Any, x: Any, y: Any) -> Any:
    """New parameters and the loss, after a step of gradient descent."""
    loss, g = jax.value_and_grad(mlp_loss)(p, x, y)
    return descent(p, g, 0.1), loss


def mlp_arguments(sizes: tuple[int, ...] = (8, 16, 4), batch: int = 6, dtype: Any = "f4") -> tuple[Any, Any, Any]:
    """Parameters, a batch, and its labels."""
    rng = generator()
    layers = pairwise(sizes)
    p = [(normal(rng, i, o, scale=i**-0.5, dtype=dtype), normal(rng, o, dtype=dtype)) for i, o in layers]
    return p, normal(rng, batch, sizes[0], dtype=dtype), rng.integers(0, sizes[-1], batch).astype("i4")


# ResNet --------------------------------------------------------------------------------------------------------


def conv(x: Any, w: Any, stride: int = 1) -> Any:
    """A convolution with channels last, whose borders keep the size at stride 1."""
    borders = [(size // 2, size // 2) for size in w.shape[:2]]
    return lax.conv_general_dilated(x, w, (stride, stride), borders, dimension_numbers=_IMAGES)


def batch_norm(x: Any, p: Any) -> Any:
    """Normalisation by the statistics of the batch."""
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"]


def inference_norm(x: Any, p: Any) -> Any:
    """Normalisation by statistics that are part of the parameters."""
    return x * p["scale"] + p["shift"]


def bottleneck(x: Any, p: Any, stride: int, norm: Any) -> Any:
    """A residual block of three convolutions."""
    y = jax.nn.relu(norm(conv(x, p["w1"]), p["n1"]))
    y = jax.nn.relu(norm(conv(y, p["w2"], stride), p["n2"]))
    y = norm(conv(y, p["w3"]), p["n3"])
    if "w0" in p:
        x = norm(conv(x, p["w0"], stride), p["n0"])
    return jax.nn.relu(x + y)


def max_pool(x: Any) -> Any:
    """The maxima of windows of 3x3 at stride 2."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))


def resnet(p: Any, x: Any, norm: Any = batch_norm) -> Any:
    """A residual network: the scores of a batch of images."""
    x = max_pool(jax.nn.relu(norm(conv(x, p["stem"], 2), p["n"])))
    for number, stage in enumerate(p["stages"]):
        for k, block in enumerate(stage):
            x = bottleneck(x, block, 2 if number and not k else 1, norm)
    return x.mean((1, 2)) @ p["head"]


def resnet_inference(p: Any, x: Any) -> Any:
    """A residual network with fixed statistics."""
    return resnet(p, x, inference_norm)


def resnet_loss(p: Any, x: Any) -> Any:
    """A number whose gradient is taken."""
    return (resnet(p, x) ** 2).mean()


def resnet_arguments(
    width: int = 4, depths: tuple[int, ...] = (1, 1), image: int = 16, batch: int = 2, classes: int = 5
) -> tuple[Any, Any]:
    """Parameters and a batch of images; ResNet-50 has width 64 and depths of 3, 4, 6, 3."""
    rng = generator()

    def norm(c: int) -> Any:
        return {"scale": 1 + normal(rng, c, scale=0.1), "shift": normal(rng, c, scale=0.1)}

    def kernel(size: int, i: int, o: int) -> Any:
        return normal(rng, size, size, i, o, scale=(size * size * i) ** -0.5)

    def block(i: int, m: int, o: int, *, projects: bool) -> Any:
        p = {"w1": kernel(1, i, m), "w2": kernel(3, m, m), "w3": kernel(1, m, o)}
        p |= {"n1": norm(m), "n2": norm(m), "n3": norm(o)}
        return p | ({"w0": kernel(1, i, o), "n0": norm(o)} if projects else {})

    stages: list[Any] = []
    i = width
    for number, depth in enumerate(depths):
        m, o = width << number, 4 * width << number
        stages.append([block(i if k == 0 else o, m, o, projects=k == 0) for k in range(depth)])
        i = o
    p = {"stem": kernel(7, 3, width), "n": norm(width), "stages": stages, "head": normal(rng, i, classes, scale=0.1)}
    return p, normal(rng, batch, image, image, 3)


# GPT-2 ---------------------------------------------------------------------------------------------------------


def layer_norm(x: Any, p: Any) -> Any:
    """Normalisation of the last dimension."""
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["g"] + p["b"]


def attention(x: Any, p: Any, heads: int, cache: Any = None, position: Any = None) -> tuple[Any, Any]:
    """Causal attention, and the keys and values, which are those of the cache and of `x` at its position."""
    s, d = x.shape
    q, k, v = (t.reshape(s, heads, d // heads).transpose(1, 0, 2) for t in jnp.split(x @ p["qkv"] + p["qkvb"], 3, -1))
    if cache is None:
        mask = jnp.tril(jnp.ones((s, s), bool))
    else:
        k, v = (lax.dynamic_update_slice_in_dim(c, new, position, 1) for c, new in zip(cache, (k, v), strict=True))
        mask = jnp.arange(k.shape[1])[None, :] <= position + jnp.arange(s)[:, None]
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / jnp.sqrt(d // heads).astype(x.dtype)
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), -1)
    result = jnp.einsum("hqk,hkd->hqd", weights, v).transpose(1, 0, 2).reshape(s, d)
    return result @ p["o"] + p["ob"], (k, v)


def gpt2(p: Any, tokens: Any, caches: Any = None, position: Any = 0) -> tuple[Any, Any]:
    """The logits of tokens, and their caches."""
    heads = max(p["wte"].shape[1] // 64, _HEADS)
    x = p["wte"][tokens] + lax.dynamic_slice_in_dim(p["wpe"], position, tokens.shape[0])
    updated: list[Any] = []
    for i, layer in enumerate(p["layers"]):
        a, cache = attention(layer_norm(x, layer["n1"]), layer, heads, caches and caches[i], position)
        updated.append(cache)
        x = x + a
        h = layer_norm(x, layer["n2"])
        x = x + jax.nn.gelu(h @ layer["fc"] + layer["fcb"]) @ layer["pr"] + layer["prb"]
    return layer_norm(x, p["n"]) @ p["wte"].T, updated


def gpt2_prefill(p: Any, tokens: Any) -> Any:
    """The logits of all tokens of a text."""
    return gpt2(p, tokens)[0]


def gpt2_step(p: Any, token: Any, caches: Any, position: Any) -> Any:
    """The logits after one more token, and the caches."""
    logits, caches = gpt2(p, token[None], caches, position)
    return logits[0], caches


def gpt2_loss(p: Any, tokens: Any) -> Any:
    """Mean cross entropy of each next token."""
    logits = jax.nn.log_softmax(gpt2(p, tokens[:-1])[0])
    return -jnp.take_along_axis(logits, tokens[1:, None], 1).mean()


def gpt2_generate(p: Any, tokens: Any, caches: Any) -> Any:
    """Greedy generation, until the caches are full."""
    n, total = tokens.shape[0], caches[0][0].shape[1]
    logits, caches = gpt2(p, tokens, caches, 0)
    text = jnp.zeros((total,), jnp.int32).at[:n].set(tokens)

    def body(state: Any) -> Any:
        text, caches, token, position = state
        text = text.at[position].set(token)
        logits, caches = gpt2_step(p, token, caches, position)
        return text, caches, jnp.argmax(logits).astype(jnp.int32), position + 1

    def is_incomplete(state: Any) -> Any:
        return state[3] < total

    state = (text, caches, jnp.argmax(logits[-1]).astype(jnp.int32), jnp.int32(n))
    return lax.while_loop(is_incomplete, body, state)[0]


def gpt2_parameters(
    width: int = 16, layers: int = 2, vocabulary: int = 31, context: int = 12, dtype: Any = "f4"
) -> dict[str, Any]:
    """Parameters; those of the smallest GPT-2 have width 768, 12 layers, 50257 tokens and a context of 1024."""
    rng = generator()

    def n(*shape: int) -> Any:
        return normal(rng, *shape, scale=min(0.1, width**-0.5), dtype=dtype)

    def norm() -> Any:
        return {"g": (1 + n(width)).astype(dtype), "b": n(width)}

    def layer() -> Any:
        p = {"n1": norm(), "n2": norm(), "qkv": n(width, 3 * width), "qkvb": n(3 * width), "o": n(width, width)}
        p |= {"ob": n(width), "fc": n(width, 4 * width), "fcb": n(4 * width)}
        return p | {"pr": n(4 * width, width), "prb": n(width)}

    p = {"wte": n(vocabulary, width), "wpe": n(context, width), "n": norm()}
    return p | {"layers": [layer() for _ in range(layers)]}


def gpt2_caches(p: Any) -> Any:
    """Empty caches of keys and values, for the whole context."""
    context, width = p["wpe"].shape
    heads = max(width // 64, _HEADS)
    return [tuple(np.zeros((heads, context, width // heads), p["wpe"].dtype) for _ in "kv") for _ in p["layers"]]


# Vision transformer --------------------------------------------------------------------------------------------


def blocks(layers: Any, x: Any) -> Any:
    """Blocks of a transformer, with normalisation first."""
    for layer in layers:
        normed = layer_norm(x, layer["n1"])
        s, d = normed.shape
        heads = max(d // 64, _HEADS)
        q, k, v = (normed @ layer["qkv"] + layer["qkvb"]).reshape(s, 3, heads, d // heads).transpose(1, 2, 0, 3)
        weights = jax.nn.softmax(jnp.einsum("hqd,hkd->hqk", q, k) * (d // heads) ** -0.5)
        x = x + jnp.einsum("hqk,hkd->qhd", weights, v).reshape(s, d) @ layer["o"] + layer["ob"]
        normed = layer_norm(x, layer["n2"])
        hidden = jax.nn.gelu(normed @ layer["fc"] + layer["fcb"], approximate=False)
        x = x + hidden @ layer["pr"] + layer["prb"]
    return x


def vit(p: Any, image: Any) -> Any:
    """A vision transformer: the scores of an image."""
    patch = int((p["patch"].shape[0] / 3) ** 0.5)
    h, w, c = image.shape
    x = image.reshape(h // patch, patch, w // patch, patch, c).transpose(0, 2, 1, 3, 4)
    x = jnp.concatenate([p["cls"], x.reshape(-1, patch * patch * c) @ p["patch"]]) + p["pos"]
    x = blocks(p["layers"], x)
    return layer_norm(x[0], p["n"]) @ p["head"]


def vit_batch(p: Any, images: Any) -> Any:
    """The scores of a batch of images."""
    return jax.vmap(vit, (None, 0))(p, images)


def vit_loss(p: Any, x: Any) -> Any:
    """A number whose gradient is taken."""
    return (vit(p, x) ** 2).sum()


def vit_arguments(
    width: int = 16, layers: int = 1, image: int = 8, patch: int = 4, classes: int = 5
) -> tuple[dict[str, Any], Any]:
    """Parameters and an image; ViT-B/16 has width 768, 12 layers, images of 224 and patches of 16."""
    rng = generator()
    g = gpt2_parameters(width, layers)
    count = (image // patch) ** 2 + 1
    p = {
        "patch": normal(rng, 3 * patch**2, width, scale=0.1),
        "cls": normal(rng, 1, width),
        "pos": normal(rng, count, width),
    }
    return p | {"layers": g["layers"], "n": g["n"], "head": normal(rng, width, classes)}, normal(rng, image, image, 3)


# Convolutional autoencoder -------------------------------------------------------------------------------------


def autoencoder(p: Any, x: Any) -> Any:
    """A convolutional autoencoder: two convolutions, and two transposed ones."""
    h = jnp.tanh(conv(jax.nn.relu(conv(x, p["e1"], 2)), p["e2"], 2))
    h = jax.nn.relu(lax.conv_transpose(h, p["d1"], (2, 2), "SAME", dimension_numbers=_IMAGES))
    return jax.nn.sigmoid(lax.conv_transpose(h, p["d2"], (2, 2), "SAME", dimension_numbers=_IMAGES))


def autoencoder_step(p: Any, x: Any) -> Any:
    """New parameters and the loss, after a step of gradient descent."""

    def loss_of(p: Any) -> Any:
        return ((autoencoder(p, x) - x) ** 2).mean()

    loss, g = jax.value_and_grad(loss_of)(p)
    return descent(p, g, 0.5), loss


def autoencoder_arguments(
    channels: tuple[int, int, int] = (1, 4, 6), image: int = 8, batch: int = 2
) -> tuple[Any, Any]:
    """Parameters and a batch of images."""
    rng = generator()
    a, b, c = channels

    def kernel(i: int, o: int) -> Any:
        return normal(rng, 3, 3, i, o, scale=min(0.3, (9 * i) ** -0.5))

    p = {"e1": kernel(a, b), "e2": kernel(b, c), "d1": kernel(c, b), "d2": kernel(b, a)}
    return p, abs(normal(rng, batch, image, image, a))


# LSTM ----------------------------------------------------------------------------------------------------------


def lstm(p: Any, xs: Any) -> Any:
    """A recurrent layer: its results, and the last state of its cell."""

    def cell(carry: Any, x: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(x @ p["w"] + h @ p["u"] + p["b"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((xs.shape[1], p["u"].shape[0]), xs.dtype)
    (_, c), hs = lax.scan(cell, (zero, zero), xs)
    return hs, c


def lstm_loss(p: Any, xs: Any) -> Any:
    """A number whose gradient is taken."""
    hs, c = lstm(p, xs)
    return (hs**2).sum() + c.sum()


def lstm_arguments(
    length: int = 4, batch: int = 2, width: int = 3, hidden: int = 5, dtype: Any = "f4"
) -> tuple[Any, Any]:
    """Parameters and a sequence, `length x batch x width`."""
    rng = generator()
    scale = min(0.3, hidden**-0.5)
    w, u = (normal(rng, rows, 4 * hidden, scale=scale, dtype=dtype) for rows in (width, hidden))
    return {"w": w, "u": u, "b": normal(rng, 4 * hidden, dtype=dtype)}, normal(rng, length, batch, width, dtype=dtype)


# Sorting and sums of prefixes ----------------------------------------------------------------------------------


def argsort(x: Any) -> Any:
    """The order of each row."""
    return jnp.argsort(x, axis=-1)


def cumsum(x: Any) -> Any:
    """Sums of prefixes of each row."""
    return jnp.cumsum(x, axis=-1)
