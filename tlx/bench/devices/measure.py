"""Measures a workload on a device: compiles it, checks it, and times it together with a copy and its peers.

All contestants read and write the same memory. Samples are interleaved, and timed by the device's events. Calls are
made from Python, so the launch counts if it takes longer than the kernel. Memory-bound work is compared with a copy of
as many bytes.

A result is compared with that of the first peer, on the device.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tlx.api.compiler import compile as compile_module
from tlx.api.device.arrays import OwnedArray
from tlx.api.device.functions import DeviceFunction
from tlx.bench.devices.peers import Call, DevicePeer
from tlx.bench.devices.workloads import DeviceProblem
from tlx.bench.measure import OURS, PEAK, Cell
from tlx.diagnostics import TlxError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.timing import Rates
from tlx.tuning.workload import MemoryTraffic, Workload, WorkloadBuffer

if TYPE_CHECKING:
    from tlx.target.grid_unit import DeviceCode
    from tlx.target.target import Target

_SAMPLE: Final = 0.01
_WARM_UP: Final = 3
_LEAST_ROUNDS: Final = 3
_DISTINCT: Final = (1 << 22) - 3  # elements after which inputs repeat: a prime, so that no two rows are equal
_HOPELESS: Final = 20  # times our time; slower peers are not worth waiting for


@dataclass(frozen=True)
class DeviceBench:
    """A benchmark run on a device.

    Attributes:
        target: Target that our code is compiled for.
        peers: Libraries to compare with.
        rounds: Number of samples of each figure.
        seconds: Seconds for the samples of a workload, after which there are only as many as a median needs.
    """

    target: Target
    peers: Sequence[DevicePeer]
    rounds: int
    seconds: float

    def measure(self, work: Workload) -> Cell:
        """Check and time a workload."""
        try:
            problem = work.problem
            options: dict[str, Any] = {}
            if isinstance(problem, DeviceProblem):
                options = {"float_products": problem.float_products, "fp8_products": problem.fp8_products}
            function = compile_module(work.text(), self.target, entry=work.function, opt_level=3, **options).entry
            assert isinstance(function, DeviceFunction)
            return self._measured(work, function)
        except TlxError as error:
            return Cell(work, self.target.name, {}, error=error.message)

    def _measured(self, work: Workload, function: DeviceFunction) -> Cell:
        arrays = {b.name: function.on_device(_filled(b, seed)) for seed, b in enumerate(work.buffers)}
        addresses = [arrays[buffer.name].address for buffer in work.buffers]
        code = function.device
        calls: dict[str, Call] = {OURS: lambda: function.unchecked(*addresses)}
        notes: dict[str, str] = {}
        error = ""
        for peer in self.peers:
            attempts = self._attempts(peer, work, arrays, notes)
            if attempts and not error:
                error = peer.mistakes(work, arrays, calls[OURS], attempts[0])
            limit = _HOPELESS * _once(code, calls[OURS])
            times = [_once(code, attempt) for attempt in attempts]
            if times and min(times) > limit:
                notes[peer.name] = f"left out: it takes {min(times):.2g} s"
            elif times:
                calls[peer.name] = attempts[times.index(min(times))]
        if len(calls) == 1:
            notes[OURS] = "not compared with another result"
        if isinstance(work.peak, MemoryTraffic):
            calls[PEAK] = _copy(code, function, work.peak.bytes)
        if error:
            del calls[OURS]
        rates = {name: Rates(tuple(work.operations / s * 1e-9 for s in r)) for name, r in self._times(code, calls)}
        rounds = max((len(r.rounds) for r in rates.values()), default=0)
        return Cell(work, self.target.name, rates, notes=notes, error=error, rounds=rounds)

    def _attempts(
        self, peer: DevicePeer, work: Workload, arrays: Mapping[str, OwnedArray], notes: dict[str, str]
    ) -> list[Call]:
        """The ways that do not fail."""
        usable: list[Call] = []
        try:
            for attempt in peer.attempts(work, arrays):
                attempt()
                usable.append(attempt)
        except Exception as reason:  # noqa: BLE001 (libraries may raise anything)
            if not usable:
                notes[peer.name] = f"{type(reason).__name__}: {str(reason).splitlines()[0][:80]}"
        return usable

    def _times(self, code: DeviceCode, calls: Mapping[str, Call]) -> list[tuple[str, list[float]]]:
        """Seconds of a call in each round, by contestant."""
        counts = {name: max(1, int(_SAMPLE / _once(code, call))) for name, call in calls.items()}
        times: dict[str, list[float]] = {name: [] for name in calls}
        end = time.monotonic() + self.seconds
        for done in range(self.rounds):
            if done >= _LEAST_ROUNDS and time.monotonic() > end:
                break
            for name in random.Random(done).sample(list(calls), len(calls)):
                times[name].append(_seconds(code, calls[name], counts[name]))
        return [(name, sample) for name, sample in times.items() if sample]


def _seconds(code: DeviceCode, call: Call, count: int) -> float:
    def repeated() -> None:
        for _ in range(count):
            call()

    with code.current():
        return max(code.time(repeated) / count, 1e-9)


def _once(code: DeviceCode, call: Call) -> float:
    """Seconds of a call after the first ones."""
    call()
    return _seconds(code, call, _WARM_UP)


def _copy(code: DeviceCode, function: DeviceFunction, size: int) -> Call:
    to, source = (function.empty((size,), np.dtype(np.uint8)) for _ in range(2))
    return lambda: code.copy(to.address, source.address, size, 0)


def _filled(buffer: WorkloadBuffer, seed: int) -> Array:
    """Random elements, or bytes that show what is not written."""
    if buffer.output:
        return np.full(buffer.bytes, 0xFF, np.uint8).view(buffer.element.dtype).reshape(buffer.shape)
    count = buffer.bytes // buffer.element.bytes
    return np.resize(buffer.element.random((min(count, _DISTINCT),), seed), buffer.shape)
