; Files with typed pointers keep them; buffers, addresses and copies have typed pointers, too.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @f(float* %a, <160 x float>* byval(<160 x float>) %b, float* %c, i8* noalias %d, i8* noalias %e) {
; CHECK-NEXT:    %temporary.buf = alloca [128 x float], align 64
; CHECK-NEXT:    %address = ptrtoint float* %c to i64
; CHECK-NEXT:    %end = add i64 %address, 512
; CHECK-NEXT:    %address.1 = ptrtoint float* %a to i64
; CHECK-NEXT:    %end.1 = add i64 %address.1, 640
; CHECK-NEXT:    %t.1 = icmp ult i64 %address.1, %end
; CHECK-NEXT:    %t.2 = icmp ult i64 %address, %end.1
; CHECK-NEXT:    %overlap = and i1 %t.1, %t.2
; CHECK-NEXT:    %t.3 = bitcast [128 x float]* %temporary.buf to float*
; CHECK-NEXT:    %destination = select i1 %overlap, float* %t.3, float* %c
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 80
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 80
; CHECK-NEXT:    %batch.offset.2 = mul i64 %batch, 64
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, float* %a, i64 %batch.offset
; CHECK-NEXT:    %t.4 = bitcast <160 x float>* %b to float*
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, float* %t.4, i64 %batch.offset.1
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, float* %destination, i64 %batch.offset.2
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0f32.v2i32(float* %lhs.ptr, <2 x i32> <i32 8, i32 10>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 10>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0f32.v2i32(float* %rhs.ptr, <2 x i32> <i32 10, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %matmul = call <64 x float> @llvm.tensor.matmul.v64f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v64f32.v2i32(<64 x float> %matmul, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0f32.v2i32(float* %out.ptr, token %product, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NEXT:    %t.5 = icmp slt i64 %batch.next, 2
; CHECK-NEXT:    br i1 %t.5, label %batch.loop, label %batch.end
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    br i1 %overlap, label %overlaps, label %overlap.end
; CHECK-EMPTY:
; CHECK-NEXT:  overlaps:
; CHECK-NEXT:    %t.6 = bitcast float* %c to i8*
; CHECK-NEXT:    %t.7 = bitcast float* %t.3 to i8*
; CHECK-NEXT:    call void @llvm.memcpy.p0i8.p0i8.i64(i8* %t.6, i8* %t.7, i64 512, i1 false)
; CHECK-NEXT:    br label %overlap.end
; CHECK-EMPTY:
; CHECK-NEXT:  overlap.end:
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0i8.v2i32(i8* elementtype(i8) %d, <2 x i32> <i32 8, i32 10>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 10>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0i8.v2i32(i8* %e, token %rows, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @f(float* %a, <160 x float>* byval(<160 x float>) %b, float* %c, i8* noalias %d, i8* noalias %e) {
  %x = call token @llvm.tensor.load(float* %a, <3 x i32> <i32 2, i32 8, i32 10>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.typeinfo(<160 x float>* byval(<160 x float>) %b, <3 x i32> <i32 2, i32 10, i32 8>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %m = call <128 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<128 x float> %m, <3 x i32> <i32 2, i32 8, i32 8>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <3 x i32> zeroinitializer)
  %z = call token @llvm.tensor.load(i8* elementtype(i8) %d, <2 x i32> <i32 8, i32 10>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(i8* %e, token %z, <2 x i32> <i32 0, i32 16>)
  ret void
}
