"""Models for fuzzers, which corrupt them: StableHLO as MLIR text, and as the portable artifacts that JAX exports."""

from __future__ import annotations

from typing import Final

from jaxlib.mlir.dialects import stablehlo

_VERSION: Final = "1.8.0"
"""Version of the artifacts: many releases of JAX write it, so that a seed corrupts the same bytes with each of them."""
_LAYERS: Final = """\
func.func public @main(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>)
    -> (tensor<2x3xf32> {jax.result_info = "softmax"}, tensor<2x3xbf16> {jax.result_info = "hidden"}) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %scale = stablehlo.constant dense<[1.0, 0.5, 0.25]> : tensor<3xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.multiply %b, %scale : tensor<3xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %3 = stablehlo.add %0, %2 : tensor<2x3xf32>
  %4 = call @relu(%3) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = stablehlo.reduce(%4 init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %7 = stablehlo.subtract %4, %6 : tensor<2x3xf32>
  %8 = stablehlo.exponential %7 : tensor<2x3xf32>
  %9 = stablehlo.reduce(%8 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %10 = stablehlo.reshape %9 : (tensor<2xf32>) -> tensor<2x1xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %12 = stablehlo.divide %8, %11 : tensor<2x3xf32>
  %13 = stablehlo.convert %4 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
  return %12, %13 : tensor<2x3xf32>, tensor<2x3xbf16>
}
func.func private @relu(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x3xf32>
  %0 = stablehlo.compare GT, %x, %cst, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %1 = stablehlo.select %0, %x, %cst : tensor<2x3xi1>, tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
"""
_NETWORK: Final = """\
func.func public @main(%x: tensor<1x2x9x9xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<2x1x6x5xf32> {
  %three = stablehlo.constant dense<3.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x2x9x9xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x5x5xf32>
  %1 = "stablehlo.reduce_window"(%0, %low) <{window_dimensions = array<i64: 1, 1, 2, 2>,
      window_strides = array<i64: 1, 1, 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %7 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %7 : tensor<f32>
  }) : (tensor<1x3x5x5xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %2 = stablehlo.pad %1, %three, low = [0, 1, 0, 2], high = [0, 0, 0, 1], interior = [0, 0, 0, 0]
      : (tensor<1x3x2x2xf32>, tensor<f32>) -> tensor<1x4x2x5xf32>
  %3 = stablehlo.slice %2 [0:1, 1:4, 0:2, 0:5] : (tensor<1x4x2x5xf32>) -> tensor<1x3x2x5xf32>
  %4 = stablehlo.reverse %3, dims = [2] : tensor<1x3x2x5xf32>
  %5 = stablehlo.concatenate %4, %3, dim = 1 : (tensor<1x3x2x5xf32>, tensor<1x3x2x5xf32>) -> tensor<1x6x2x5xf32>
  %6 = stablehlo.transpose %5, dims = [2, 0, 1, 3] : (tensor<1x6x2x5xf32>) -> tensor<2x1x6x5xf32>
  return %6 : tensor<2x1x6x5xf32>
}
"""
_LOOP: Final = """\
func.func public @main(%n: tensor<i32>, %x: tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<5xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<5x3xf32>
  cond {
    %4 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %4 = stablehlo.dynamic_slice %v, %i, %zero, sizes = [1, 3]
        : (tensor<5x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %5 = stablehlo.tanh %4 : tensor<1x3xf32>
    %6 = stablehlo.dynamic_update_slice %v, %5, %n, %zero
        : (tensor<5x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<5x3xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<5x3xf32>
  }
  %1 = "stablehlo.case"(%n) ({
    %4 = "stablehlo.sort"(%0#1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %5 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }) : (tensor<5x3xf32>) -> tensor<5x3xf32>
    stablehlo.return %4 : tensor<5x3xf32>
  }, {
    stablehlo.return %x : tensor<5x3xf32>
  }) : (tensor<i32>) -> tensor<5x3xf32>
  %2 = stablehlo.iota dim = 0 : tensor<5xi32>
  %3 = "stablehlo.gather"(%2, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
      start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}>
      : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
  return %1, %3 : tensor<5x3xf32>, tensor<5xi32>
}
"""
_TEXTS: Final = (_LAYERS, _NETWORK, _LOOP)
_ARTIFACTS: Final = tuple(stablehlo.serialize_portable_artifact_str(text, _VERSION) for text in _TEXTS)
EXAMPLES: Final[tuple[bytes | str, ...]] = (*_ARTIFACTS, *_ARTIFACTS, *_TEXTS)
"""Each artifact counts twice, since users have more artifacts than texts."""
