; Tiles of A and of C have as many rows as the product: 4 rows are not padded to 16, and 24 rows are two tiles of 12.
; Each is read and stored in place.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --tile=16x64 --remarks=%t | FileCheck %s --check-prefixes=CHECK,FOUR
; RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
; RUN: grep -v '^;' %s | sed 's/i32 4,/i32 24,/g; s/<384 x/<2304 x/g' | tlx-lower - -o - --target=amx --tile=32x32 | FileCheck %s --check-prefixes=CHECK,TWELVE
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --tile=16x64 --emulate-matrix | FileCheck %s --check-prefix=EMULATED
; RUN: grep -v '^;' %s | tlx-lower - -o %t.o --target=amx --tile=16x64 -O2 --emit=obj

; REMARK: register tile 4x64, nothing packed

; CHECK-NOT: alloca
; FOUR: call void @llvm.x86.tileloadd64(i8 [[A:.]], ptr %a, i64 64)
; FOUR: call void @llvm.x86.tdpbf16ps(i8 [[C:.]], i8 [[A]], i8 [[B:.]])
; FOUR: call void @llvm.x86.tilestored64(i8 [[C]], ptr %c, i64 384)
; FOUR: @tlx.amx.tiles = private unnamed_addr constant [64 x i8] c"\01{{.*}}\00\00\10\04\04\04\04\04\00\00\00\00
; TWELVE: %[[ROW:.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 768
; TWELVE: call void @llvm.x86.tileloadd64(i8 {{.}}, ptr %[[ROW]], i64 64)
; TWELVE: @tlx.amx.tiles = private unnamed_addr constant [64 x i8] c"\01{{.*}}\0C\0C

; EMULATED: call x86_amx @llvm.x86.tdpbf16ps.internal(i16 4, i16 64, i16 64,

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 4, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %pairs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 16, i32 96, i32 2>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %flat = call <3072 x bfloat> @llvm.tensor.reshape.permute(token %pairs, <3 x i32> <i32 0, i32 2, i32 1>,
      <2 x i32> <i32 32, i32 96>)
  %rhs = call token @llvm.tensor.typeinfo(<3072 x bfloat> %flat, <2 x i32> <i32 32, i32 96>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  %m = call <384 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<384 x float> %m, <2 x i32> <i32 4, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
