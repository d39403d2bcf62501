"""Texts with tensor operations: the example of the proposal, a load."""

SHAPE = "<2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"


SQUARE = "<2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"


DENSE = "<2 x i32> zeroinitializer"


PROPOSAL = """\
define <9 x float> @f(<240 x float> %tensor, <12 x float> %a, <12 x float> %b, i8* %from, float* %to, <36 x i32>* %p) {
  %input = call token @llvm.tensor.typeinfo(<240 x float> %tensor,
    <3 x i32> <i32 16, i32 5, i32 3>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 3, i32 2, i32 1>)
  %output = call <240 x float> @llvm.tensor.transpose(token %input, <3 x i32> <i32 2, i32 0, i32 1>)
  %loaded = call token @llvm.tensor.load(i8* %from, <3 x i32> <i32 16, i32 6, i32 4>,
    <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> <i32 0, i32 0, i32 8>)
  call void @llvm.tensor.store(float* %to, token %loaded, <3 x i32> <i32 0, i32 12, i32 10>) #0
  tail call void @llvm.tensor.store(float* %to, <3 x i32> <i32 0, i32 12, i32 10>, token %loaded), !note !0
  %lhs = call token @llvm.tensor.typeinfo(<12 x float> %a, <2 x i32> <i32 3, i32 4>,
    <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %rhs = call token @llvm.tensor.typeinfo(<12 x float> %b, <2 x i32> <i32 4, i32 3>,
    <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %product = call fast <9 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %0 = call token @llvm.tensor.typeinfo(<36 x i32>* byval(<36 x i32>) %p, <2 x i32> <i32 6, i32 6>,
    <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %1 = call token @llvm.tensor.load.p0i8.v2i32.v2i32.v2i32.v2i32(i8* %from, <2 x i32> <i32 6, i32 6>,
    <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %2 = call <36 x i32> @llvm.tensor.mma(token %0, token %0, token %1)
  ret <9 x float> %product
}

declare void @llvm.tensor.store(float*, token, <3 x i32>) readnone

attributes #0 = { readnone }

!0 = !{}
"""


def opaque(text: str) -> str:
    text = text.replace("store(float* %to", "store(ptr elementtype(float) %to")
    for typed in ("<36 x i32>*", "i8*", "float*"):
        text = text.replace(typed, "ptr")
    return text


def load(name: str, pointer: str = "ptr %p", shape: str = SQUARE) -> str:
    return f"  %{name} = call token @llvm.tensor.load({pointer}, {shape}, {DENSE})\n"
