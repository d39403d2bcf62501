"""Whole models with --threads=openmp: one team for a call, loops of few iterations, temporaries of each thread."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.support.tools import require_processor
from tlx.evaluate import Machine
from tlx.evaluate.teams import ThreadTeam
from tlx.graph import Graph, Value
from tlx.ir.parser.module import parse
from tlx.llvm import openmp
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.remarks import Remarks

EVERYTHING: Final = Options(threads="openmp", thread_cycles=0)
COUNTS: Final = (1, 2, 3, 7)


@dataclass(frozen=True)
class Program:
    """A graph, and arrays for its parameters and its result."""

    graph: Graph
    operands: list[Any]

    @property
    def text(self) -> str:
        return self.graph.text()


def transformer(layers: int, rows: int, width: int, heads: int, dtype: Any) -> Program:
    """Blocks of attention and two layers, each behind a normalization."""
    graph, random = Graph("blocks"), np.random.default_rng(5)
    operands: list[Any] = []

    def parameter(*shape: int) -> Value:
        scale = 1 / np.sqrt(shape[0]) if len(shape) > 1 else 0.1
        operands.append((random.standard_normal(shape) * scale).astype(dtype))
        return graph.parameter(f"p{len(operands)}", shape, dtype)

    def split(x: Value) -> Value:
        return x.reshape(rows, heads, width // heads).transpose(1, 0, 2)

    x = parameter(rows, width)
    for _ in range(layers):
        normal = graph.layer_norm(x, parameter(width), parameter(width))
        q, k, v = (split(normal @ parameter(width, width) + parameter(width)) for _ in range(3))
        scores = graph.softmax(q @ k.transpose(0, 2, 1))
        x = x + (scores @ v).transpose(1, 0, 2).reshape(rows, width) @ parameter(width, width)
        normal = graph.layer_norm(x, parameter(width), parameter(width))
        x = x + graph.gelu(normal @ parameter(width, 4 * width) + parameter(4 * width)) @ parameter(4 * width, width)
    graph.output(x, "y")
    return Program(graph, [*operands, np.zeros((rows, width), dtype)])


def perceptron() -> Program:
    """Three layers."""
    graph, random = Graph("mlp"), np.random.default_rng(6)
    shapes = [(16, 64), (64, 96), (96, 48), (48, 10)]
    x, *weights = (graph.parameter(f"p{number}", shape) for number, shape in enumerate(shapes))
    for weight in weights:
        x = graph.relu(x @ weight)
    graph.output(x, "y")
    return Program(graph, [*(random.standard_normal(shape, np.float32) for shape in shapes), np.zeros((16, 10), "f4")])


def attention(heads: int, rows: int, columns: int) -> str:
    """Contract, softmax, contract."""
    graph = Graph("attention")
    q, k, v = (graph.parameter(name, (heads, rows, columns)) for name in "qkv")
    graph.output(graph.softmax(q @ k.transpose(0, 2, 1)) @ v, "y")
    return graph.text()


def convolutions(side: int, channels: int) -> str:
    """A ResNet-like block: two convolutions with a residual connection, then pooling."""
    graph = Graph("net")
    x = graph.parameter("x", (1, channels, side, side))
    first, second = (graph.parameter(name, (channels, channels, 3, 3)) for name in ("w1", "w2"))
    inner = graph.relu(graph.convolution(x, first, padding="same"))
    sums = graph.relu(graph.convolution(inner, second, padding="same") + x)
    graph.output(graph.mean(sums, (2, 3)), "y")
    return graph.text()


def results(text: str, function: str, operands: list[Any], options: Options) -> list[bytes]:
    """The bytes of the result, the last operand, for each number of threads."""
    compiled = getattr(tlx.compile(text, "avx512", options=options), function)
    found: list[bytes] = []
    for threads in COUNTS:
        openmp.set_threads(threads)
        out = np.zeros_like(operands[-1])
        compiled(*operands[:-1], out)
        found.append(out.tobytes())
    return found


MODELS: Final = {
    "blocks bf16": lambda: transformer(2, 12, 32, 2, ml_dtypes.bfloat16),
    "blocks f32": lambda: transformer(2, 12, 32, 2, np.float32),
    "mlp f32": perceptron,
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("cycles", [0, 10_000])
def test_models_give_the_same_bytes(name: str, cycles: int) -> None:
    require_processor("avx512")
    model = MODELS[name]()
    (alone, *_) = results(model.text, model.graph.name, model.operands, Options())
    threaded = results(model.text, model.graph.name, model.operands, replace(EVERYTHING, thread_cycles=cycles))
    assert set(threaded) == {alone}


def test_a_large_block_gives_the_same_bytes() -> None:
    require_processor("avx512")
    model = transformer(1, 128, 768, 12, ml_dtypes.bfloat16)
    (alone, *_) = results(model.text, model.graph.name, model.operands, Options())
    assert set(results(model.text, model.graph.name, model.operands, Options(threads="openmp"))) == {alone}


@pytest.mark.long
def test_twelve_blocks_give_the_same_bytes() -> None:
    require_processor("avx512")
    model = transformer(12, 128, 768, 12, ml_dtypes.bfloat16)
    (alone, *_) = results(model.text, model.graph.name, model.operands, Options())
    assert set(results(model.text, model.graph.name, model.operands, Options(threads="openmp"))) == {alone}


@pytest.mark.parametrize("workspace", ["malloc", "arena"])
def test_loops_of_few_iterations_have_temporaries_of_each_thread(workspace: str) -> None:
    require_processor("avx512")
    text = attention(12, 300, 64)
    options = replace(EVERYTHING, thread_cycles=10_000, workspace=workspace)
    remarks = Remarks()
    lowered = lower_text(text, target="avx512", options=replace(options, remarks=remarks))
    assert any(re.search(r"into one loop of 12 iterations", remark.message) for remark in remarks)
    assert any("threads share 12 iterations" in remark.message for remark in remarks)
    part = lowered[lowered.index("@tlx.nest.attention.part(") :].split("\n}")[0]
    assert "malloc" in part or "tlx.workspace.acquire" in part
    random = np.random.default_rng(1)
    operands = [random.standard_normal((12, 300, 64), np.float32) for _ in range(4)]
    (alone, *_) = results(text, "attention", operands, Options())
    assert set(results(text, "attention", operands, options)) == {alone}


def test_a_team_executes_loops_around_kernels() -> None:
    """Iterations so long that the team runs one after the other."""
    require_processor("avx512")
    text = attention(12, 420, 64)
    lowered = lower_text(text, target="avx512", options=Options(threads="openmp"))
    assert lowered.count("call void @GOMP_parallel(") == 1
    assert "define internal void @tlx.loop.attention.member(" in lowered
    random = np.random.default_rng(4)
    operands = [random.standard_normal((12, 420, 64), np.float32) for _ in range(4)]
    (alone, *_) = results(text, "attention", operands, Options())
    assert set(results(text, "attention", operands, Options(threads="openmp"))) == {alone}


@pytest.mark.parametrize("rows", [128, 512])
def test_a_call_starts_one_team(rows: int) -> None:
    model = transformer(1, rows, 768, 12, np.float32)
    remarks = Remarks()
    lowered = lower_text(model.text, target="avx512", options=Options(threads="openmp", remarks=remarks))
    assert lowered.count("call void @GOMP_parallel(") == 1
    assert any(re.search(r"@blocks: one team of threads runs \d+ kernels", remark.message) for remark in remarks)
    assert lowered.count("call void @tlx.team.barrier(") > 10


@pytest.mark.parametrize("team", [ThreadTeam(1), ThreadTeam(3), ThreadTeam(7, reverse_order=True)])
@pytest.mark.parametrize("target", ["generic", "amx"])
def test_the_evaluator_runs_a_team_through_barriers(team: ThreadTeam, target: str) -> None:
    model = transformer(1, 12, 32, 2, ml_dtypes.bfloat16)
    operands = model.operands
    outputs: list[bytes] = []
    for options, threads in ((Options(), ThreadTeam()), (EVERYTHING, team)):
        module = parse(lower_text(model.text, target=target, options=options))
        arguments = [*operands[:-1], np.zeros_like(operands[-1])]
        Machine(module, team=threads).call(model.graph.name, *arguments)
        outputs.append(arguments[-1].tobytes())
    assert outputs[0] == outputs[1]


def test_convolutions_give_the_same_bytes() -> None:
    require_processor("avx512")
    text = convolutions(20, 32)
    random = np.random.default_rng(2)
    shapes = [(1, 32, 20, 20), (32, 32, 3, 3), (32, 32, 3, 3), (1, 32)]
    operands = [random.standard_normal(shape, np.float32) for shape in shapes]
    (alone, *_) = results(text, "net", operands, Options())
    for cycles in (0, 10_000):
        assert set(results(text, "net", operands, replace(EVERYTHING, thread_cycles=cycles))) == {alone}
