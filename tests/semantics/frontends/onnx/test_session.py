"""Sessions: names, shapes, types, options; wrong models and inputs are errors that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

import tlx
from tests.semantics.frontends.onnx.models import expected, graph, model
from tlx.frontends.onnx import InferenceSession
from tlx.frontends.onnx.model import ModelMetadata
from tlx.intrinsics.numpy_types import Array

RNG = np.random.default_rng(1)
W = RNG.normal(size=(4, 3)).astype(np.float32)
B = RNG.normal(size=3).astype(np.float32)


def two_layers(dynamic: bool = True) -> bytes:
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Softmax", ["r"], ["p"], axis=1),
    ]
    return graph(nodes, {"x": np.zeros((2, 4), np.float32)}, ["p", "r"], 17, {"w": W, "b": B}, dynamic=dynamic)


def test_shapes_of_the_first_call() -> None:
    session = tlx.onnx.InferenceSession(two_layers())
    assert [(i.name, i.shape, i.type) for i in session.get_inputs()] == [("x", ["x_0", "x_1"], "tensor(float)")]
    assert [o.name for o in session.get_outputs()] == ["p", "r"]
    for rows in (2, 5, 2):
        x = RNG.normal(size=(rows, 4)).astype(np.float32)
        for result, other in zip(session.run(None, {"x": x}), expected(two_layers(), {"x": x}), strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-5, atol=1e-6)
    (only,) = session.run(["r"], {"x": x})
    np.testing.assert_allclose(only, np.maximum(x @ W + B, 0), rtol=1e-5, atol=1e-6)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(two_layers())
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    session = InferenceSession(path, shapes={"x": (3, 4)}, target="avx2")
    np.testing.assert_allclose(session.run(["r"], {"x": x})[0], np.maximum(x @ W + B, 0), rtol=1e-5, atol=1e-6)
    assert session.get_inputs()[0].shape == [3, 4]
    assert "@llvm.tensor.matmul" in tlx.onnx.lower(path, shapes={"x": (3, 4)})


def test_metadata() -> None:
    proto = onnx.load_from_string(two_layers())
    proto.producer_name, proto.model_version, proto.doc_string = "writer", 3, "reads text"
    helper.set_model_props(proto, {"characters": "abc"})
    proto.domain, proto.graph.doc_string = "texts", "a row"
    expected_metadata = ModelMetadata(
        producer_name="writer",
        domain="texts",
        version=3,
        description="reads text",
        graph_name=proto.graph.name,
        graph_description="a row",
        custom_metadata_map={"characters": "abc"},
    )
    assert InferenceSession(proto).get_modelmeta() == expected_metadata


def test_external_data_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is that of the folder in which the session was created, though weights are read later."""
    monkeypatch.chdir(tmp_path)
    proto = onnx.load_from_string(two_layers())
    cast("Any", onnx).save(proto, "model.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    session = InferenceSession("model.onnx")
    monkeypatch.chdir("/")
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(session.run(["r"], {"x": x})[0], np.maximum(x @ W + B, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(("small", "largest"), [(ml_dtypes.float8_e4m3fn, 448), (ml_dtypes.float8_e5m2, 57344)])
def test_small_floats(small: Any, largest: int, raw: bool, saturate: int) -> None:
    """Weights of 8 bits, and what numbers beyond the largest one become: of inputs and of constants."""
    w = np.array([1.5, -0.25, 2.0**-9, 0.0], small)
    wide = np.array([1e6, -np.inf, np.nan, 1.0625], np.float32)
    number = helper.np_dtype_to_tensor_dtype(w.dtype)
    values = w.tobytes() if raw else w.astype(np.float32)
    weights = [helper.make_tensor("w", number, (4,), values, raw=raw), onnx.numpy_helper.from_array(wide, "k")]
    nodes = [
        helper.make_node("Cast", ["w"], ["weight"], to=1),
        helper.make_node("Cast", ["x"], ["of_input"], to=number, saturate=saturate),
        helper.make_node("Cast", ["k"], ["of_constant"], to=number, saturate=saturate),
    ]
    places = [helper.make_tensor_value_info("x", 1, (4,)), helper.make_tensor_value_info("weight", 1, (4,))]
    places += [helper.make_tensor_value_info(name, number, (4,)) for name in ("of_input", "of_constant")]
    made = helper.make_graph(nodes, "g", places[:1], places[1:], weights)
    file = helper.make_model(made, opset_imports=[helper.make_opsetid("", 19)]).SerializeToString()
    weight, *rounded = InferenceSession(file).run(None, {"x": wide})
    np.testing.assert_array_equal(weight, w.astype(np.float32))
    want = np.clip(wide, -largest, largest) if saturate else wide
    for result in rounded:
        assert result.dtype == np.dtype(small)
        np.testing.assert_array_equal(result.astype(np.float32), want.astype(small).astype(np.float32))


def test_bfloat_products() -> None:
    x = RNG.normal(size=(8, 4)).astype(np.float32)
    exact = InferenceSession(two_layers()).run(["r"], {"x": x})[0]
    rounded = InferenceSession(two_layers(), precision="bfloat16").run(["r"], {"x": x})[0]
    assert rounded.dtype == np.float32
    assert 0 < np.abs(exact - rounded).max() < 0.05


def test_concatenations_are_rounded_in_parts() -> None:
    """What a product reads of a concatenation is stored as bfloat by what computes the parts."""
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Mul", ["x", "s"], ["silu"]),
        helper.make_node("Concat", ["silu", "y"], ["joined"], axis=1),
        helper.make_node("MatMul", ["joined", "w"], ["r"]),
    ]
    x, y, w = (RNG.normal(size=shape).astype(np.float32) for shape in ((8, 16), (8, 32), (48, 4)))
    file = graph(nodes, {"x": x, "y": y}, ["r"], 13, {"w": w})
    text = tlx.onnx.lower(file, precision="bfloat16")
    assert "fptrunc <128 x float>" in text
    assert "fptrunc <384 x float>" not in text
    result = InferenceSession(file, precision="bfloat16").run(["r"], {"x": x, "y": y})[0]
    rounded = [a.astype(ml_dtypes.bfloat16).astype(np.float32) for a in (x / (1 + np.exp(-x)), y, w)]
    np.testing.assert_allclose(result, np.concatenate(rounded[:2], 1) @ rounded[2], rtol=0.02, atol=0.02)


def test_the_evaluator_agrees() -> None:
    session = InferenceSession(two_layers(), shapes={"x": (3, 4)})
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    evaluated = session.translate().graph.evaluate(x)
    for result, other in zip(session.run(None, {"x": x}), evaluated, strict=True):
        np.testing.assert_allclose(result, other, rtol=1e-5, atol=1e-6)


def test_shape_arithmetic_leaves_nothing_to_run() -> None:
    """`Reshape(x, Concat(Shape(x)[0] * 2, -1))` is a view."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Mul", ["n", "two"], ["m"]),
        helper.make_node("Concat", ["m", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
        helper.make_node("Add", ["y", "y"], ["z"]),
    ]
    constants = {"zero": np.array([0]), "two": np.array([2]), "rest": np.array([-1])}
    text = tlx.onnx.lower(graph(nodes, {"x": np.zeros((3, 8), np.float32)}, ["z"], 13, constants))
    assert "reshape" not in text
    assert "i64>" not in text


def test_normalization_is_merged_into_weights() -> None:
    x = RNG.normal(size=(1, 2, 5, 5)).astype(np.float32)
    numbers = {k: np.abs(RNG.normal(size=3)).astype(np.float32) for k in "smvt"}
    constants = {"w": RNG.normal(size=(3, 2, 3, 3)).astype(np.float32), **numbers}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "s", "t", "m", "v"], ["y"]),
    ]
    data = graph(nodes, {"x": x}, ["y"], 15, constants)
    text = tlx.onnx.lower(data)
    assert " fmul " not in text
    assert text.count(" fadd ") == 1
    np.testing.assert_allclose(
        InferenceSession(data).run(None, {"x": x})[0], expected(data, {"x": x})[0], rtol=1e-4, atol=1e-5
    )


def test_equal_constants_are_one() -> None:
    x = np.ones((100, 3), np.float32)
    constants = {name: np.arange(100, dtype=np.float32).reshape(100, 1) for name in ("a", "b")}
    nodes = [helper.make_node("Add", ["x", "a"], ["s"]), helper.make_node("Mul", ["s", "b"], ["y"])]
    text = tlx.onnx.lower(graph(nodes, {"x": x}, ["y"], 13, constants))
    assert text.count("weight") == 1


def test_an_image_is_enlarged_at_once() -> None:
    """By whole numbers, elements are repeated along both dimensions by one broadcast."""
    x = RNG.normal(size=(1, 3, 4, 5)).astype(np.float32)
    scales = {"scales": np.array([1, 1, 2, 3], np.float32)}
    data = graph([helper.make_node("Resize", ["x", "scales"], ["y"])], {"x": x}, ["y"], 10, scales)
    calls = [line for line in tlx.onnx.lower(data).splitlines() if " = call " in line]
    assert sum("@llvm.tensor.broadcast" in line for line in calls) == 1
    np.testing.assert_array_equal(InferenceSession(data).run(None, {"x": x})[0], x.repeat(2, 2).repeat(3, 3))


def nothing(*shape: int, dtype: str = "f4") -> Array:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "wanted"),
    [
        ("MatMul", (nothing(2, 0, 5), nothing(5, 4)), {}, nothing(2, 0, 4)),
        ("Gemm", (nothing(3, 0), nothing(0, 4), np.ones(4, "f4")), {}, np.ones((3, 4), "f4")),
        ("Einsum", (nothing(3, 0), nothing(0, 4)), {"equation": "ij,jk->ik"}, nothing(3, 4)),
        ("MatMulInteger", (nothing(3, 0, dtype="u1"), nothing(0, 4, dtype="u1")), {}, nothing(3, 4, dtype="i4")),
        ("Conv", (nothing(0, 3, 8, 8), np.ones((4, 3, 3, 3), "f4")), {}, nothing(0, 4, 6, 6)),
        ("ReduceMean", (nothing(0, 3),), {"axes": [0], "keepdims": 0}, np.zeros(3, "f4")),
        ("ReduceMean", (np.zeros((0, 3), "i4"),), {"axes": [0], "keepdims": 0}, np.zeros(3, "i4")),
        ("ArgMax", (nothing(0, 3),), {"axis": 1}, nothing(0, 1, dtype="i8")),
        ("ArgMin", (nothing(3, 0),), {"axis": 0, "select_last_index": 1}, nothing(1, 0, dtype="i8")),
    ],
)
def test_tensors_without_elements(
    operator: str, operands: Sequence[Array], attributes: dict[str, Any], wanted: Array
) -> None:
    feeds = {f"x{k}": operand for k, operand in enumerate(operands)}
    (result,) = InferenceSession(model(operator, feeds, 17, **attributes)).run(None, feeds)
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted, strict=True)


@pytest.mark.parametrize(("dtype", "start", "step"), [("i8", 10**12, 7), ("f4", -3, 0.5)])
def test_long_ranges_are_computed_when_the_model_runs(dtype: str, start: int, step: float) -> None:
    """As constants, they need memory while a model is translated."""
    expected = start + step * np.arange((1 << 22) + 5, dtype=dtype)
    constants = {"a": expected[0], "b": expected[-1] + np.asarray(step, dtype), "d": np.asarray(step, dtype)}
    proto = graph([helper.make_node("Range", ["a", "b", "d"], ["y"])], {"x": W}, ["y"], 17, constants)
    session = InferenceSession(proto)
    assert session.translate().outputs == (None,)
    (result,) = session.run(None, {"x": W})
    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("index", [-7, 6, 10**12])
@pytest.mark.parametrize(
    ("operator", "shape", "wanted"),
    [
        ("Gather", (1,), None),
        ("GatherElements", (1,), None),
        ("GatherND", (1, 1), None),
        ("ScatterElements", (1,), [1, 2, 3]),
        ("ScatterND", (1, 1), [1, 2, 3]),
        ("MaxUnpool", (1, 1, 1), [0, 0]),
    ],
)
def test_indices_out_of_range(operator: str, shape: tuple[int, ...], wanted: list[int] | None, index: int) -> None:
    """An error in onnxruntime; here reads are of the nearest element, and updates are left out."""
    feeds = {"x": np.array([1, 2, 3], "f4"), "i": np.full(shape, index)}
    attributes: dict[str, Any] = {}
    if operator == "MaxUnpool":
        feeds["x"], attributes = np.full(shape, 5, "f4"), {"kernel_shape": [2], "strides": [2]}
    elif operator.startswith("Scatter"):
        feeds["u"] = np.full(1, 9, "f4")
    (result,) = InferenceSession(model(operator, feeds, 17, **attributes)).run(None, feeds)
    assert result.flatten().tolist() == (wanted or [1 if index < 0 else 3])


@pytest.mark.parametrize(
    ("operator", "attributes", "wanted"),
    [
        ("MaxPool", {"kernel_shape": [2]}, [np.nan, np.nan, 4, 4]),
        ("MaxPool", {"kernel_shape": [2], "dilations": [2]}, [2, np.nan, 3]),
        ("ReduceMax", {}, [np.nan]),
        ("ArgMax", {"axis": 2}, [1]),
        ("ArgMin", {"axis": 2}, [1]),
    ],
)
def test_nan_is_the_greatest_and_the_least(operator: str, attributes: dict[str, Any], wanted: list[float]) -> None:
    x = np.array([[[1, np.nan, 2, 4, 3]]], np.float32)
    data = graph([helper.make_node(operator, ["x"], ["y"], **attributes)], {"x": x}, ["y"], 13)
    (y,) = InferenceSession(data).run(None, {"x": x})
    np.testing.assert_array_equal(np.asarray(y).reshape(-1), wanted)


@pytest.mark.parametrize(
    ("operator", "wanted"), [("MaxPool", [3, 5, 7, 7]), ("AveragePool", [2, 3, 5, 6]), ("Conv", [310, 531, 753, 75])]
)
def test_windows_with_holes_of_the_same_size(operator: str, wanted: list[float]) -> None:
    """A result has the input's extent divided by the stride, rounded up."""
    x, w = np.arange(1, 8, dtype=np.float32).reshape(1, 1, 7), np.array([[[1, 10, 100]]], np.float32)
    attributes: dict[str, Any] = {"kernel_shape": [3], "dilations": [2], "strides": [2], "auto_pad": "SAME_UPPER"}
    names = ["x", "w"] if operator == "Conv" else ["x"]
    data = graph([helper.make_node(operator, names, ["y"], **attributes)], {"x": x}, ["y"], 19, {"w": w})
    (y,) = InferenceSession(data).run(None, {"x": x})
    np.testing.assert_array_equal(y, np.reshape(wanted, (1, 1, 4)))


@pytest.mark.parametrize("known", [True, False])
def test_conditionals(known: bool) -> None:
    def branch(name: str, operator: str) -> onnx.GraphProto:
        nodes = [helper.make_node(operator, ["x", "x"], [name])]
        return helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=name)])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("t", "Add"), else_branch=branch("e", "Mul"))
    x, c = RNG.normal(size=(4,)).astype(np.float32), np.array([False])
    data = graph([node], {"x": x, "c": c}, ["y"], 16)
    if known:
        assert "br i1" not in tlx.onnx.lower(data, constants={"c": c})
        np.testing.assert_allclose(InferenceSession(data, constants={"c": c}).run(None, {"x": x})[0], x * x)
        return
    session = InferenceSession(data)
    for condition in (True, False):
        np.testing.assert_allclose(
            session.run(None, {"x": x, "c": np.array([condition])})[0], x + x if condition else x * x
        )


