"""TLX and other libraries, each with a model that is ready to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np

import tlx
from tlx.api.files import user_cache_directory
from tlx.bench.measure import OURS
from tlx.bench.models.workloads import JaxProgram, ModelWorkload, OnnxFile
from tlx.bench.peers.base import MissingError
from tlx.intrinsics.numpy_types import Array


@dataclass(frozen=True)
class RunnableModel:
    """A model in a library, ready to run.

    Attributes:
        call: Runs the model once, to the end, and returns its results.
        arrays: The results as arrays.
        compile_seconds: Wall-clock seconds for compiling or loading it; None if the library does neither.
        compiles_in_first_call: Whether the first call compiles, too.
    """

    call: Callable[[], Any]
    arrays: Callable[[Any], list[Array]]
    compile_seconds: float | None = None
    compiles_in_first_call: bool = False

    def repeat(self, count: int) -> None:
        """Run the model a number of times."""
        for _ in range(count):
            self.call()


@dataclass(frozen=True)
class Library:
    """A library that runs models.

    Attributes:
        name: Its name in the table.
        package: The package whose version is reported.
        load: Makes a runnable model of a model in JAX, or of a file; None if the library does not run it.
    """

    name: str
    package: str
    load: Callable[[ModelWorkload, JaxProgram | Path, int, str], RunnableModel | None]

    @property
    def version(self) -> str:
        """Version of the package.

        Raises:
            MissingError: It is not installed, or its libraries do not load.
        """
        try:
            return str(import_module(self.package).__version__)
        except Exception as error:  # noqa: BLE001 (its libraries may raise anything)
            raise MissingError(f"no package {self.package}: {error}"[:80]) from None


def model_file(file: OnnxFile) -> Path:
    """The file of a model, in the folder `TLX_MODELS`, or in `tlx/models` of the user's cache.

    Raises:
        MissingError: It is not there.
    """
    folder = Path(os.environ.get("TLX_MODELS") or user_cache_directory() / "models")
    path = folder / f"{file.name}.onnx"
    if not path.is_file():
        raise MissingError(f"{path} is missing: run tools/fetch_models.py")
    return path


def use_jax() -> Any:
    """JAX, for the processor.

    Raises:
        MissingError: It is not installed.
    """
    try:
        jax = import_module("jax")
    except ImportError as error:
        raise MissingError(f"no package jax: {error}"[:80]) from None
    jax.config.update("jax_platforms", "cpu")
    return jax


def _numpy_leaves(tree: Any) -> list[Array]:
    return [np.array(leaf) for leaf in use_jax().tree.leaves(tree)]


def _copies(tree: Any) -> Any:
    return use_jax().tree.map(np.array, tree)


def _ours(model: ModelWorkload, source: JaxProgram | Path, threads: int, target: str) -> RunnableModel:
    settings: dict[str, Any] = {"target": target}
    if threads > 1:
        settings["threads"] = "openmp"
    if isinstance(source, Path):
        assert isinstance(model.origin, OnnxFile)
        feed = model.origin.arrays()
        precision = "bfloat16" if model.types == "bf16" else "float32"
        begun = perf_counter()
        shapes = {name: array.shape for name, array in feed.items()}
        session = tlx.onnx.InferenceSession(source, shapes=shapes, precision=precision, **settings)
        return RunnableModel(lambda: session.run(None, feed), list, perf_counter() - begun)
    if model.types == "bf16":
        settings["bf16_intermediates"] = "float"
    jax = use_jax()
    jax.clear_caches()
    weights = jax.tree.map(jax.numpy.asarray, source.weights)
    run = source.run

    def function(state: Any, *inputs: Any) -> Any:
        return run(weights, state, *inputs)

    jitted = tlx.jax.jit(function, donate_argnums=0, **settings)
    return RunnableModel(_stateful(jitted, _copies(source.state), source.inputs), _numpy_leaves, 0.0, True)


def _stateful(function: Callable[..., Any], state: Any, inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """Calls with the state that the call before has returned."""
    held = [state]

    def call() -> Any:
        results = function(held[0], *inputs)
        held[0] = results[1]
        return results

    return call


def _xla(model: ModelWorkload, source: JaxProgram | Path, threads: int, target: str) -> RunnableModel | None:
    del model, threads, target
    if isinstance(source, Path):
        return None
    jax = use_jax()
    jax.clear_caches()  # of the same program, compiled for the comparison
    weights, state, inputs = jax.device_put((source.weights, source.state, source.inputs))
    begun = perf_counter()
    compiled = jax.jit(source.run, donate_argnums=1).lower(weights, state, *inputs).compile()
    seconds = perf_counter() - begun

    def function(state: Any, *inputs: Any) -> Any:
        return jax.block_until_ready(compiled(weights, state, *inputs))

    return RunnableModel(_stateful(function, state, inputs), _numpy_leaves, seconds)


def _torch(model: ModelWorkload, source: JaxProgram | Path, threads: int, target: str) -> RunnableModel | None:
    del target
    if isinstance(source, Path):
        return None
    from tlx.bench.models.torch_programs import TorchModels

    torch = import_module("torch")
    torch.set_num_threads(threads)
    models = TorchModels(torch)
    step = models.steps[model.row](source.weights, source.state, *source.inputs)
    guard = nullcontext if model.is_trained else torch.inference_mode

    def call() -> Any:
        with guard():
            return step()

    return RunnableModel(call, lambda results: [models.array(leaf) for leaf in use_jax().tree.leaves(results)])


def _onnxruntime(model: ModelWorkload, source: JaxProgram | Path, threads: int, target: str) -> RunnableModel | None:
    del target
    if not isinstance(source, Path):
        return None
    assert isinstance(model.origin, OnnxFile)
    feed = model.origin.arrays()
    runtime = import_module("onnxruntime")
    begun = perf_counter()
    session = onnx_reference(runtime, source, threads)
    return RunnableModel(lambda: session.run(None, feed), list, perf_counter() - begun)


def onnx_reference(runtime: Any, path: Path, threads: int) -> Any:
    """A session of onnxruntime."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


OURSELVES: Final = Library(OURS, "tlx", _ours)
LIBRARIES: Final[Mapping[str, Library]] = {
    library.name: library
    for library in (
        Library("jax", "jax", _xla),
        Library("torch", "torch", _torch),
        Library("onnxruntime", "onnxruntime", _onnxruntime),
    )
}
