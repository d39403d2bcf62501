; A product that the matrix unit cannot multiply is vector code, and a remark says so: no tile instruction multiplies i32.
;
; RUN: tlx-lower %s -o /dev/null --target=amx --remarks 2>&1 | FileCheck %s --implicit-check-not=remark:
; CHECK: remark: matmul 32x32x32 i32: multiply-add i32 x i32 -> i32, {{.*}} [to-tiles]
; CHECK: remark: matmul 32x32x32 i32: the matrix unit of amx does not multiply these types; vector code is used [to-tiles]
; CHECK: remark: matmul 32x32x64 i8 -> i32: matrix unit i8 x i8 -> i32, register tile 32x32, packed B, blocks M 32, N 32, K 64; about {{[0-9]+}} % of peak; B packed: the matrix unit reads groups of 4 along K [to-tiles]

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i32) %a, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i32) %b, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x i32> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x i32> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