def loop(rows: bool) -> bytes:
    """`while n < limit: n += 1; x *= 2`, with a row for each iteration or not."""
    true = helper.make_node("Identity", ["c"], ["going"])
    if not rows:
        true = helper.make_node("Less", ["twice", "limit"], ["going"])
    nodes = [helper.make_node("Add", ["v", "v"], ["twice"]), true]
    outputs = ["going", "twice"]
    if rows:
        nodes.append(helper.make_node("Neg", ["twice"], ["row"]))
        outputs.append("row")
    scalars = [
        helper.make_tensor_value_info("n", onnx.TensorProto.INT64, []),
        helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
        helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [1]),
    ]
    results = [
        helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, []),
        *(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in outputs[1:]),
    ]
    body = helper.make_graph(nodes, "body", scalars, results)
    node = helper.make_node("Loop", ["trips", "", "x"], ["y", "rows"] if rows else ["y"], body=body)
    inputs = {"x": np.ones(1, np.float32)}
    constants = {"trips": np.array(20), "limit": np.array([50], np.float32)}
    return graph([node], inputs, ["y", "rows"] if rows else ["y"], 16, constants)


@pytest.mark.parametrize("rows", [True, False])
def test_loops(rows: bool) -> None:
    x = np.array([1.5], np.float32)
    results = InferenceSession(loop(rows)).run(None, {"x": x})
    for result, other in zip(results, expected(loop(rows), {"x": x}), strict=True):
        np.testing.assert_allclose(result, other)


