from tlx.frontends.onnx import *
