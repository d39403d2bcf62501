"""Calls wait for events and record others."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tlx
from tests.nvidia.emulator import COMPILER, EmulatedDevice
from tests.nvidia.kernels.test_products import matmul
from tests.nvidia.programs import integers, lowered, with_grids
from tlx.api.arguments import ArgumentError
from tlx.api.device.streams import event_handles

SHAPE = 32, 32


@pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")
def test_kernels_run_between_events() -> None:
    text = matmul(*SHAPE, 32, "float", "float")
    emulated = EmulatedDevice(lowered(text))
    module: Any = tlx.compile(text, with_grids(find_device=lambda: emulated))
    x, y, c = integers(SHAPE, np.float32), integers(SHAPE, np.float32, 1), np.zeros(SHAPE, np.float32)
    loaded, done = SimpleNamespace(cuda_event=7), SimpleNamespace(ptr=9)
    module.f(x, y, c, stream=5, wait_for=[loaded, SimpleNamespace(cuda_event=0)], record=(done, 11))
    (code,) = emulated.codes
    assert code.events == ["wait for 7 in 5", "record 9 in 5", "record 11 in 5"]
    assert code.streams == {5}
    np.testing.assert_array_equal(c, x @ y)
    with pytest.raises(ArgumentError, match="record: the event has no handle yet; PyTorch creates it"):
        module.f(x, y, c, record=SimpleNamespace(cuda_event=0))
    with pytest.raises(ArgumentError, match=r"wait_for: expected the driver's handle.*, got str 'now'"):
        module.f(x, y, c, wait_for="now")


def test_handles() -> None:
    assert event_handles(None, "record") == []
    assert event_handles([1, [SimpleNamespace(ptr=2)]], "record") == [1, 2]


@pytest.mark.nvidia
def test_events_order_streams() -> None:
    """The operands are computed in one stream, multiplied in another one, and the result is read in a third one."""
    torch: Any = pytest.importorskip("torch")
    module: Any = tlx.compile(matmul(*SHAPE, 32, "float", "float"), "nvidia")
    x, y = (torch.from_numpy(integers(SHAPE, np.float32, seed)).cuda() for seed in range(2))
    large, a, c = torch.randn(8192, 8192, device="cuda"), torch.zeros(SHAPE, device="cuda"), x.new_zeros(SHAPE)
    producer, consumer, reader = (torch.cuda.Stream() for _ in range(3))
    ready, done = torch.cuda.Event(), torch.cuda.Event()
    done.record()
    captured = module.f.captured(a, y, c)
    torch.cuda.synchronize()
    for call in (partial(module.f, a, y, c), captured):
        a.zero_()
        c.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(producer):
            a.copy_(x + 0 * (large @ large)[0, 0])
            ready.record()
        call(stream=consumer, wait_for=ready, record=done)
        reader.wait_event(done)
        with torch.cuda.stream(reader):
            result = c.clone()
        reader.synchronize()
        torch.testing.assert_close(result, x @ y, rtol=0, atol=0)