def test_loops_with_a_constant_condition() -> None:
    """A single boolean in bytes, as PyTorch writes it, is known: so is the number of rows."""
    x, trips = np.array([1.5], np.float32), onnx.load_model_from_string(loop(rows=True))
    trips.graph.node[0].input[1] = "true"
    trips.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "true"))
    results = InferenceSession(trips.SerializeToString()).run(None, {"x": x})
    for result, other in zip(results, expected(loop(rows=True), {"x": x}), strict=True):
        np.testing.assert_allclose(result, other)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("trips", [0, 3, 20])
def test_loops_whose_rows_have_no_name(trips: int, known: bool) -> None:
    """Nothing is stacked, so the number of iterations may depend on the inputs."""
    changed = onnx.load_model_from_string(loop(rows=True))
    changed.graph.node[0].output[1] = ""
    del changed.graph.output[1], changed.graph.initializer[0]
    changed.graph.input.append(helper.make_tensor_value_info("trips", onnx.TensorProto.INT64, []))
    x, count = np.array([1.5], np.float32), np.array(trips)
    session = InferenceSession(changed.SerializeToString(), constants={"trips": count} if known else None)
    (result,) = session.run(None, {"x": x} if known else {"x": x, "trips": count})
    np.testing.assert_allclose(result, x * 2**trips)


