"""The models in PyTorch: what its users would write, with the operations that oneDNN is called for.

`PROGRAMS` has for each row a function of torch and a program's arguments, which returns the model as a function without
arguments. Weights are brought into PyTorch's order beforehand: images are channels last, a normalisation is merged into
the convolution before it, and matrices are those of `linear`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Step = Callable[[], Any]
"""Computes the outputs, and the next state."""
_EPSILON: Final = 1e-5
_RATES: Final = {"mlp_train": 0.1, "autoencoder_train": 0.5}


class TorchModels:
    """The models, by the package `torch`."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._f = torch.nn.functional
        self.steps: dict[str, Callable[..., Step]] = {
            "mlp": self.mlp,
            "mlp_train": self.mlp_train,
            "resnet50": self.resnet,
            "vit": self.vit,
            "blocks": self.blocks,
            "gpt2_prefill": self.gpt2_prefill,
            "gpt2_step": self.gpt2_step,
            "gpt2_generate": self.gpt2_generate,
            "autoencoder_train": self.autoencoder_train,
            "lstm": self.lstm,
            "argsort": self.argsort,
            "cumsum": self.cumsum,
        }

    def tensor(self, array: Any) -> Any:
        """A tensor with a copy of an array."""
        array = np.array(array)
        if array.dtype.name == "bfloat16":
            return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16)
        return self._torch.from_numpy(array)

    def array(self, tensor: Any) -> Any:
        """A tensor as an array; bfloat as float."""
        tensor = tensor.detach()
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()

    def _tree(self, tree: Any) -> Any:
        match tree:
            case {**parts}:
                return {name: self._tree(part) for name, part in parts.items()}
            case [*parts] if not hasattr(tree, "dtype"):  # an array may be a sequence, too
                return [self._tree(part) for part in parts]
            case _:
                return self.tensor(tree)

    def _matrix(self, array: Any) -> Any:
        """The weight of `linear` of a matrix that is multiplied from the right."""
        return self.tensor(np.ascontiguousarray(np.asarray(array).T))

    # Perceptrons -------------------------------------------------------------------------------------------------

    def mlp(self, weights: Any, state: Any, x: Any) -> Step:
        """Layers with ReLU between them."""
        del state
        layers = [(self._matrix(w), self.tensor(b)) for w, b in weights]
        given = self.tensor(x)

        def step() -> Any:
            x = given
            for i, (w, b) in enumerate(layers):
                x = self._f.linear(x, w, b)
                x = self._torch.relu(x) if i + 1 < len(layers) else x
            return x, ()

        return step

    def mlp_train(self, weights: Any, state: Any, x: Any, y: Any) -> Step:
        """A step of gradient descent on the cross entropy."""
        del weights
        torch = self._torch
        layers = self._tree(state)
        given, labels = self.tensor(x), self.tensor(y).long()
        leaves = [leaf.requires_grad_() for layer in layers for leaf in layer]

        def step() -> Any:
            x = given
            for i, (w, b) in enumerate(layers):
                x = torch.addmm(b, x, w)
                x = torch.relu(x) if i + 1 < len(layers) else x
            loss = self._f.cross_entropy(x, labels)
            self._descend(loss, leaves, _RATES["mlp_train"])
            return loss, layers

        return step

    def _descend(self, loss: Any, leaves: list[Any], rate: float) -> None:
        gradients = self._torch.autograd.grad(loss, leaves)
        with self._torch.no_grad():
            self._torch._foreach_add_(leaves, gradients, alpha=-rate)

    # Convolutions ------------------------------------------------------------------------------------------------

    def _image(self, array: Any) -> Any:
        """Images, channels last: NHWC in memory, NCHW in PyTorch's eyes."""
        return self.tensor(array).permute(0, 3, 1, 2)

    def _kernel(self, array: Any) -> Any:
        """A kernel: HWIO becomes OIHW, channels last."""
        wide = self.tensor(np.asarray(array).transpose(3, 2, 0, 1))
        return wide.contiguous(memory_format=self._torch.channels_last)

    def resnet(self, weights: Any, state: Any, x: Any) -> Step:
        """ResNet, channels last."""
        del state
        relu, conv2d = self._torch.relu, self._f.conv2d
        given = self._image(x)

        def merged(kernel: Any, norm: Any) -> tuple[Any, Any]:
            wide = np.asarray(kernel).astype("f4") * np.asarray(norm["scale"]).astype("f4")
            return self._kernel(wide.astype(kernel.dtype)), self.tensor(norm["shift"])

        def block(p: Any) -> tuple[Any, ...]:
            own = [merged(p[f"w{i}"], p[f"n{i}"]) for i in (1, 2, 3)]
            return *own, merged(p["w0"], p["n0"]) if "w0" in p else None

        stem = merged(weights["stem"], weights["n"])
        stages = [[block(p) for p in stage] for stage in weights["stages"]]
        head = self._matrix(weights["head"])

        def step() -> Any:
            x = relu(conv2d(given, *stem, stride=2, padding=3))
            x = self._f.max_pool2d(x, 3, 2, 1)
            for number, stage in enumerate(stages):
                for k, (first, second, third, short) in enumerate(stage):
                    stride = 2 if number and not k else 1
                    y = relu(conv2d(x, *first))
                    y = relu(conv2d(y, *second, stride=stride, padding=1))
                    y = conv2d(y, *third)
                    x = x if short is None else conv2d(x, *short, stride=stride)
                    x = relu(x + y)
            return self._f.linear(x.mean((2, 3)), head), ()

        return step

    def autoencoder_train(self, weights: Any, state: Any, x: Any) -> Step:
        """A step of gradient descent on the squared error of a convolutional autoencoder."""
        del weights
        torch, f = self._torch, self._f
        given = self._image(x)
        p = {name: self.tensor(array).requires_grad_() for name, array in state.items()}

        def encode(x: Any, w: Any) -> Any:
            return f.conv2d(x, w.permute(3, 2, 0, 1), stride=2, padding=1)

        def decode(x: Any, w: Any) -> Any:
            """The size doubles: the last row and column belong to the border."""
            return f.conv_transpose2d(x, w.flip(0, 1).permute(2, 3, 0, 1), stride=2)[:, :, :-1, :-1]

        def step() -> Any:
            h = torch.tanh(encode(torch.relu(encode(given, p["e1"])), p["e2"]))
            h = torch.sigmoid(decode(torch.relu(decode(h, p["d1"])), p["d2"]))
            loss = ((h - given) ** 2).mean()
            self._descend(loss, list(p.values()), _RATES["autoencoder_train"])
            return loss, p

        return step

    # Transformers ------------------------------------------------------------------------------------------------

    def _layer(self, p: Any) -> dict[str, Any]:
        matrices = {name: self._matrix(p[name]) for name in ("qkv", "o", "fc", "pr")}
        return {name: matrices[name] if name in matrices else self._tree(part) for name, part in p.items()}

    def _norm(self, x: Any, p: Any) -> Any:
        return self._f.layer_norm(x, x.shape[-1:], p["g"], p["b"], _EPSILON)

    def _heads(self, x: Any, p: Any) -> Any:
        """Queries, keys and values: `3 x batch x heads x S x E`."""
        s, d = x.shape[-2:]
        heads = max(d // 64, 2)
        qkv = self._f.linear(x, p["qkv"], p["qkvb"]).reshape(-1, s, 3, heads, d // heads)
        return qkv.permute(2, 0, 3, 1, 4)

    def _after(self, x: Any, mixed: Any, p: Any, approximate: str) -> Any:
        """The rest of a block after attention."""
        merged = mixed.transpose(1, 2).reshape(x.shape)
        x = x + self._f.linear(merged, p["o"], p["ob"])
        hidden = self._f.gelu(self._f.linear(self._norm(x, p["n2"]), p["fc"], p["fcb"]), approximate=approximate)
        return x + self._f.linear(hidden, p["pr"], p["prb"])

    def _encode(self, x: Any, layers: list[Any]) -> Any:
        for p in layers:
            q, k, v = self._heads(self._norm(x, p["n1"]), p)
            x = self._after(x, self._f.scaled_dot_product_attention(q, k, v), p, "none")
        return x

    def blocks(self, weights: Any, state: Any, x: Any) -> Step:
        """Blocks of a transformer."""
        del state
        layers, given = [self._layer(p) for p in weights], self.tensor(x)
        return lambda: (self._encode(given, layers), ())

    def vit(self, weights: Any, state: Any, images: Any) -> Step:
        """A vision transformer, on a batch."""
        del state
        torch = self._torch
        layers = [self._layer(p) for p in weights["layers"]]
        cls, pos, norm = (self._tree(weights[name]) for name in ("cls", "pos", "n"))
        patches, head = self._matrix(weights["patch"]), self._matrix(weights["head"])
        given = self.tensor(images)
        n, h, w, c = given.shape
        patch = int((patches.shape[1] / c) ** 0.5)

        def step() -> Any:
            x = given.reshape(n, h // patch, patch, w // patch, patch, c).permute(0, 1, 3, 2, 4, 5)
            x = self._f.linear(x.reshape(n, -1, patch * patch * c), patches)
            x = torch.cat([cls.expand(n, 1, -1), x], 1) + pos
            return self._f.linear(self._norm(self._encode(x, layers)[:, 0], norm), head), ()

        return step

    def _gpt2(self, weights: Any) -> Callable[..., Any]:
        """The logits of tokens after those whose keys and values are in caches, which are updated."""
        layers = [self._layer(p) for p in weights["layers"]]
        wte, wpe, norm = (self._tree(weights[name]) for name in ("wte", "wpe", "n"))

        def logits(tokens: Any, caches: Any = None, position: int = 0, *, last: bool = False) -> Any:
            end = position + tokens.shape[0]
            x = self._f.embedding(tokens, wte) + wpe[position:end]
            for i, p in enumerate(layers):
                q, k, v = self._heads(self._norm(x, p["n1"]), p)
                if caches is not None:
                    keys, values = caches[i]
                    keys[:, position:end], values[:, position:end] = k[0], v[0]
                    k, v = keys[None, :, :end], values[None, :, :end]
                causal = tokens.shape[0] > 1
                mixed = self._f.scaled_dot_product_attention(q, k, v, is_causal=causal)
                x = self._after(x, mixed, p, "tanh")
            x = self._norm(x[-1:] if last else x, norm)
            return self._f.linear(x, wte)

        return logits

    def gpt2_prefill(self, weights: Any, state: Any, tokens: Any) -> Step:
        """The logits of all tokens."""
        del state
        logits, given = self._gpt2(weights), self.tensor(tokens).long()
        return lambda: (logits(given), ())

    def gpt2_step(self, weights: Any, state: Any, token: Any, position: Any) -> Step:
        """The logits after one more token."""
        logits, caches = self._gpt2(weights), self._tree(state)
        given, place = self.tensor(token).long().reshape(1), int(position)
        return lambda: (logits(given, caches, place)[0], caches)

    def gpt2_generate(self, weights: Any, state: Any, tokens: Any, caches: Any) -> Step:
        """The tokens with the highest logits, until the caches are full."""
        del state
        logits, given, memory = self._gpt2(weights), self.tensor(tokens).long(), self._tree(caches)
        total = memory[0][0].shape[1]

        def step() -> Any:
            text = self._torch.zeros(total, dtype=given.dtype)
            n = given.shape[0]
            text[:n] = given
            token = logits(given, memory, last=True)[-1].argmax()
            for position in range(n, total):
                text[position] = token
                token = logits(token.reshape(1), memory, position)[-1].argmax()
            return text, ()

        return step

    # Others ------------------------------------------------------------------------------------------------------

    def lstm(self, weights: Any, state: Any, xs: Any) -> Step:
        """A recurrent layer: its results, and the last state of its cell."""
        del state
        w, u, b = (weights[name] for name in "wub")
        given = self.tensor(xs)
        module = self._torch.nn.LSTM(w.shape[0], u.shape[0]).to(given.dtype)
        with self._torch.no_grad():
            module.weight_ih_l0.copy_(self._matrix(w))
            module.weight_hh_l0.copy_(self._matrix(u))
            module.bias_ih_l0.copy_(self.tensor(b))
            module.bias_hh_l0.zero_()
        module.eval()

        def step() -> Any:
            hs, (_, c) = module(given)
            return (hs, c[0]), ()

        return step

    def argsort(self, weights: Any, state: Any, x: Any) -> Step:
        """The order of each row."""
        del weights, state
        given = self.tensor(x)
        return lambda: (self._torch.argsort(given, dim=-1, stable=True), ())

    def cumsum(self, weights: Any, state: Any, x: Any) -> Step:
        """Sums of prefixes of each row."""
        del weights, state
        given = self.tensor(x)
        return lambda: (self._torch.cumsum(given, -1), ())
