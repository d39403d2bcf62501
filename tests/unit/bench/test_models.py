"""`tlx bench models`: every library computes what the origin does, and what is printed, written, read and drawn."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.support.tools import require_module
from tests.unit.bench.torch_stand_in import Torch
from tlx.bench import command, report
from tlx.bench.models import tables
from tlx.bench.models.libraries import LIBRARIES, Library, RunnableModel
from tlx.bench.models.measure import ModelBench
from tlx.bench.models.workloads import SMALL, ModelWorkload, OnnxFile, all_models, select_models
from tlx.diagnostics import UsageError
from tlx.tuning import timing

pytestmark = pytest.mark.usefixtures("short_samples")

jax: Any = require_module("jax")
MODELS: Final = select_models([], [], [SMALL])
BFLOAT: Final = ("mlp", "mlp_train", "gpt2_generate")


def model_name(model: ModelWorkload) -> str:
    return model.name


def measured(model: ModelWorkload, *libraries: Library) -> dict[str, Any]:
    return tables.record(ModelBench("native", libraries, rounds=1, seconds=0.0).measure(model))


def test_every_program_has_a_small_size() -> None:
    programs = {(m.row, m.types) for m in all_models() if not isinstance(m.origin, OnnxFile)}
    assert {(m.row, m.types) for m in MODELS} == programs
    assert all(m.size != SMALL for m in select_models([], [], []))


@pytest.mark.parametrize("model", [m for m in MODELS if m.types == "bf16" and m.row in BFLOAT], ids=model_name)
def test_models_in_bfloat_compute_what_xla_does(model: ModelWorkload) -> None:
    cell = measured(model, LIBRARIES["jax"])
    assert (cell["error"], cell["notes"]) == ("", {})
    assert set(cell["ms"]) == {"tlx", "jax"}


@pytest.mark.parametrize("model", [m for m in MODELS if m.types == "f32"], ids=model_name)
def test_models_compute_what_xla_does_and_torch_too(model: ModelWorkload, monkeypatch: pytest.MonkeyPatch) -> None:
    gradients: list[Any] = []
    if model.is_trained:
        program = model.program()
        new = program.run(program.weights, program.state, *program.inputs)[1]
        rate = 0.1 if model.row == "mlp_train" else 0.5

        def gradient(old: Any, new: Any) -> Any:
            return (np.asarray(old) - np.asarray(new)) / rate

        steps = jax.tree.map(gradient, program.state, new)
        by_name = isinstance(program.state, dict)
        gradients = [steps[name] for name in program.state] if by_name else jax.tree.leaves(steps)
        model = replace(model, origin=lambda: program)
    monkeypatch.setitem(sys.modules, "torch", Torch(gradients))  # type: ignore[arg-type]
    cell = measured(model, LIBRARIES["jax"], LIBRARIES["torch"])
    assert (cell["error"], cell["notes"]) == ("", {})
    assert set(cell["ms"]) == set(cell["memory"]) == {"tlx", "jax", "torch"}
    assert set(cell["compile_seconds"]) == {"tlx", "jax"}
    assert cell["compile_seconds"]["tlx"] > 0.01
    assert cell["compile_seconds"]["jax"] > 0.001


def test_wrong_results_and_failures_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(model: ModelWorkload, *_: Any) -> RunnableModel:
        shape = (12,) if model.row == "gpt2_generate" else (6, 4)
        return RunnableModel(lambda: None, lambda _: [np.zeros(shape, "f4")])

    def broken(model: ModelWorkload, *_: Any) -> RunnableModel:
        raise RuntimeError(f"{model.row} does not load")

    mlp, text = (select_models([row], ["f32"], [SMALL])[0] for row in ("mlp", "gpt2_generate"))
    cell = measured(mlp, Library("wrong", "numpy", zeros), Library("broken", "numpy", broken))
    assert "result 0 is off by 1 of its norm" in cell["notes"]["wrong"]
    assert cell["notes"]["broken"] == "RuntimeError: mlp does not load"
    assert set(cell["ms"]) == {"tlx"}
    monkeypatch.setattr("tlx.bench.models.measure.OURSELVES", Library("tlx", "numpy", zeros))
    cell = measured(text)
    assert cell["error"] == "wrong result: the text does not begin with the prompt"


def test_onnx_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx, _ = require_module("onnx"), require_module("onnxruntime")
    helper: Any = onnx.helper
    value = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", value[:1], value[1:])
    monkeypatch.setenv("TLX_MODELS", str(tmp_path))
    model = ModelWorkload("relu", "f32", "2x3", OnnxFile("relu", {"x": ((2, 3), "real")}))
    missing = measured(model, LIBRARIES["onnxruntime"])
    assert "relu.onnx is missing: run tools/fetch_models.py" in missing["notes"]["model"]
    assert not missing["error"]
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, str(tmp_path / "relu.onnx"))
    cell = measured(model, *LIBRARIES.values())
    assert (cell["error"], cell["notes"]) == ("", {})
    assert set(cell["ms"]) == {"tlx", "onnxruntime"}


# Reports ---------------------------------------------------------------------------------------------------------


def made(row: str, types: str, ours: float, **others: float) -> dict[str, Any]:
    times = {"tlx": ours, **others}
    return {
        "row": row,
        "types": types,
        "size": "batch 1",
        "variant": "",
        "ms": {name: {"median": ms, "best": ms, "spread": 0.1} for name, ms in times.items()},
        "rounds": 3,
        "to_peers": {name: ms / ours for name, ms in others.items()},
        "compile_seconds": {"tlx": 2.5},
        "memory": {"tlx": 12.0},
        "notes": {},
        "error": "",
    }


REPORT: Final[dict[str, Any]] = {
    "machine": "a machine",
    "cpu": "1",
    "threads": 1,
    "target": "generic",
    "date": "2026-11-28",
    "peers": {"jax": "1", "torch": "2"},
    "models": [made("vit", "f32", 10, jax=20, torch=5), made("vit", "bf16", 4, jax=40), made("mlp", "f32", 1, jax=2)],
}


def test_terminal_table() -> None:
    lines = list(tables.terminal_table(REPORT))
    assert [" ".join(line.split()) for line in lines[2:5]] == [
        "vit f32 batch 1 10 20 5 0.50 2.5 12 - -",
        "vit bf16 batch 1 4 40 - 10.00 2.5 12 - -",
        "mlp f32 batch 1 1 2 - 2.00 2.5 12 - -",
    ]
    assert "speed, f32, times jax's: 2.00 (geometric mean of 2; faster in 2)" in lines
    assert "speed, f32, times the fastest's: 1.00 (geometric mean of 2; faster in 1)" in lines


def test_a_report_is_read_selected_and_drawn(tmp_path: Path) -> None:
    require_module("matplotlib")
    parts = [{**REPORT, "models": REPORT["models"][:2]}, {**REPORT, "models": REPORT["models"][2:]}]
    for number, part in enumerate(parts):
        report.write(str(tmp_path / f"{number}.json"), part)
    plot, markdown, merged = (str(tmp_path / name) for name in ("plot.svg", "table.md", "merged.txt"))
    setting = command.BenchSettings(sources=(str(tmp_path),), plot=plot, markdown=markdown, report=merged)
    printed: list[str] = []
    assert command.run(command.WorkloadSelection(("models",)), setting, printed.append)
    assert printed == list(tables.terminal_table(REPORT))
    assert tables.read([merged]) == REPORT
    assert "| vit | f32 | batch 1 | 10 | 20 | 5 | 2.00 | 0.50 | 2.5 |" in Path(markdown).read_text(encoding="utf-8")
    assert "<svg" in Path(plot).read_text(encoding="utf-8")
    command.run(command.WorkloadSelection(("models", "vit"), ("bf16",)), replace(setting, plot=None), printed.append)
    assert len(tables.read([merged])["models"]) == 1


def test_a_run_is_listed_measured_and_written(tmp_path: Path) -> None:
    choice = command.WorkloadSelection(("models", "mlp"), ("f32",), (SMALL,))
    printed: list[str] = []
    command.show(choice, printed.append)
    assert printed == ["mlp f32 small"]
    path = str(tmp_path / "report.json")
    assert command.run(choice, command.BenchSettings(peers=("jax",), rounds=1, report=path), printed.append)
    (cell,) = tables.read([path])["models"]
    assert (cell["row"], cell["error"]) == ("mlp", "")
    assert any(line.startswith("mlp f32 small: tlx ") for line in printed)


@pytest.mark.parametrize(
    ("choice", "setting", "message"),
    [
        (command.WorkloadSelection(("models", "resnet5")), {}, "unknown model 'resnet5'; did you mean 'resnet50'?"),
        (command.WorkloadSelection(("models", "mlp"), sizes=("big",)), {}, "unknown size 'big'"),
        (command.WorkloadSelection(("models",), variants=("x",)), {}, "models have no variants"),
        (command.WorkloadSelection(("models", "mlp")), {"peers": ("mkl",)}, "unknown library 'mkl'"),
        (command.WorkloadSelection(("models",)), {"sources": ("nowhere.json",)}, "could not open input file"),
    ],
)
def test_errors(choice: command.WorkloadSelection, setting: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        command.run(choice, command.BenchSettings(**setting), print)
    assert message in caught.value.message


def test_a_report_of_workloads_is_none_of_models(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"cells": [], "lanes": 16}', encoding="utf-8")
    with pytest.raises(UsageError, match="is not a report written by 'tlx bench models --json'"):
        tables.read([str(path)])


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