def test_loops_read_other_results_in_memory() -> None:
    """What the body reads of the graph around it is not copied in each iteration."""
    values = [helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [4])]
    scalars = [helper.make_tensor_value_info("n", onnx.TensorProto.INT64, [])]
    condition = [helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])]
    nodes = [
        helper.make_node("Identity", ["c"], ["going"]),
        helper.make_node("Gather", ["r", "n"], ["row"], axis=0),
        helper.make_node("Add", ["v", "row"], ["sum"]),
    ]
    results = [
        helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, []),
        helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, [4]),
    ]
    body = helper.make_graph(nodes, "body", [*scalars, *condition, *values], results)
    outer = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Loop", ["t", "", "z"], ["y"], body=body)]
    x = RNG.normal(size=(20, 4)).astype(np.float32)
    data = graph(outer, {"x": x}, ["y"], 16, {"t": np.array(20), "z": np.zeros(4, np.float32)})
    np.testing.assert_allclose(InferenceSession(data).run(None, {"x": x})[0], np.maximum(x, 0).sum(0), rtol=1e-5)
    inside = tlx.onnx.lower(data).partition("\ndo:")[2].partition("\ndone:")[0]
    assert "<80 x float>" not in inside


def test_sequences() -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x", "two"], ["s"], axis=1),
        helper.make_node("SequenceAt", ["s", "last"], ["a"]),
        helper.make_node("SequenceInsert", ["s", "a", "zero"], ["longer"]),
        helper.make_node("SequenceErase", ["longer", "last"], ["shorter"]),
        helper.make_node("SequenceLength", ["shorter"], ["n"]),
        helper.make_node("ConcatFromSequence", ["shorter"], ["y"], axis=1),
    ]
    x = RNG.normal(size=(2, 6)).astype(np.float32)
    constants = {"two": np.array(2), "last": np.array(-1), "zero": np.array(0)}
    data = graph(nodes, {"x": x}, ["y", "n", "a"], 17, constants)
    results = InferenceSession(data).run(None, {"x": x})
    for result, other in zip(results, expected(data, {"x": x}), strict=True):
        np.testing.assert_array_equal(result, other)
    with pytest.raises(tlx.TlxError, match="Relu 'y': error: an operand is a sequence of tensors instead of a tensor"):
        InferenceSession(graph([nodes[0], helper.make_node("Relu", ["s"], ["y"])], {"x": x}, ["y"], 17, constants))
    with pytest.raises(tlx.TlxError, match="output 's' is a sequence, which is not supported"):
        InferenceSession(graph(nodes[:1], {"x": x}, ["s"], 17, constants))


