; A temporary of more than 16 KiB comes from malloc at the entry of the function and is freed at every return.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @may_alias(ptr %a, ptr %c) nounwind {
; CHECK-NEXT:    %local = alloca i32
; CHECK-NEXT:    %temporary.heap = call noalias ptr @malloc(i64 2560064)
; CHECK-NEXT:    %t.3 = ptrtoint ptr %temporary.heap to i64
; CHECK-NEXT:    %t.4 = sub i64 0, %t.3
; CHECK-NEXT:    %t.5 = and i64 %t.4, 63
; CHECK-NEXT:    %temporary.buf = getelementptr inbounds i8, ptr %temporary.heap, i64 %t.5
; CHECK-NEXT:    %t.6 = icmp eq ptr %temporary.heap, null
; CHECK-NEXT:    br i1 %t.6, label %out.of.memory, label %allocated
; CHECK-EMPTY:
; CHECK-NEXT:  out.of.memory:
; CHECK-NEXT:    call void @llvm.trap()
; CHECK-NEXT:    unreachable
; CHECK-EMPTY:
; CHECK-NEXT:  allocated:
; CHECK-NEXT:    %address = ptrtoint ptr %c to i64
; CHECK-NEXT:    %end = add i64 %address, 2560000
; CHECK-NEXT:    %address.1 = ptrtoint ptr %a to i64
; CHECK-NEXT:    %end.1 = add i64 %address.1, 2560000
; CHECK-NEXT:    %t.1 = icmp ult i64 %address.1, %end
; CHECK-NEXT:    %t.2 = icmp ult i64 %address, %end.1
; CHECK-NEXT:    %overlap = and i1 %t.1, %t.2
; CHECK-NEXT:    %destination = select i1 %overlap, ptr %temporary.buf, ptr %c
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 800, i32 800>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 800>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 800, i32 800>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 800>)
; CHECK-NEXT:    %matmul = call <640000 x float> @llvm.tensor.matmul.v640000f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v640000f32.v2i32(<640000 x float> %matmul, <2 x i32> <i32 800, i32 800>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %destination, token %product, <2 x i32> <i32 0, i32 800>)
; CHECK-NEXT:    br i1 %overlap, label %overlaps, label %overlap.end
; CHECK-EMPTY:
; CHECK-NEXT:  overlaps:
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %temporary.buf, i64 2560000, i1 false)
; CHECK-NEXT:    br label %overlap.end
; CHECK-EMPTY:
; CHECK-NEXT:  overlap.end:
; CHECK-NEXT:    call void @free(ptr %temporary.heap)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @may_alias(ptr %a, ptr %c) argmemonly nounwind {
  %local = alloca i32
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 800, i32 800>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <640000 x float> @llvm.tensor.matmul(token %x, token %x)
  %t = call token @llvm.tensor.typeinfo(<640000 x float> %m, <2 x i32> <i32 800, i32 800>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
