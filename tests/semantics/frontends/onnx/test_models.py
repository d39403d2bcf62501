"""Whole models with their weights give what onnxruntime gives, on real inputs.

`tools/fetch_models.py` fetches them.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.semantics.frontends.onnx import inputs
from tlx.api.files import user_cache_directory
from tlx.frontends.onnx import InferenceSession

pytestmark = pytest.mark.long
Array = np.ndarray[Any, np.dtype[Any]]


def model(name: str) -> Path:
    folder = Path(os.environ.get("TLX_MODELS") or user_cache_directory() / "models")
    path = folder / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch_models.py")
    return path


def reference(path: Path) -> Any:
    onnxruntime: Any = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def assert_near(results: list[Array], expected: list[Array], tolerance: float = 2e-5) -> None:
    """Compare outputs, relative to their largest element."""
    assert len(results) == len(expected)
    for result, other in zip(results, expected, strict=True):
        assert result.dtype == other.dtype
        assert result.shape == other.shape
        np.testing.assert_allclose(result, other, rtol=1e-4, atol=tolerance * max(1, float(np.abs(other).max())))


def text_of(scores: Array) -> list[int]:
    """The symbols that a network of characters reads: the best of each position, without repetition and blanks."""
    best = scores.reshape(-1, scores.shape[-1]).argmax(axis=1)
    return [int(b) for k, b in enumerate(best) if b and (not k or best[k - 1] != b)]


def square(text: str) -> Array:
    return inputs.picture(text, 416, 416, 28).transpose(2, 0, 1)[None].astype(np.float32)


def test_object_detector() -> None:
    path = model("ddddocr_det")
    session, other = InferenceSession(path), reference(path)
    for word in inputs.WORDS[:3]:
        results, expected = (s.run(None, {"images": square(word)}) for s in (session, other))
        assert_near(results, expected)


def test_object_detector_in_bfloat() -> None:
    """The best box is one of the best, where it was.

    A score is the product of two sigmoids of sums that are rounded to 8 bits in each layer: one that is near .5 moves
    by .03 to .09 with the order of the sums. So the largest errors of the words are averaged.
    """
    path = model("ddddocr_det")
    session, other = InferenceSession(path, precision="bfloat16"), reference(path)
    errors: list[float] = []
    for word in inputs.WORDS:
        boxes, expected = (s.run(None, {"images": square(word)})[0][0] for s in (session, other))
        scores, right = (b[:, 4] * b[:, 5] for b in (boxes, expected))
        errors.append(np.abs(scores - right).max())
        best = scores.argmax()
        assert right[best] > 0.95 * right.max()
        np.testing.assert_allclose(boxes[best, :4], expected[best, :4], atol=0.005 * 416)
    assert np.mean(errors) < 0.03


@pytest.mark.parametrize(("name", "height"), [("ddddocr", 64), ("rapidocr_rec", 48)])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_character_recognition(name: str, height: int, precision: str) -> None:
    path = model(name)
    prepare = inputs.grey if name == "ddddocr" else inputs.normalized
    session, other = InferenceSession(path, precision=precision), reference(path)
    key = session.get_inputs()[0].name
    read: list[tuple[list[int], list[int]]] = []
    for word in inputs.WORDS:
        feed = {key: prepare(inputs.picture(word, height, 256))}
        results, expected = session.run(None, feed), other.run(None, feed)
        if precision == "float32":
            assert_near(results, expected)
        read.append((text_of(results[0]), text_of(expected[0])))
    assert len({tuple(text) for _, text in read}) == len(inputs.WORDS)
    same = sum(text == other_text for text, other_text in read)
    assert same == len(read) if precision == "float32" else same >= len(read) - 1


def test_quantized_character_recognition() -> None:
    path = model("ddddocr_old")
    session, other = InferenceSession(path), reference(path)
    for word in inputs.WORDS[:4]:
        feed = {"input1": inputs.grey(inputs.picture(word, 64, 160))}
        results, expected = session.run(None, feed), other.run(None, feed)
        assert text_of(results[0]) == text_of(expected[0])


def test_text_detector() -> None:
    path = model("rapidocr_det")
    session, other = InferenceSession(path), reference(path)
    for text, shape in (("Hello\nworld", (320, 320)), ("one two three", (160, 480))):
        feed = {"x": inputs.normalized(inputs.picture(text, *shape, 28))}
        results, expected = session.run(None, feed), other.run(None, feed)
        assert_near(results, expected)
        assert expected[0].max() > 0.5  # there is text


def test_text_direction() -> None:
    path = model("rapidocr_cls")
    session, other = InferenceSession(path), reference(path)
    for word in inputs.WORDS:
        for angle in (0, 180):
            feed = {"x": inputs.normalized(inputs.picture(word, 48, 192, angle=angle))}
            assert_near(session.run(None, feed), other.run(None, feed))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_labels_of_files(precision: str) -> None:
    path = model("magika")
    session, other = InferenceSession(path, precision=precision), reference(path)
    labels: list[tuple[int, int]] = []
    for _, row in inputs.files(120):
        results, expected = session.run(None, {"bytes": row}), other.run(None, {"bytes": row})
        if precision == "float32":
            assert_near(results, expected)
        labels.append((int(results[0].argmax()), int(expected[0].argmax())))
    assert len(labels) >= 100
    assert len(set(labels)) >= 10
    same = sum(a == b for a, b in labels)
    assert same == len(labels) if precision == "float32" else same >= 0.98 * len(labels)


def _stateful(name: str, **constants: Any) -> tuple[InferenceSession, Any, Callable[..., Any]]:
    path = model(name)
    session, other = InferenceSession(path, constants=constants), reference(path)

    def run(s: Any, chunk: Array, state: Array) -> list[Array]:
        extra = {} if s is session else constants
        return s.run(None, {"input": chunk, "state": state, **extra})

    return session, other, run


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("silero_vad", {"sr": np.array(16000)}),
        ("silero_vad_16k_op15", {"sr": np.array(16000)}),
        ("silero_vad_op18_ifless", {"sr": np.array(16000)}),
        ("silero_vad_half", {}),
    ],
)
def test_voice_activity(name: str, constants: dict[str, Any]) -> None:
    session, other, run = _stateful(name, **constants)
    samples = inputs.sound(2.0)
    states = [np.zeros((2, 1, 128), np.float32)] * 2
    context = np.zeros((1, 64), np.float32)
    for start in range(0, len(samples) - 512, 512):
        chunk = np.concatenate([context, samples[None, start : start + 512]], 1)
        context = chunk[:, -64:]
        results, expected = run(session, chunk, states[0]), run(other, chunk, states[1])
        assert_near(results, expected, 1e-4)
        states = [results[1], expected[1]]


def test_voice_activity_of_a_sequence() -> None:
    path = model("silero_vad_16k_sequence")
    session, other = InferenceSession(path), reference(path)
    rows = inputs.sound(1.2)[: 576 * 30].reshape(-1, 576)
    feed = {"input": rows, "h": np.zeros((1, 1, 128), np.float32), "c": np.zeros((1, 1, 128), np.float32)}
    assert_near(session.run(None, feed), other.run(None, feed), 1e-4)
