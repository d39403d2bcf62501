; A module with tile code requests permission from Linux before `main`: arch_prctl(ARCH_REQ_XCOMP_PERM, 18), system call 158.
; No other system is asked.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx | FileCheck %s --implicit-check-not=llvm.tensor.
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission | FileCheck %s --check-prefix=NONE --implicit-check-not=llvm.tensor.
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --mtriple=x86_64-pc-windows-msvc | FileCheck %s --check-prefix=NONE --implicit-check-not=llvm.tensor.
; RUN: sed '1s/.*/target triple = "x86_64-apple-macosx13.0"/; /^;/d' %s | tlx-lower - -o - --target=amx | FileCheck %s --check-prefix=NONE --implicit-check-not=llvm.tensor.
; RUN: sed '1s/.*/target triple = "x86_64-linux-gnu"/; /^;/d' %s | tlx-lower - -o - --target=amx | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define internal void @tlx.amx.permission() nounwind {
; CHECK-NEXT: entry:
; CHECK-NEXT: %{{.*}} = call i64 asm sideeffect "syscall", "={ax},{ax},{di},{si},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 158, i64 4131, i64 18)
; CHECK-NEXT: ret void
; CHECK-NEXT: }
; CHECK: @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @tlx.amx.permission, ptr null }]

; NONE-NOT: syscall
; NONE-NOT: global_ctors

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
entry:
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %sum = phi <1024 x float> [ zeroinitializer, %entry ], [ %next, %loop ]
  %acc = call token @llvm.tensor.typeinfo(<1024 x float> %sum, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %ak.i = mul i64 %k, 32
  %ak = getelementptr bfloat, ptr %a, i64 %ak.i
  %bk.i = mul i64 %k, 1024
  %bk = getelementptr bfloat, ptr %b, i64 %bk.i
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %ak, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 96>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(bfloat) %bk, <3 x i32> <i32 16, i32 32, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  %rhs.flat = call <1024 x bfloat> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 32, i32 32>)
  %rhs = call token @llvm.tensor.typeinfo(<1024 x bfloat> %rhs.flat, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %next = call <1024 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 3
  br i1 %more, label %loop, label %end

end:
  %out = call token @llvm.tensor.typeinfo(<1024 x float> %next, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
