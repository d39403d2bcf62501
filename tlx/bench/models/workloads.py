"""The table of models: programs of JAX and ONNX files, with their sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import numpy as np

from tlx.diagnostics import UsageError, did_you_mean
from tlx.intrinsics.numpy_types import Array

TYPES: Final = ("f32", "bf16")
_TRAINED: Final = "_train"
_MARGIN: Final = 14


@dataclass(frozen=True)
class JaxProgram:
    """A model in JAX with its arguments.

    Attributes:
        run: Takes weights, state and inputs; returns outputs and the next state.
        weights: Arrays that never change.
        state: Arrays that each call replaces: a cache, or the parameters that are trained.
        inputs: The other arguments.
    """

    run: Callable[..., tuple[Any, Any]]
    weights: Any
    state: Any
    inputs: tuple[Any, ...]


@dataclass(frozen=True)
class OnnxFile:
    """A model in a file, with its inputs.

    Attributes:
        name: Name of the file, without its suffix.
        inputs: Shape and kind of each input by name: `real`, `zero`, `byte`, or `page` for images of text.
    """

    name: str
    inputs: Mapping[str, tuple[tuple[int, ...], str]]

    def arrays(self) -> dict[str, Array]:
        """Random inputs by name."""
        rng = np.random.default_rng(0)
        made: dict[str, Array] = {}
        for name, (shape, kind) in self.inputs.items():
            match kind:
                case "byte":
                    made[name] = rng.integers(0, 256, shape).astype(np.int32)
                case "zero":
                    made[name] = np.zeros(shape, np.float32)
                case "page":
                    made[name] = _page(shape, rng)
                case _:
                    made[name] = rng.uniform(-1, 1, shape).astype(np.float32)
        return made


def _page(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """White images, 1, with lines of random glyphs in black, -1: a detector of text finds nothing in noise."""
    rows, columns = shape[-2:]
    ink = np.zeros((rows, columns), np.float32)
    for top in range(_MARGIN, rows - 20, 40):
        for left in range(_MARGIN, columns - 9, 14):
            ink[top : top + 20, left : left + 9] = np.kron(rng.random((5, 3)) < 0.6, np.ones((4, 3)))
    return np.broadcast_to(1 - 2 * ink, shape).copy()


@dataclass(frozen=True)
class ModelWorkload:
    """A model of one size in one type.

    Attributes:
        row: Its name.
        types: `f32` or `bf16`.
        size: The size's name.
        origin: The file, or what makes the program in float.
        checks: How its result is compared: `near` in norm, `exact`, or `text`, the tokens of greedy generation.
    """

    row: str
    types: str
    size: str
    origin: OnnxFile | Callable[[], JaxProgram] = field(repr=False)
    checks: str = "near"

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{self.row} {self.types} {self.size}"

    @property
    def is_trained(self) -> bool:
        """Whether it is a step of training."""
        return self.row.endswith(_TRAINED)

    def program(self) -> JaxProgram:
        """The program, with floats of its type.

        Raises:
            UsageError: JAX is missing.
        """
        assert not isinstance(self.origin, OnnxFile)
        made = self.origin()
        return made if self.types == "f32" else converted(made, "bfloat16")


def converted(program: JaxProgram, dtype: str) -> JaxProgram:
    """A program with floats of another type."""
    jax = programs().jax

    def convert(x: Any) -> Any:
        return np.asarray(x).astype(jax.numpy.dtype(dtype)) if jax.numpy.issubdtype(x.dtype, jax.numpy.floating) else x

    trees = (program.weights, program.state, program.inputs)
    return JaxProgram(program.run, *(jax.tree.map(convert, tree) for tree in trees))


def programs() -> Any:
    """The module of the programs.

    Raises:
        UsageError: JAX is missing.
    """
    try:
        return import_module("tlx.bench.models.programs")
    except ImportError as error:
        raise UsageError(f"models are programs of JAX ({error}): pip install 'tlx-ir[jax]'") from None


# The table -------------------------------------------------------------------------------------------------------

_ONNX: Final[dict[tuple[str, str], OnnxFile]] = {
    ("ddddocr_det", "1x3x416x416"): OnnxFile("ddddocr_det", {"images": ((1, 3, 416, 416), "page")}),
    ("ddddocr", "1x1x64x256"): OnnxFile("ddddocr", {"input1": ((1, 1, 64, 256), "real")}),
    ("rapidocr_det", "1x3x320x320"): OnnxFile("rapidocr_det", {"x": ((1, 3, 320, 320), "page")}),
    ("rapidocr_rec", "1x3x48x320"): OnnxFile("rapidocr_rec", {"x": ((1, 3, 48, 320), "real")}),
    ("rapidocr_rec", "32x3x48x320"): OnnxFile("rapidocr_rec", {"x": ((32, 3, 48, 320), "real")}),
    ("rapidocr_cls", "1x3x48x192"): OnnxFile("rapidocr_cls", {"x": ((1, 3, 48, 192), "real")}),
    ("rapidocr_cls", "32x3x48x192"): OnnxFile("rapidocr_cls", {"x": ((32, 3, 48, 192), "real")}),
    ("magika", "1x2048"): OnnxFile("magika", {"bytes": ((1, 2048), "byte")}),
    ("magika", "32x2048"): OnnxFile("magika", {"bytes": ((32, 2048), "byte")}),
    ("silero_vad", "30x576"): OnnxFile(
        "silero_vad_16k_sequence",
        {"input": ((30, 576), "real"), "h": ((1, 1, 128), "zero"), "c": ((1, 1, 128), "zero")},
    ),
}


def _forward(function: str, arguments: Callable[[Any], tuple[Any, ...]]) -> Callable[[], JaxProgram]:
    """A function of weights and inputs; without weights, of inputs alone."""

    def make() -> JaxProgram:
        p = programs()
        call: Callable[..., Any] = getattr(p, function)
        weights, *inputs = arguments(p)

        def run(weights: Any, state: Any, *inputs: Any) -> tuple[Any, Any]:
            return call(*(() if weights is None else (weights,)), *inputs), state

        return JaxProgram(run, weights, (), tuple(inputs))

    return make


def _training(function: str, arguments: Callable[[Any], tuple[Any, ...]]) -> Callable[[], JaxProgram]:
    """A step that returns new parameters and the loss."""

    def make() -> JaxProgram:
        p = programs()
        call: Callable[..., Any] = getattr(p, function)
        parameters, *inputs = arguments(p)

        def run(weights: Any, state: Any, *inputs: Any) -> tuple[Any, Any]:
            del weights
            new, loss = call(state, *inputs)
            return loss, new

        return JaxProgram(run, (), parameters, tuple(inputs))

    return make


def _gpt2_step(position: int, **sizes: int) -> Callable[[], JaxProgram]:
    def make() -> JaxProgram:
        p = programs()
        weights = p.gpt2_parameters(**sizes)

        def run(weights: Any, state: Any, token: Any, position: Any) -> tuple[Any, Any]:
            return p.gpt2_step(weights, token, state, position)

        return JaxProgram(run, weights, p.gpt2_caches(weights), (np.int32(3), np.int32(position)))

    return make


def _generation(prompt: int, **sizes: int) -> Callable[[], JaxProgram]:
    def arguments(p: Any) -> tuple[Any, ...]:
        weights = p.gpt2_parameters(**sizes)
        return weights, np.arange(prompt, dtype="i4"), p.gpt2_caches(weights)

    return _forward("gpt2_generate", arguments)


def _blocks(count: int, width: int, s: int) -> Callable[[], JaxProgram]:
    return _forward(
        "blocks",
        lambda p: (p.gpt2_parameters(width, count, 1, 1)["layers"], p.normal(p.generator(), s, width, scale=1)),
    )


def _prefill(s: int, **sizes: int) -> Callable[[], JaxProgram]:
    return _forward("gpt2_prefill", lambda p: (p.gpt2_parameters(**sizes), np.arange(s, dtype="i4")))


def _mlp(batch: int, *widths: int) -> Callable[[], JaxProgram]:
    return _forward("mlp", lambda p: p.mlp_arguments(widths, batch)[:2])


def _mlp_step(batch: int, *widths: int) -> Callable[[], JaxProgram]:
    return _training("mlp_step", lambda p: p.mlp_arguments(widths, batch))


def _vit(batch: int, *sizes: int) -> Callable[[], JaxProgram]:
    def arguments(p: Any) -> tuple[Any, ...]:
        weights, image = p.vit_arguments(*sizes)
        return weights, p.normal(p.generator(), batch, *image.shape)

    return _forward("vit_batch", arguments)


def _resnet(*sizes: Any) -> Callable[[], JaxProgram]:
    return _forward("resnet_inference", lambda p: p.resnet_arguments(*sizes))


def _autoencoder(*sizes: Any) -> Callable[[], JaxProgram]:
    return _training("autoencoder_step", lambda p: p.autoencoder_arguments(*sizes))


def _lstm(*sizes: int) -> Callable[[], JaxProgram]:
    return _forward("lstm", lambda p: p.lstm_arguments(*sizes))


def _rows(function: str, rows: int, columns: int) -> Callable[[], JaxProgram]:
    return _forward(function, lambda p: (None, p.normal(p.generator(), rows, columns)))


_WHOLE: Final = {"width": 768, "layers": 12, "vocabulary": 50257}
_RESNET: Final = (64, (3, 4, 6, 3), 224)
_VIT: Final = (768, 12, 224, 16, 1000)
SMALL: Final = "small"
_PROGRAMS: Final[dict[tuple[str, str], Callable[[], JaxProgram]]] = {
    ("mlp", SMALL): _mlp(6, 8, 16, 4),
    ("mlp", "64x784-512-256-10"): _mlp(64, 784, 512, 256, 10),
    ("mlp", "256x1024-4096-4096-1024"): _mlp(256, 1024, 4096, 4096, 1024),
    ("mlp_train", SMALL): _mlp_step(6, 8, 16, 4),
    ("mlp_train", "128x784-512-512-10"): _mlp_step(128, 784, 512, 512, 10),
    ("resnet50", SMALL): _resnet(4, (1, 1), 16, 2, 5),
    ("resnet50", "batch 1"): _resnet(*_RESNET, 1, 1000),
    ("resnet50", "batch 32"): _resnet(*_RESNET, 32, 1000),
    ("vit", SMALL): _vit(2, 16, 1, 8, 4, 5),
    ("vit", "batch 1"): _vit(1, *_VIT),
    ("vit", "batch 32"): _vit(32, *_VIT),
    ("blocks", SMALL): _blocks(2, 32, 8),
    ("blocks", "S=1"): _blocks(12, 768, 1),
    ("blocks", "S=16"): _blocks(12, 768, 16),
    ("blocks", "S=128"): _blocks(12, 768, 128),
    ("blocks", "S=512"): _blocks(12, 768, 512),
    ("gpt2_prefill", SMALL): _prefill(6, width=16),
    ("gpt2_prefill", "S=64"): _prefill(64, context=1024, **_WHOLE),
    ("gpt2_step", SMALL): _gpt2_step(4, width=16),
    ("gpt2_step", "64 of 1024"): _gpt2_step(63, context=1024, **_WHOLE),
    ("gpt2_generate", SMALL): _generation(3, width=16),
    ("gpt2_generate", "16 of 32"): _generation(16, context=32, **_WHOLE),
    ("autoencoder_train", SMALL): _autoencoder(),
    ("autoencoder_train", "32x64x64x3"): _autoencoder((3, 32, 64), 64, 32),
    ("lstm", SMALL): _lstm(),
    ("lstm", "64x16x256-512"): _lstm(64, 16, 256, 512),
    ("argsort", SMALL): _rows("argsort", 3, 17),
    ("argsort", "64x4096"): _rows("argsort", 64, 4096),
    ("cumsum", SMALL): _rows("cumsum", 3, 17),
    ("cumsum", "1024x1024"): _rows("cumsum", 1024, 1024),
}
_CHECKS: Final = {"gpt2_generate": "text", "argsort": "exact"}
_ONLY_FLOAT: Final = ("argsort", "cumsum")


def all_models() -> Iterator[ModelWorkload]:
    """Every model, in float and bfloat."""
    for (row, size), origin in (_PROGRAMS | _ONNX).items():
        for types in TYPES[:1] if row in _ONLY_FLOAT else TYPES:
            yield ModelWorkload(row, types, size, origin, _CHECKS.get(row, "near"))


def select_models(rows: Sequence[str], types: Sequence[str], sizes: Sequence[str]) -> list[ModelWorkload]:
    """The models of some rows, types and sizes; none means all, but for the small sizes of the tests.

    Raises:
        UsageError: There is no such row, type or size.
    """
    chosen = list(all_models())
    if not sizes:
        chosen = [model for model in chosen if model.size != SMALL]
    for what, names, of in (("model", rows, _row), ("type", types, _types), ("size", sizes, _size)):
        known = list(dict.fromkeys(map(of, chosen)))
        for name in names:
            if name not in known:
                raise UsageError(f"unknown {what} '{name}'{did_you_mean(name, known)}; choose from {', '.join(known)}")
        chosen = [model for model in chosen if not names or of(model) in names]
    return chosen


def _row(model: ModelWorkload) -> str:
    return model.row


def _types(model: ModelWorkload) -> str:
    return model.types


def _size(model: ModelWorkload) -> str:
    return model.size
