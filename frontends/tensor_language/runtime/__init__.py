"""Compile kernels into this process or for a device, and call them with arrays.

    kernels = tl.compile("func @scale(%a: f32, %A: memref<f32x?x?>) { ... }")
    kernels.scale(2.0, array)                          one work-group
    kernels.fused(2.0, arrays, b, groups=(4, 2))       4 x 2 work-groups

`tlx.api.compiler` lowers, compiles and loads.
"""