@pytest.mark.parametrize(
    ("kind", "shape", "node", "message"),
    [
        (onnx.TensorProto.STRING, [2], "x", r"input 'x' has type tensor\(string\), which is not supported"),
        (onnx.TensorProto.FLOAT, [1 << 20, 1 << 20], "x", "input 'x' has shape .*: at most 2.31 elements"),
        (onnx.TensorProto.FLOAT, [2], "w", "all outputs of the model are constants: there is nothing to translate"),
    ],
)
def test_errors_about_inputs_name_the_file(
    tmp_path: Path, kind: int, shape: list[int], node: str, message: str
) -> None:
    proto = onnx.ModelProto.FromString(
        graph([helper.make_node("Identity", [node], ["y"])], {"x": W}, ["y"], 17, {"w": W})
    )
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", kind, shape))
    (path := tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(tlx.TlxError, match=f"model.onnx: error: {message}"):
        tlx.onnx.lower(path)


def external(folder: Path, location: str) -> Path:
    """A model whose weight is in another file."""
    (folder / "weights.bin").write_bytes(W.tobytes())
    proto = onnx.ModelProto.FromString(model("MatMul", {"x": np.ones((2, 4), np.float32)}, 13, {"w": W}))
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_external_data(tmp_path: Path) -> None:
    x = np.ones((2, 4), np.float32)
    result = InferenceSession(external(tmp_path, "weights.bin")).run(None, {"x": x})[0]
    np.testing.assert_allclose(result, x @ W, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "link", "folder", "none", "", "a\0b"])
