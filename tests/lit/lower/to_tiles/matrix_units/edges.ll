; At edges, tiles remain whole. A and B are packed with zeros along K; the last tiles of rows and columns end at the edge
; and overlap the previous ones, which compute the same elements.
;
;     M = 34, N = 40, K = 70: 32 rows and 16 from row 18 on, 32 columns and 16 from column 24 on, 64 + 6 positions
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --tile=32x32 --knobs=mc=34 --stop-after=to-tiles | FileCheck %s

; CHECK: call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 4, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 58>, <2 x i32> <i32 0, i32 70>)
; CHECK: getelementptr inbounds i8, ptr %a, i64 1260
; CHECK: call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 2, i32 0>, <2 x i32> <i32 0, i32 40>)
; CHECK: z.loop
; CHECK: smma{{.*}}
; CHECK: call void @llvm.tensor.store{{.*}}, <2 x i32> <i32 0, i32 40>)
; CHECK: getelementptr inbounds i32, ptr %c, i64 720
; CHECK: call token @llvm.tensor.load{{.*}}, <4 x i32> <i32 1, i32 16, i32 16, i32 4>,
; CHECK: call token @llvm.tensor.typeinfo.v512i32.v2i32(<512 x i32> %smma{{.*}}, <2 x i32> <i32 32, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK: getelementptr inbounds i32, ptr %c, i64 744

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 34, i32 70>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 70, i32 40>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1360 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1360 x i32> %m, <2 x i32> <i32 34, i32 40>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
