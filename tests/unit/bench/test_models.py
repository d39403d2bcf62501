"""Whole models as workloads: every contestant computes what numpy does."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tlx.api.compiler import compile as compile_module
from tlx.bench import models, workloads
from tlx.diagnostics import UsageError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning import timing
from tlx.tuning.workload import Workload

SMALL = workloads.select_workloads(["models"], [], ["small"], [])


def names(work: Workload) -> str:
    return work.name


def mistakes(work: Workload, arrays: dict[str, Array]) -> str:
    assert work.expected is not None
    return work.expected(arrays).mistakes(work.output.element, arrays[work.output.name])


def test_every_model_has_a_small_size_in_both_types() -> None:
    rows = {work.row for work in models.model_workloads()}
    assert {(work.row, work.types) for work in SMALL} == {(row, types) for row in rows for types in ("f32", "bf16")}


def test_models_are_measured_only_when_they_are_named() -> None:
    rows = {work.row for work in models.model_workloads()}
    assert not rows & {work.row for work in workloads.select_workloads([], [], [], [])}
    assert [work.row for work in workloads.select_workloads(["gpt"], ["f32"], ["small"], [])] == ["gpt"]
    with pytest.raises(UsageError, match="unknown row 'model'"):
        workloads.select_workloads(["model"], [], [], [])


@pytest.mark.parametrize("work", SMALL, ids=names)
def test_the_compiled_model_is_numpys(work: Workload) -> None:
    arrays = work.arrays()
    compiled = compile_module(work.text(), entry=work.function)
    compiled.entry.unchecked(*(address for _, address in work.arguments(arrays)))
    assert not mistakes(work, arrays)
    arrays[work.output.name][0] = 0
    assert "row 0 is off" in mistakes(work, arrays)


@pytest.mark.parametrize("work", SMALL, ids=names)
def test_jax_computes_the_same(work: Workload) -> None:
    pytest.importorskip("jax")
    from tlx.bench.peers import jax
    from tlx.bench.peers.base import LibraryPaths

    arrays = work.arrays()
    (attempt,) = jax.load(LibraryPaths(())).attempts(work, arrays)
    attempt.repeat(2)
    assert not mistakes(work, arrays)


class TorchStandIn:
    """The functions of PyTorch that models use, in numpy."""

    class nn:  # noqa: N801
        """As torch.nn."""

        class functional:  # noqa: N801
            """As torch.nn.functional."""

            @staticmethod
            def gelu(x: Any, approximate: str) -> Any:
                """By tanh."""
                assert approximate == "tanh"
                return Tensor(models.NumpyOperations().gelu(x))

            @staticmethod
            def layer_norm(x: Any, shape: tuple[int, ...], scale: Any, shift: Any, epsilon: float) -> Any:
                """Of the last dimension."""
                assert shape == x.shape[-1:]
                assert epsilon == 1e-5
                return Tensor(models.NumpyOperations().layer_norm(x, scale, shift))

    bool = np.bool_

    @staticmethod
    def relu(x: Any) -> Any:
        """As torch.relu."""
        return Tensor(np.maximum(x, 0))

    @staticmethod
    def softmax(x: Any, axis: int) -> Any:
        """As torch.softmax."""
        assert axis == -1
        return Tensor(models.NumpyOperations().softmax(x))

    @staticmethod
    def ones(shape: tuple[int, ...], dtype: Any) -> Any:
        """As torch.ones."""
        return Tensor(np.ones(shape, dtype))


def Tensor(array: Array) -> Any:  # noqa: N802
    """An array with the methods of torch.Tensor that models use."""
    return array.view(_Tensor)


class _Tensor(np.ndarray[Any, np.dtype[Any]]):
    def permute(self, *order: int) -> Any:
        return self.transpose(order)

    def triu(self, diagonal: int) -> Any:
        return Tensor(np.triu(np.asarray(self), diagonal))

    def masked_fill(self, mask: Any, value: float) -> Any:
        return Tensor(np.where(mask, value, self))


@pytest.mark.parametrize("work", [work for work in SMALL if work.types == "f32"], ids=names)
def test_torchs_model_has_the_same_structure(work: Workload) -> None:
    arrays = work.arrays()
    tensors = {name: Tensor(array.astype("f8")) for name, array in arrays.items()}
    arrays[work.output.name][...] = work.problem.build(models.TorchOperations(TorchStandIn()), tensors)
    assert not mistakes(work, arrays)


def test_the_clock_of_models_sees_a_librarys_own_thread() -> None:
    def work(count: int) -> None:
        thread = threading.Thread(target=lambda: sum(range(200_000 * count)))
        thread.start()
        thread.join()

    try:
        timing.use_clock(1, counts_workers=True)
        counted = timing.seconds(work, times=1)
        timing.use_clock(1)
        assert timing.seconds(work, times=1) < counted / 2
    finally:
        timing.use_clock(1)