def test_external_data_elsewhere_is_not_read(tmp_path: Path, location: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "folder").mkdir()
    (tmp_path / "weights.bin").write_bytes(W.tobytes())
    (inner / "link").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(tlx.TlxError, match=r"tensor 'w' is stored in"):
        InferenceSession(external(inner, location))


def twice() -> bytes:
    """A model with two nodes that have the same output."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [onnx.helper.make_node(kind, ["x"], ["y"], name) for kind, name in (("Relu", "first"), ("Tanh", "second"))]
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "twice", [x], [y])).SerializeToString()


def with_constants(*nodes: tuple[str, list[str], list[str]], **constants: Array) -> bytes:
    """A model of nodes (operator, inputs, outputs) with an input x of 2 x 4 and an output y."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims) for name, dims in VALUES.items())
    made = [onnx.helper.make_node(kind, inputs, outputs, kind) for kind, inputs, outputs in nodes]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    return onnx.helper.make_model(onnx.helper.make_graph(made, "g", [x], [y], weights)).SerializeToString()


VALUES: Final = {"x": [2, 4], "y": None}
ONES: Final = np.ones(4, np.float32)
WITHOUT_WEIGHTS: Final = with_constants(
    ("Conv", ["x"], ["c"]), ("BatchNormalization", ["c", "s", "s", "s", "s"], ["y"]), s=ONES
)
MANY_DIMENSIONS: Final = with_constants(("Reshape", ["x", "shape"], ["y"]), shape=np.full(1 << 18, 1 << 40, np.int64))

