; 49 columns are three registers and one column, which is summed along K: it is copied to a row, and multiplied by the rows of
; each block of A while they are in the cache.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 --stop-after=to-tiles --remarks -o - 2>&1 | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 -o - | FileCheck %s --check-prefix=PLAIN
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 --threads=openmp --stop-after=to-tiles -o - | FileCheck %s --check-prefix=THREADS

; CHECK: remark: matmul 512x49x512 float: {{.*}}register tile {{[0-9]+}}x48, {{.*}}; the last column is summed along K
; CHECK-LABEL: define internal void @tlx.matmul.512x49x512.f32.f32.f32(
; CHECK:         %b.rows = call <16 x float> @llvm.tensor.transpose
; CHECK:       k.loop{{.*}}:
; CHECK:         llvm.tensor.smma
; CHECK:       part.end:
; CHECK:         llvm.tensor.smma
; CHECK-NOT:     llvm.tensor.smma
; CHECK:       dr.loop:
; CHECK:       kd.loop:
; CHECK:         %dot{{.*}} = call <16 x float> @llvm.fma.v16f32(<16 x float> %{{.*}}, <16 x float> %{{.*}}, <16 x float> %kd.acc
; CHECK:       kd.end:
; CHECK:         @llvm.tensor.reduce.add
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %c{{.*}}, <2 x i32> <i32 0, i32 49>)

; PLAIN:       kd.loop:
; PLAIN:         call <16 x float> @llvm.fma.v16f32(

; THREADS-NOT:   kd.loop
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 512, i32 49>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <25088 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<25088 x float> %m, <2 x i32> <i32 512, i32 49>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
