; Tiles of 6 and of 5 rows share the function of their epilogue, which takes their height.
;
; RUN: tlx-lower %s --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: tlx-lower %s --target=avx512 --check -o /dev/null

; CHECK-LABEL: define internal void @tlx.matmul.37x64x40
; CHECK: call void @[[EPILOGUE:tlx.+.epilogue]](i64 %{{.+}}, ptr %scratch, ptr %c, i64 6)
; CHECK: call void @[[EPILOGUE]](i64 %{{.+}}, ptr %scratch, ptr %c, i64 5)
; CHECK: define internal void @[[EPILOGUE]](i64 %{{.+}}, ptr %scratch, ptr %c, i64 %[[HEIGHT:.+]])
; CHECK: er.loop:
; CHECK: icmp slt i64 %er.next, %[[HEIGHT]]
; CHECK-NOT: define internal
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 37, i32 40>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 40, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <2368 x float> @llvm.tensor.matmul(token %x, token %y)
  %e = call <2368 x float> @llvm.exp.v2368f32(<2368 x float> %p)
  %t = call token @llvm.tensor.typeinfo(<2368 x float> %e, <2 x i32> <i32 37, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

declare <2368 x float> @llvm.exp.v2368f32(<2368 x float>)
