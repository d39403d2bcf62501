"""`tlx bench` on a device: the workloads and their measurement, beside numpy on the emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.nvidia import on_emulator
from tests.nvidia.emulator import COMPILER, EmulatedDevice
from tests.nvidia.programs import with_grids
from tlx.api.device.arrays import OwnedArray
from tlx.bench.devices import workloads
from tlx.bench.devices.command import markdown
from tlx.bench.devices.measure import DeviceBench
from tlx.bench.devices.peers import Call
from tlx.bench.measure import OURS, PEAK
from tlx.bench.report import record
from tlx.tuning.workload import BF16, E4M3, F32, S8, S32, Workload

Numpy = Callable[..., Any]


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def by_columns(a: Any, b: Any) -> Any:
    return a @ b.T


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2])) @ v


def row_sums(x: Any) -> Any:
    return x.sum(1, keepdims=True)


def layer(x: Any, w: Any, bias: Any) -> Any:
    return gelu(x @ w + bias)


def gelu(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * scale + shift


def convolved(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[1:3], (1, 2))[:, ::2, ::2]
    return np.einsum("nyxchw,ohwc->nyxo", windows, w)


def convolved_first(x: Any, w: Any) -> Any:
    return convolved(x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


class NumpyPeer:
    """numpy, as a library on the emulated device; `wrong` is added to its results."""

    name, version = "numpy", "0"

    def __init__(self, compute: Numpy, wrong: float = 0) -> None:
        self._compute, self._wrong = compute, wrong

    def attempts(self, work: Workload, arrays: Mapping[str, OwnedArray]) -> Sequence[Call]:
        inputs = [b.element.widen(np.asarray(arrays[b.name])) for b in work.buffers[:-1]]
        return [lambda: self._compute(*inputs) + self._wrong]

    def mistakes(self, work: Workload, arrays: Mapping[str, OwnedArray], ours: Call, theirs: Call) -> str:
        want = theirs()
        ours()
        got = work.output.element.widen(np.asarray(arrays[work.output.name]))
        largest = np.abs(got - want).max()
        return "" if largest <= 2**-6 * np.abs(want).max() else f"differs by {largest}"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    if COMPILER is None:
        pytest.skip("the emulator needs a C compiler")
    on_emulator.on_emulator(monkeypatch)
    emulated = EmulatedDevice("")

    def measure(work: Workload, *peers: NumpyPeer) -> Any:
        return DeviceBench(with_grids(find_device=lambda: emulated), peers, 1, 0.0).measure(work)

    return measure


ROWS = {work.row: work for work in workloads.of_rows(24, 40) if work.types == "f32"}


@pytest.mark.parametrize(
    ("work", "compute"),
    [
        (workloads.gemm("bf16->bf16", (BF16, BF16), (24, 40, 32)), np.matmul),
        (workloads.gemm("s8", (S8, S32), (24, 40, 32), columns=True), by_columns),
        (workloads.gemm("e4m3->bf16", (E4M3, BF16), (24, 40, 32), columns=True), by_columns),
        (workloads.gemm("f32", (F32, F32), (24, 40, 32), tf32=True), np.matmul),
        (workloads.batch(3, 16), np.matmul),
        (workloads.mlp(24, 40, 32), layer),
        (workloads.attention(32, 16, 32), attention),
        (workloads.attention(32, 16, 32, exact=True), attention),
        (workloads.convolution(8, 16, 6, 3, 2, 1), convolved),
        (workloads.convolution(8, 16, 6, 3, 2, 1, channels_last=False), convolved_first),
        (ROWS["add"], np.add),
        (ROWS["softmax"], softmax),
        (ROWS["layernorm"], layer_norm),
        (ROWS["rowsum"], row_sums),
    ],
    ids=lambda item: item.name if isinstance(item, Workload) else "",
)
def test_workloads(measured: Callable[..., Any], work: Workload, compute: Numpy) -> None:
    cell = measured(work, NumpyPeer(compute))
    assert not cell.error
    assert {OURS, "numpy"} <= set(cell.rates)
    assert (PEAK in cell.rates) == (work.unit == "GB/s")


def test_a_wrong_result_is_an_error(measured: Callable[..., Any]) -> None:
    cell = measured(ROWS["add"], NumpyPeer(np.add, wrong=1))
    assert cell.error.startswith("differs by")
    assert OURS not in cell.rates


def test_without_peers(measured: Callable[..., Any]) -> None:
    cell = measured(ROWS["softmax"])
    assert cell.notes == {OURS: "not compared with another result"}
    facts: dict[str, Any] = {"machine": "an emulator", "target": "nvidia", "llvm": "22", "date": "today", "peers": {}}
    table = markdown({**facts, "cells": [record(cell)]})
    assert "| f32 | 24x40 |" in table


def test_attention_is_reassociated_unless_exact() -> None:
    assert "fdiv reassoc" in workloads.attention(32, 16, 32).text()
    assert "reassoc" not in workloads.attention(32, 16, 32, exact=True).text()


def test_names_are_unique() -> None:
    names = [work.name for work in workloads.device_workloads()]
    assert len(names) == len(set(names))
