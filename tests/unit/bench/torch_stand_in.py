"""The functions of PyTorch that the models use, in numpy: what they take and return, not how fast they are.

Gradients are given, not computed: see `Torch.gradients`.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from tests.support.tools import require_module

jax: Any = require_module("jax")


def as_tensor(array: Any) -> Any:
    """An array with the methods of torch.Tensor that models use."""
    return np.asarray(array).view(Tensor)


class Tensor(np.ndarray[Any, np.dtype[Any]]):
    """As torch.Tensor."""

    def permute(self, *order: int) -> Any:
        return np.transpose(np.asarray(self), order).view(Tensor)

    def transpose(self, *axes: Any) -> Any:
        first, second = axes
        return np.swapaxes(np.asarray(self), first, second).view(Tensor)

    def contiguous(self, memory_format: str) -> Any:
        assert memory_format == "channels last"
        return self

    def flip(self, *axes: int) -> Any:
        return as_tensor(np.flip(np.asarray(self), axes))

    def expand(self, *sizes: int) -> Any:
        padded = (1,) * (len(sizes) - self.ndim) + self.shape
        return as_tensor(np.broadcast_to(self, [o if n < 0 else n for n, o in zip(sizes, padded, strict=True)]))

    def detach(self) -> Any:
        return self

    def is_floating_point(self) -> bool:
        return self.dtype.kind == "f"

    def float(self) -> Any:
        return self.astype("f4")

    def long(self) -> Any:
        return self.astype("i8")

    def numpy(self) -> Any:
        return np.asarray(self)

    def requires_grad_(self) -> Any:
        return self

    def zero_(self) -> None:
        self[...] = 0

    def copy_(self, other: Any) -> None:
        assert self.shape == other.shape
        self[...] = other


class Functional:
    """As torch.nn.functional."""

    @staticmethod
    def linear(x: Any, w: Any, b: Any = 0.0) -> Any:
        return as_tensor(np.asarray(x) @ np.asarray(w).T + b)

    @staticmethod
    def conv2d(x: Any, w: Any, b: Any = None, stride: int = 1, padding: int = 0) -> Any:
        borders = [(padding, padding)] * 2
        out = jax.lax.conv_general_dilated(np.asarray(x), np.asarray(w), (stride, stride), borders)
        return as_tensor(np.asarray(out) + (0 if b is None else np.asarray(b)[:, None, None]))

    @staticmethod
    def conv_transpose2d(x: Any, w: Any, stride: int) -> Any:
        n, _, height, width = x.shape
        out = np.zeros(
            (n, w.shape[1], *((e - 1) * stride + k for e, k in zip((height, width), w.shape[2:], strict=True)))
        )
        for i, j in np.ndindex(*w.shape[2:]):
            part = np.einsum("nchw,co->nohw", x, w[:, :, i, j])
            out[:, :, i : i + stride * height : stride, j : j + stride * width : stride][..., :height, :width] += part
        return as_tensor(out.astype("f4"))

    @staticmethod
    def max_pool2d(x: Any, size: int, stride: int, padding: int) -> Any:
        edges = [(0, 0), (0, 0), *[(padding, padding)] * 2]
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(np.asarray(x), edges, constant_values=-np.inf), (size, size), (2, 3)
        )
        return as_tensor(windows[:, :, ::stride, ::stride].max((-2, -1)))

    @staticmethod
    def layer_norm(x: Any, shape: tuple[int, ...], scale: Any, shift: Any, epsilon: float) -> Any:
        assert shape == x.shape[-1:]
        x = np.asarray(x)
        return as_tensor((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * scale + shift)

    @staticmethod
    def gelu(x: Any, approximate: str) -> Any:
        return as_tensor(jax.nn.gelu(np.asarray(x), approximate={"tanh": True, "none": False}[approximate]))

    @staticmethod
    def scaled_dot_product_attention(q: Any, k: Any, v: Any, is_causal: bool = False) -> Any:
        scores = np.einsum("nhqd,nhkd->nhqk", q, k) / np.sqrt(q.shape[-1])
        if is_causal:
            assert q.shape == k.shape
            scores = np.where(np.tri(q.shape[2], dtype=bool), scores, -np.inf)
        return as_tensor(np.einsum("nhqk,nhkd->nhqd", jax.nn.softmax(scores), v))

    @staticmethod
    def embedding(tokens: Any, table: Any) -> Any:
        return as_tensor(table[np.asarray(tokens)])

    @staticmethod
    def cross_entropy(x: Any, labels: Any) -> Any:
        return as_tensor(-np.asarray(jax.nn.log_softmax(np.asarray(x)))[np.arange(len(labels)), labels].mean())


class LSTM:
    """As torch.nn.LSTM."""

    def __init__(self, width: int, hidden: int) -> None:
        self.weight_ih_l0 = as_tensor(np.ones((4 * hidden, width), "f4"))
        self.weight_hh_l0 = as_tensor(np.ones((4 * hidden, hidden), "f4"))
        self.bias_ih_l0, self.bias_hh_l0 = (as_tensor(np.ones(4 * hidden, "f4")) for _ in "ih")

    def to(self, dtype: Any) -> LSTM:
        assert dtype == "f4"
        return self

    def eval(self) -> None:
        """As torch.nn.Module.eval."""

    def __call__(self, xs: Any) -> Any:
        h = c = np.zeros((xs.shape[1], self.weight_hh_l0.shape[1]))
        hs: list[Any] = []
        for x in np.asarray(xs):
            parts = x @ self.weight_ih_l0.T + self.bias_ih_l0 + h @ np.asarray(self.weight_hh_l0).T + self.bias_hh_l0
            i, f, g, o = np.split(np.asarray(parts), 4, -1)
            i, f, o = (1 / (1 + np.exp(-part)) for part in (i, f, o))
            c = f * c + i * np.tanh(g)
            h = o * np.tanh(c)
            hs.append(h)
        return as_tensor(np.stack(hs)), (as_tensor(h[None]), as_tensor(c[None]))


class Torch:
    """As the package torch.

    Attributes:
        gradients: What `torch.autograd.grad` returns.
    """

    __version__ = "2"
    channels_last = "channels last"
    no_grad = inference_mode = nullcontext

    def __init__(self, gradients: list[Any]) -> None:
        self.gradients = gradients
        self.nn = self
        self.functional = Functional()
        self.LSTM = LSTM
        self.autograd = self

    def grad(self, loss: Any, leaves: list[Any]) -> list[Any]:
        assert loss.ndim == 0
        assert [leaf.shape for leaf in leaves] == [gradient.shape for gradient in self.gradients]
        return self.gradients

    @staticmethod
    def _foreach_add_(leaves: list[Any], others: list[Any], alpha: float) -> None:
        for leaf, other in zip(leaves, others, strict=True):
            leaf += alpha * other

    @staticmethod
    def set_num_threads(count: int) -> None:
        assert count == 1

    @staticmethod
    def from_numpy(array: Any) -> Any:
        return as_tensor(array)

    @staticmethod
    def relu(x: Any) -> Any:
        return as_tensor(np.maximum(x, 0))

    @staticmethod
    def tanh(x: Any) -> Any:
        return as_tensor(np.tanh(x))

    @staticmethod
    def sigmoid(x: Any) -> Any:
        return as_tensor(1 / (1 + np.exp(-np.asarray(x))))

    @staticmethod
    def addmm(b: Any, x: Any, w: Any) -> Any:
        return as_tensor(np.asarray(x) @ np.asarray(w) + b)

    @staticmethod
    def cat(parts: list[Any], axis: int) -> Any:
        return as_tensor(np.concatenate(parts, axis))

    @staticmethod
    def zeros(size: int, dtype: Any) -> Any:
        return as_tensor(np.zeros(size, dtype))

    @staticmethod
    def argsort(x: Any, dim: int, stable: bool) -> Any:
        assert stable
        return as_tensor(np.argsort(x, dim, kind="stable"))

    @staticmethod
    def cumsum(x: Any, axis: int) -> Any:
        return as_tensor(np.cumsum(x, axis))
