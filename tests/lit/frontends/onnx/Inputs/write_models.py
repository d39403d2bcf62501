"""Write small models to a folder."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper


def model(operator: str, rows: "int | str") -> bytes:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, 16])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [rows, 8])
    w = numpy_helper.from_array(np.arange(128, dtype=np.float32).reshape(16, 8), "w")
    graph = helper.make_graph([helper.make_node(operator, ["x", "w"], ["y"])], "layers", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


folder = Path(sys.argv[1])
(folder / "layers.onnx").write_bytes(model("MatMul", 4))
(folder / "open.onnx").write_bytes(model("MatMul", "batch"))
(folder / "unknown.onnx").write_bytes(model("MatMull", 4))
(folder / "cut.onnx").write_bytes(model("MatMul", 4)[:-20])
