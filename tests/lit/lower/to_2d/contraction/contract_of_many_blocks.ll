; The products of many blocks are summed in registers, and the epilogue follows in the same kernel.
; RUN: tlx-lower %s --target=amx -o %t.o.ll --remarks=- | FileCheck %s
; RUN: tlx-lower %s -o %t.o.ll --target=amx --check --emulate-matrix

; CHECK:     fused contract, relu into fptrunc: no intermediate result goes through memory
; CHECK:     matmul 16x16x128*32 bfloat -> float: matrix unit {{.*}} epilogue: relu, fptrunc
; CHECK-NOT: matmul
define void @layer(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %a.t = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <4 x i32> <i32 128, i32 16, i32 16, i32 2>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b.t = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <4 x i32> <i32 128, i32 16, i32 16, i32 2>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %sum = call <256 x float> @llvm.tensor.contract(token %a.t, token %b.t, <3 x i32> <i32 0, i32 2, i32 3>, <3 x i32> <i32 0, i32 1, i32 3>)
  %sum.t = call token @llvm.tensor.typeinfo(<256 x float> %sum, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %relu = call <256 x float> @llvm.tensor.relu(token %sum.t)
  %rounded = fptrunc <256 x float> %relu to <256 x bfloat>
  %rounded.t = call token @llvm.tensor.typeinfo(<256 x bfloat> %rounded, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %rounded.t, <2 x i32> zeroinitializer)
  ret void
}
