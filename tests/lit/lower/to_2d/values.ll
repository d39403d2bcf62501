; Small flattened vectors stay SSA values for ordinary instructions; buffers connect them with tensor operations.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define <9 x float> @arguments_and_results(<12 x float> %v, float %s) {
; CHECK-NEXT:    %v.buf = alloca [12 x float], align 64
; CHECK-NEXT:    %first.buf = alloca [9 x float], align 64
; CHECK-NEXT:    %m.buf = alloca [9 x float], align 64
; CHECK-NEXT:    %n.buf = alloca [9 x float], align 64
; CHECK-NEXT:    store <12 x float> %v, ptr %v.buf, align 64
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %v.buf, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) @tensor.constant, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %matmul = call <9 x float> @llvm.tensor.matmul.v9f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v9f32.v2i32(<9 x float> %matmul, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %m.buf, token %product, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %m = load <9 x float>, ptr %m.buf, align 64
; CHECK-NEXT:    %first = insertelement <9 x float> %m, float %s, i32 0
; CHECK-NEXT:    store <9 x float> %first, ptr %first.buf, align 64
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %first.buf, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %first.buf, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %matmul.1 = call <9 x float> @llvm.tensor.matmul.v9f32(token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %product.1 = call token @llvm.tensor.typeinfo.v9f32.v2i32(<9 x float> %matmul.1, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %n.buf, token %product.1, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %n = load <9 x float>, ptr %n.buf, align 64
; CHECK-NEXT:    ret <9 x float> %n
; CHECK-NEXT:  }
define <9 x float> @arguments_and_results(<12 x float> %v, float %s) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.typeinfo(<12 x float> <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0>, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <9 x float> @llvm.tensor.matmul(token %x, token %y)
  %first = insertelement <9 x float> %m, float %s, i32 0
  %t = call token @llvm.tensor.typeinfo(<9 x float> %first, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %n = call <9 x float> @llvm.tensor.matmul(token %t, token %t)
  ret <9 x float> %n
}

; Elements of a large result are loaded one by one.
; CHECK-LABEL: define float @element(ptr %a, i64 %i) {
; CHECK-NEXT:    %m.buf = alloca [3600 x float], align 64
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 60, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 60, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT:    %matmul = call <3600 x float> @llvm.tensor.matmul.v3600f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v3600f32.v2i32(<3600 x float> %matmul, <2 x i32> <i32 60, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %m.buf, token %product, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT: %t = icmp ult i64 %i, 3600
; CHECK-NEXT: %position = select i1 %t, i64 %i, i64 0
; CHECK-NEXT: %t.1 = getelementptr inbounds float, ptr %m.buf, i64 %position
; CHECK-NEXT:    %e = load float, ptr %t.1, align 4
; CHECK-NEXT:    ret float %e
; CHECK-NEXT:  }
define float @element(ptr %a, i64 %i) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 60, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <3600 x float> @llvm.tensor.matmul(token %x, token %x)
  %e = extractelement <3600 x float> %m, i64 %i
  ret float %e
}
