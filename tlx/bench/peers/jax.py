"""XLA on the CPU, through jax: whole models, compiled beforehand."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from tlx.bench.models import JaxOperations, ModelProblem
from tlx.bench.peers.base import Attempt, LibraryPaths, MissingError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.workload import Workload


class Jax:
    """The package, as a peer."""

    name = "jax"

    def __init__(self, package: Any) -> None:
        self._jax = package
        self.version = str(package.__version__)

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """The model, compiled; the result is copied after the last call."""
        if not isinstance(work.problem, ModelProblem):
            return
        jax, build = self._jax, work.problem.build
        bfloat = jax.numpy.bfloat16
        tensors = {
            b.name: jax.numpy.asarray(arrays[b.name].view(bfloat) if b.element.name == "bf16" else arrays[b.name])
            for b in work.buffers
            if not b.output
        }
        begun = perf_counter()

        def model(t: dict[str, Any]) -> Any:
            return build(JaxOperations(jax), t)

        function = jax.jit(model).lower(tensors).compile()
        note = f"compiled in {perf_counter() - begun:.2g} s"
        out = arrays[work.output.name]

        def repeat(count: int) -> None:
            result = None
            for _ in range(count):
                result = function(tensors).block_until_ready()
            if result is not None:
                out[...] = jax.device_get(result).view(out.dtype)

        yield Attempt(repeat, note)


def load(places: LibraryPaths) -> Jax:
    """The package of this Python, for the CPU.

    Raises:
        MissingError: It is not installed.
    """
    del places
    try:
        package = importlib.import_module("jax")
        package.config.update("jax_platforms", "cpu")
        return Jax(package)
    except Exception as error:  # noqa: BLE001 (its libraries may raise anything)
        raise MissingError(f"no package jax: {error}"[:60]) from None
