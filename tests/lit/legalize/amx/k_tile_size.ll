; If K divides into equal steps of whole groups of rows, tiles have that depth: nothing is padded, and A is read in place.
;
;     K = 96 bytes: two steps of 48, tiles of A of 16 rows x 48 bytes, of B of 12 rows x 64 bytes
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --tile=32x32 --remarks=%t | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --tile=32x32 --emulate-matrix | FileCheck %s --check-prefix=EMULATED

; REMARK: remark: matmul 32x32x96 i8 -> i32: matrix unit i8 x i8 -> i32, register tile 32x32, packed B,

; CHECK: k.loop:
; CHECK-DAG: call void @llvm.x86.tileloadd64(i8 4, ptr %{{.*}}, i64 64)
; CHECK-DAG: call void @llvm.x86.tileloadd64(i8 5, ptr %{{.*}}, i64 96)
; CHECK: call void @llvm.x86.tdpbssd(i8 0, i8 5, i8 4)
; CHECK: call void @llvm.x86.tilestored64(i8 0,
; CHECK: @tlx.amx.tiles = private unnamed_addr constant [64 x i8] c"\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\40\00\40\00\40\00\40\00\40\00\30\00\40\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\10\10\10\10\0C\10\0C\00\00\00\00\00\00\00\00\00", align 64

; EMULATED: call x86_amx @llvm.x86.tdpbssd.internal(i16 16, i16 64, i16 48,

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 32, i32 96>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 96, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x i32> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
