"""The kernels of examples/tensor_language compute what numpy computes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Final

import pytest

FOLDER: Final = Path(__file__).parents[4] / "examples" / "tensor_language"


def _module() -> Any:
    spec = importlib.util.spec_from_file_location("tensor_language_examples", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN: Final = _module()


@pytest.mark.parametrize("name", RUN.EXAMPLES)
def test_example(name: str) -> None:
    run, bound = RUN.EXAMPLES[name]
    error, _seconds = run()
    assert error <= bound


def test_every_kernel_is_run() -> None:
    assert set(RUN.EXAMPLES) == {path.name for path in FOLDER.glob("*.tl")}
