; 28 columns are two tiles: the first is stored directly, 12 columns of the second one through scratch memory.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --check=1 -o - | FileCheck %s
; RUN: tlx-lower %t.ll --target=amx --emulate-matrix --check=1 -o %t.o.ll

; CHECK-LABEL: define internal void @tlx.matmul.32x28x64
; CHECK:         call void @llvm.x86.tilestored64{{.*}}ptr %c, i64 112
; CHECK:         call void @llvm.x86.tilestored64{{.*}}ptr %tiles, i64 64
; CHECK:         call void @llvm.x86.tilestored64{{.*}}, i64 112
; CHECK:         call void @llvm.x86.tilestored64{{.*}}, i64 64
; CHECK-NOT:     tilestored
; CHECK-COUNT-32: call void @llvm.masked.store.v16i32
; CHECK-NOT:     call void @llvm.masked.store
; CHECK:         ret void
define void @f(ptr noalias %y, ptr %x, ptr %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %x, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call token @llvm.tensor.load(ptr elementtype(i8) %w, <3 x i32> <i32 16, i32 28, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %f = call <1792 x i8> @llvm.tensor.reshape.permute(token %p, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 64, i32 28>)
  %b = call token @llvm.tensor.typeinfo(<1792 x i8> %f, <2 x i32> <i32 64, i32 28>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <896 x i32> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<896 x i32> %m, <2 x i32> <i32 32, i32 28>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  ret void
}
