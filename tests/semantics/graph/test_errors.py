"""Wrong shapes and types are errors that name both sides and the line of the user's call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tlx import ArgumentError, TlxError
from tlx.graph import Graph, Value


def error_of(wrong: Callable[[], Any]) -> TlxError:
    with pytest.raises(TlxError) as caught:
        wrong()
    return caught.value


def added(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a + c, b + d


def is_less(a: Any, b: Any) -> Any:
    return a < b


WRONG: tuple[Any, Any] = (5, (2.5,))
CASES: list[tuple[str, Callable[[Graph, Any, Any], Any]]] = [
    (
        "dot_general: contracting sizes 3 and 4 differ; lhs (2, 3), rhs (4, 5)",
        lambda g, x, y: g.dot_general(x, y, ([1], [0])),
    ),
    ("dot_general: batch 7 is not a dimension", lambda g, x, y: g.dot_general(x, y, ([], []), ([7], [0]))),
    ("dot_general: contracting dimensions (0, 1) and (0)", lambda g, x, _: g.dot_general(x, x, ([0, 1], [0]))),
    ("dot_general: a dimension of lhs is named twice", lambda g, x, _: g.dot_general(x, x, ([0, 0], [0, 0]))),
    ("dot_general: sums of float32 products cannot be float16", lambda g, x, _: g.matmul(x, x.T, "float16")),
    ("matmul: shapes () and (2, 3): multiply by a scalar", lambda g, x, _: g.matmul(2.0, x)),
    ("add: shapes (2, 3) and (4, 5) do not broadcast", lambda _, x, y: x + y),
    ("add: element types float32 and int8 differ: convert", lambda g, x, _: x + g.convert(x, "int8")),
    ("full: 1.5 is not of type int32", lambda g, x, _: g.convert(x, "int32") + 1.5),
    ("and: not defined for float32", lambda _, x, __: x & x),
    ("exp: the operand has type int32, not a float", lambda g, x, _: g.exp(g.convert(x, "int32"))),
    ("where: the condition has type float32, not bool", lambda g, x, _: g.where(x, x, x)),
    ("unary: 'expp' is not one of", lambda g, x, _: g.unary("expp", x)),
    ("reshape: (2, 3) has 6 elements, (4, 2) has 8", lambda _, x, __: x.reshape(4, 2)),
    ("slice: 0:4:1 in dimension 0: expected 0 <= start <= stop <= 2", lambda g, x, _: g.slice(x, (0, 0), (4, 1))),
    ("top_k: k is 9: expected 0 to 3, the extent", lambda g, x, _: g.top_k(x, 9)),
    ("transpose: dimensions (0) must name all 2", lambda _, x, __: x.transpose(0)),
    ("broadcast: extent 3 of (2, 3) becomes dimension 1 of (2, 5)", lambda g, x, _: g.broadcast(x, (2, 5))),
    ("index: 2 is outside dimension 0, extent 2", lambda _, x, __: x[2]),
    ("index: 3 indices for a tensor of rank 2", lambda _, x, __: x[0, 0, 0]),
    ("index: ... is allowed only once", lambda _, x, __: x[..., None, ...]),
    ("index: step -1 is negative: use reverse", lambda _, x, __: x[::-1]),
    ("index: expected an integer, a slice, ... or None, got 'a'", lambda _, x, __: x["a"]),
    ("pad: low (-1, 0) and high (-2, 0) crop more than (2, 3) has", lambda g, x, _: g.pad(x, (-1, 0), (-2, 0))),
    ("concatenate: shapes (2, 3) and (4, 5) may differ only in dimension 0", lambda g, x, y: g.concatenate([x, y])),
    ("sum: axis 5 is not a dimension of a tensor of rank 2", lambda g, x, _: g.sum(x, 5)),
    ("sum: axis 1.5 is not an integer", lambda g, x, _: g.sum(x, WRONG[1][0] - 1)),
    ("transpose: dimension 7 is not a dimension of a tensor of rank 2", lambda _, x, __: x.transpose(0, 7)),
    ("sum: axes (0, 0): a dimension is named twice", lambda g, x, _: g.sum(x, (0, -2))),
    ("all: the operand has type float32: compare it with 0", lambda g, x, _: g.reduce("all", x)),
    ("max: window (3, 3) is larger than dimension 0, extent 2", lambda g, x, _: g.reduce_window("max", x, (3, 3))),
    ("bool: values of a graph have no elements until it runs: use where, cond", lambda _, x, __: 1 if x > 0 else 0),
    ("bool: values of a graph have no elements until it runs", lambda _, x, __: max(x, 1)),
    ("parameter: expected a shape such as (2, 3), got 5", lambda g, _, __: g.parameter("z", WRONG[0])),
    ("parameter: expected a name, got 5", lambda g, _, __: g.parameter(WRONG[0], (2, 3))),
    ("weight: expected a name, got 5", lambda g, _, __: g.weight(WRONG[0], np.ones(2))),
    ("output: expected a name, got 5", lambda g, x, _: g.output(x, WRONG[0])),
    ("parameter: there is already a parameter 'x'", lambda g, _, __: g.parameter("x", (2, 3))),
    ("full: expected a shape such as (2, 3), got (2.5,)", lambda g, _, __: g.full(WRONG[1], 1)),
    ("numpy.sinh: values of a graph have no elements until it runs: use the methods", lambda _, x, __: np.sinh(x)),
    ("numpy.sum: values of a graph have no elements until it runs: use graph.sum", lambda _, x, __: np.sum(x)),
    ("numpy.concatenate: values of a graph have no elements", lambda _, x, y: np.concatenate([x, y])),
    ("numpy.asarray: values of a graph have no elements until it runs", lambda _, x, __: np.asarray(x)),
    ("numpy.add: values of a graph have no elements until it runs: use graph.add", lambda _, x, __: np.add.reduce(x)),
    (
        "fold: expected operands of one shape and an initial value for each, got (2, 3), (4, 5) and 2",
        lambda g, x, y: g.fold(added, (x, y), (0.0, 0.0)),
    ),
    (
        "fold: the function returns Value(bool[1, 3]), expected Value(float32[1, 3])",
        lambda g, x, _: g.fold(is_less, x, 0.0, 0),
    ),
    (
        "convolution: input (2, 3) and kernel (4, 5) must have the same rank, at least 3",
        lambda g, x, y: g.convolution(x, y),
    ),
    (
        "convolution: the kernel spans 5 positions of spatial dimension 0, which has 3",
        lambda g, x, y: g.convolution(x[None], g.broadcast(y, (4, 2, 5), (0, 2))),
    ),
    (
        "convolution: layout 'XY' of the input must consist of the letters",
        lambda g, x, _: g.convolution(x[None], x[None], layouts=("XY", "OIX", "NCX")),
    ),
    ("parameter: 'complex64' is not an element type", lambda g, _, __: g.parameter("z", (2,), "complex64")),
    ("parameter: shape (2, -1) has a negative extent", lambda g, _, __: g.parameter("z", (2, -1))),
    ("erfc: the operand has type int32, not a float", lambda g, x, _: g.erfc(g.convert(x, "int32"))),
    ("multiply_add: the operands have type int32", lambda g, x, _: g.multiply_add(g.convert(x, "int32"), 2, 1)),
    ("add: expected a value, an array or a number, got 'a'", lambda _, x, __: x + "a"),
    ("text: the graph has no output", lambda g, _, __: g.text()),
]


@pytest.mark.parametrize(("message", "wrong"), CASES, ids=[message[:40] for message, _ in CASES])
def test_errors_name_the_operation_and_both_sides(message: str, wrong: Callable[[Graph, Any, Any], Any]) -> None:
    graph = Graph()
    x, y = graph.parameter("x", (2, 3)), graph.parameter("y", (4, 5))
    error = error_of(lambda: wrong(graph, x, y))
    assert error.message.startswith(f"tlx.graph: {message}")
    assert error.span is not None
    assert Path(error.span.source.name).name == Path(__file__).name


@pytest.mark.parametrize("operation", ["while_loop", "conditional", "switch"])
def test_graphs_with_an_unfinished_operation_are_refused(operation: str) -> None:
    graph = Graph()
    x = graph.parameter("x", (2, 3))

    def always(_: Value) -> bool:
        return True

    def shorter(y: Value) -> Value:
        return y[:1]

    wrong: dict[str, Callable[[], Any]] = {
        "while_loop": lambda: graph.while_loop(always, shorter, x),
        "conditional": lambda: graph.conditional(graph.sum(x) > 0, lambda: x, lambda: x[0]),
        "switch": lambda: graph.switch(graph.iota((2,), 0)[1], [lambda: x, lambda: x @ x]),
    }
    error_of(wrong[operation])
    graph.output(x + 1)
    for use in (graph.text, graph.compile, lambda: graph.evaluate(np.ones((2, 3), np.float32))):
        assert f"an earlier {operation} failed and left the graph unfinished" in error_of(use).message


def test_values_of_two_graphs_do_not_mix() -> None:
    x, y = Graph().parameter("x", (2,)), Graph().parameter("y", (2,))
    assert "belongs to another graph" in error_of(lambda: x + y).message


def test_arrays_are_checked() -> None:
    graph = Graph()
    graph.output(graph.parameter("x", (2, 3)) * 2.0)
    function = graph.compile()
    array = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(function(array.T.copy().T), array * 2)
    for wrong in ((), (array, array), (array.T,), (array.astype(np.float64),)):
        with pytest.raises(ArgumentError, match="expected"):
            function(*wrong)


def test_outputs_weights_and_text() -> None:
    graph = Graph("two")
    weight = np.arange(3, dtype=np.float32)
    x = graph.parameter("x", (2, 3))
    graph.output(x + graph.weight("w", weight), "sum")
    graph.output(x.T)
    graph.output(graph.full((2,), 7, "int8"))
    function = graph.compile()
    array = np.ones((2, 3), np.float32)
    total, turned, sevens = function(array)
    np.testing.assert_array_equal(total, array + weight)
    np.testing.assert_array_equal(turned, array.T)
    np.testing.assert_array_equal(sevens, np.full(2, 7, np.int8))
    weight[:] = 5
    function.prepare()
    np.testing.assert_array_equal(function(array)[0], array + 5)
    head = (
        'define void @two(ptr noalias readonly %x, ptr noalias readonly "tlx-constant" %w, '
        "ptr noalias %sum, ptr noalias %out"
    )
    assert head in graph.text()


def test_arrays_of_another_byte_order_are_converted() -> None:
    x = np.arange(6, dtype=">f4").reshape(2, 3) + 1
    graph = Graph()
    graph.output(graph.parameter("x", (2, 3)) + graph.weight("w", x) * x)
    np.testing.assert_array_equal(graph.compile()(x), x + x * x)


def test_attributes_of_arrays_name_the_method_of_the_graph() -> None:
    x: Any = Graph().parameter("x", (2, 3))
    with pytest.raises(AttributeError, match=r"^values of a graph have no attribute 'sum': use graph.sum$"):
        x.sum()
    with pytest.raises(AttributeError, match=r"^values of a graph have no attribute 'tolist'$"):
        x.tolist()


def test_views_are_no_copies() -> None:
    graph = Graph()
    x = graph.parameter("x", (8, 6, 4))
    split = (x.transpose(1, 0, 2)[:, 2:6] * 2.0).reshape(6, 4, 2, 2)
    graph.output(split[:, :, 0] @ graph.broadcast(x[0, :4, ::2], (6, 4, 2)).transpose(0, 2, 1))
    text = graph.text()
    for copy in ("permute", "@llvm.tensor.transpose", "@llvm.tensor.pad", "@llvm.tensor.broadcast", "reduce"):
        assert copy not in text