X = np.zeros((2, 4), np.float32)
SESSION = InferenceSession(two_layers())
FIXED = InferenceSession(two_layers(dynamic=False), lazy=True)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SESSION.run(None, {}), "no array for input 'x'; the inputs are x: tensor(float)"),
        (lambda: SESSION.run(None, {"X": X}), "inputs: there is no 'X'; there are x; did you mean 'x'?"),
        (lambda: SESSION.run(["q"], {"x": X}), "outputs: there is no 'q'; there are p, r"),
        (lambda: SESSION.run(None, {"x": X.astype("f8")}), "input 'x': expected an array of float32, got float64"),
        (lambda: SESSION.run(None, {"x": X[0]}), "input 'x': expected shape (x_0, x_1), got (4,)"),
        (lambda: SESSION.run("p", {"x": X}), "outputs: expected a list of names, got 'p'"),
        (lambda: SESSION.run(None, cast("Any", [X])), "inputs: expected a dict of arrays by name, got list"),
        (lambda: SESSION.run(None, {"x": None}), "input 'x': expected an array of float32, got object"),
        (lambda: SESSION.run(None, {"x": [[1.0], [1.0, 2.0]]}), "input 'x' is not an array: "),
        (
            lambda: InferenceSession(twice()),
            "Tanh 'second': error: output 'y' is already the output of an earlier node",
        ),
        (lambda: FIXED.run(None, {"x": X[:1]}), "input 'x': expected shape (2, 4), got (1, 4)"),
        (lambda: SESSION.run(None, {"x": X[:, :3]}), "<bytes>: Gemm 'first': error: dot_general: "),
        (lambda: InferenceSession(two_layers(), shapes={"z": (1,)}), "shapes: there is no 'z'; there are x"),
        (lambda: InferenceSession(two_layers(), shapes={"x": (-1, 4)}), "shapes: expected the extents of input 'x'"),
        (
            lambda: InferenceSession(two_layers(), shapes=cast("Any", {"x": (None, 4)})),
            "such as (8, 16), got (None, 4)",
        ),
        (lambda: InferenceSession(two_layers(), shapes=cast("Any", {"x": 4})), "such as (8, 16), got 4"),
        (lambda: InferenceSession(two_layers(), shapes=cast("Any", (2, 4))), "shapes: expected a dict by the names"),
        (lambda: InferenceSession(two_layers(), constants=cast("Any", [X])), "constants: expected a dict by the names"),
        (
            lambda: InferenceSession(cast("Any", None)),
            "expected the path of a model, its bytes or its message, got None",
        ),
        (
            lambda: InferenceSession(two_layers(), constants={"x": X}, lazy=True).run(None, {"x": X}),
            "inputs: 'x' has a value that calls do not pass; to change it, create the session with constants=",
        ),
        (lambda: InferenceSession(two_layers(), precision="half"), "precision 'half' is not one of float32, bfloat16"),
        (
            lambda: InferenceSession(two_layers(), providers=["CPUExecutionProvider"]),
            "option 'providers' is onnxruntime's: leave it out",
        ),
        (lambda: InferenceSession(two_layers(), thread="openmp"), "unknown option 'thread'; did you mean 'threads'?"),
        (lambda: InferenceSession(two_layers(), target="avx3"), "unknown target 'avx3'"),
        (lambda: InferenceSession("no/model.onnx"), "no/model.onnx: error: No such file or directory"),
        (lambda: InferenceSession(b"no model"), "<bytes>: error: this is not an ONNX model, or it is damaged"),
        (lambda: InferenceSession(b""), "<bytes>: error: this is not an ONNX model: it has no graph"),
        (lambda: tlx.onnx.lower(two_layers()), "input 'x' has shape (x_0, x_1), which is not fixed"),
        (
            lambda: InferenceSession(model("Relux", {"x": X}, 13)),
            "<bytes>: Relux 'node': error: operator Relux is not supported; did you mean 'Relu'?",
        ),
        (lambda: InferenceSession(model("Add", {"x": X}, 13)), "Add 'node': error: has too few inputs: Add needs 2"),
        (
            lambda: InferenceSession(model("Relu", {"x": X}, 13, names=["y0"])),
            "Relu 'node': error: input 'y0' is not the output of an earlier node",
        ),
        (
            lambda: InferenceSession(model("Reshape", {"x": X, "shape": np.array([8])}, 13)),
            "Reshape 'node': error: the shape depends on the inputs: it must be a constant, or follow from shapes",
        ),
        (lambda: InferenceSession(WITHOUT_WEIGHTS), "Conv 'Conv': error: has too few inputs: Conv needs 2"),
        (lambda: InferenceSession(MANY_DIMENSIONS), "a tensor of 262144 dimensions has too many: at most 32"),
    ],
)
def test_errors(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(tlx.TlxError) as caught:
        call()
    assert said in str(caught.value)


def random_nodes(**attributes: Any) -> bytes:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"], **attributes),
        helper.make_node("RandomNormalLike", ["x"], ["b"], **attributes),
        helper.make_node("RandomUniform", [], ["c"], shape=[5000], low=2.0, high=4.0),
        helper.make_node("Add", ["x", "a"], ["y"]),
        helper.make_node("Add", ["x", "b"], ["z"]),
    ]
    return graph(nodes, {"x": np.zeros(5000, np.float32)}, ["y", "z", "c"], 17)


