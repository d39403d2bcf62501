"""The test cases of operators that come with the package onnx, and how TLX does in them."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from tlx.frontends.onnx.model import ModelError
from tlx.frontends.onnx.session import InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]
_FOLDER: Final = Path(__file__).parent / "Inputs"
# Half and bfloat are computed with a rounding in each operation, in an order that the reference does not prescribe.
_TOLERANCES: Final = {"float16": 4e-3, "bfloat16": 4e-2}


@functools.cache
def node_cases() -> dict[str, Any]:
    """The cases by name; those of other domains, and of sequences, are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases: list[Any] = collect_testcases(None)
    return {
        case.name.removeprefix("test_"): case
        for case in cases
        if {entry.domain for entry in case.model.opset_import} <= {"", "ai.onnx"}
        and not any(isinstance(x, list) for data in case.data_sets[0] for x in data)
    }


@functools.cache
def unsupported() -> frozenset[str]:
    """Names of the cases that use something that is not supported."""
    return frozenset((_FOLDER / "unsupported_cases.txt").read_text(encoding="utf-8").split())


def run_case(case: Any, *, evaluated: bool = False) -> None:
    """Compare the results of a case, as machine code or by the evaluator, with what it expects.

    Raises:
        TlxError: It uses something that is not supported.
    """
    inputs, outputs = case.data_sets[0]
    names = [i.name for i in case.model.graph.input]
    feeds = {name: _array(array) for name, array in zip(names, inputs, strict=True)}
    # Numbers that decide shapes are inputs in these cases; in models they are constants.
    try:
        results = _results(InferenceSession(case.model.SerializeToString(), lazy=True), feeds, evaluated)
    except ModelError as error:
        constants = {name: array for name, array in feeds.items() if array.ndim < 2}
        if "depends on the inputs" not in error.message or not constants:
            raise
        others = {name: array for name, array in feeds.items() if name not in constants}
        session = InferenceSession(case.model.SerializeToString(), constants=constants, lazy=True)
        results = _results(session, others, evaluated)
    for result, expected in zip(results, outputs, strict=True):
        check(result, _array(expected), case.rtol, case.atol)


def _results(session: InferenceSession, feeds: dict[str, Array], evaluated: bool) -> list[Array]:
    if not evaluated:
        return session.run(None, feeds)
    translated = session.translate([feeds[i.name].shape for i in session.get_inputs()])
    made = () if translated.is_constant else translated.graph.evaluate(*(feeds[name] for name in translated.inputs))
    computed = iter(cast("tuple[Array, ...]", made) if isinstance(made, tuple) else (made,))
    return [next(computed) if known is None else known for known in translated.outputs]


def _array(tensor: Any) -> Array:
    if hasattr(tensor, "data_type"):
        import onnx

        return onnx.numpy_helper.to_array(tensor)
    return np.asarray(tensor)


def check(result: Array, expected: Array, relative: float = 1e-3, absolute: float = 1e-7) -> None:
    """Compare two arrays: type, shape, elements."""
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected)
        return
    bound = max(relative, _TOLERANCES.get(result.dtype.name, 0))
    np.testing.assert_allclose(
        result.astype(np.float64), expected.astype(np.float64), rtol=bound, atol=max(absolute, bound / 100)
    )