def test_random_numbers() -> None:
    """Nodes have different ones, sessions and calls the same; a seed chooses others."""
    x = np.zeros(5000, np.float32)
    session = InferenceSession(random_nodes(mean=1.0, scale=3.0))
    first, again = session.run(None, {"x": x}), session.run(None, {"x": x})
    other = InferenceSession(random_nodes(mean=1.0, scale=3.0)).run(None, {"x": x})
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    y, z, uniform = first
    for numbers in (y, z):
        assert abs(numbers.mean() - 1) < 0.2
        assert abs(numbers.std() - 3) < 0.2
    assert abs(np.corrcoef(y, z)[0, 1]) < 0.1
    assert 2 <= uniform.min() < 2.01
    assert 3.99 < uniform.max() <= 4
    seeded, _, _ = InferenceSession(random_nodes(mean=1.0, scale=3.0, seed=7.0)).run(None, {"x": x})
    assert (seeded != y).any()


def test_random_numbers_in_loops_are_refused() -> None:
    """Each iteration would have the same ones."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["going"]),
            helper.make_node("RandomNormalLike", ["v"], ["noise"]),
            helper.make_node("Add", ["v", "noise"], ["w"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("n", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [3]),
        ],
    )
    loop = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    data = graph([loop], {"x": np.zeros(3, np.float32), "trips": np.array(4)}, ["y"], 17)
    with pytest.raises(tlx.TlxError, match="random numbers in a loop or branch are not supported: make them an input"):
        InferenceSession(data)


_IMAGE = np.ones((2, 12, 20), np.float32)


@pytest.mark.parametrize(
    ("operator", "inputs", "constants", "attributes", "message"),
    [
        ("Col2Im", {"x": _IMAGE}, {"e": np.array([5, 6]), "b": np.array([0, 3])}, {}, r"blocks \[0, 3\] of an image"),
        ("Det", {"x": np.ones((2, 3), np.float32)}, {}, {}, r"shape \(2, 3\) has no square matrices"),
        ("DeformConv", {"x": np.ones((1, 1, 5, 5), np.float32)}, {
            "w": np.ones((1, 1, 3, 3), np.float32), "o": np.ones((1, 18, 2, 2), np.float32)}, {}, "offsets .* not fit"),
        ("STFT", {"x": np.ones((2, 9, 1), np.float32)}, {"s": np.array(0)}, {}, "frame_step 0 do not fit"),
        ("MaxUnpool", {"x": np.ones((1, 1, 2), np.float32)}, {"i": np.zeros((1, 1, 1), np.int64)}, {
            "kernel_shape": [2]}, "do not fit an input"),
        ("Einsum", {"x": np.ones((2, 3), np.float32)}, {}, {"equation": "ii->i"}, "index 'i' has extents 2 and 3"),
        ("RandomNormal", {}, {}, {"shape": [60000, 30000]}, "too many: make them an input"),
        ("RandomNormal", {}, {}, {"shape": [2], "dtype": 7}, "random numbers of int64 are not supported"),
    ],
)  # fmt: skip
def test_wrong_operands(
    operator: str, inputs: dict[str, Any], constants: dict[str, Any], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(tlx.TlxError, match=message):
        InferenceSession(model(operator, inputs, 18, constants, **attributes)).run(None, inputs)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"axis": 0}, "axis 0 is that of the samples"),
        ({"axis": 2}, r"updates \(2, 2, 2\) along dimension 2 do not fit shape \(2, 4, 2\)"),
        ({"axis": 1, "mode": "square"}, "mode 'square' is not one of linear, circular"),
    ],
)
def test_wrong_updates_of_a_cache(attributes: dict[str, Any], message: str) -> None:
    inputs = {"x": np.zeros((2, 4, 2), np.float32), "u": np.zeros((2, 2, 2), np.float32)}
    with pytest.raises(tlx.TlxError, match=message):
        InferenceSession(model("TensorScatter", inputs, 24, {}, **attributes))
