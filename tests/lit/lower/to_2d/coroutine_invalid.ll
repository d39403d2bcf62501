; Each return of a coroutine frees temporaries, also one that only suspends it: tensors in coroutines are errors.
; RUN: not tlx-lower %s --target=generic -o - 2>&1 | FileCheck %s
; RUN: sed 's/ presplitcoroutine/ "coroutine.presplit"="0"/' %s | not tlx-lower - --target=generic -o - 2>&1 | FileCheck %s
; CHECK: :9:3: error: @f is a coroutine, which cannot have tensors: move them to a function it calls

define void @f(ptr %a) presplitcoroutine {
  %id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %h = call ptr @llvm.coro.begin(token %id, ptr null)
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> <i32 8>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %a, token %x, <1 x i32> zeroinitializer)
  ret void
}

declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare ptr @llvm.coro.begin(token, ptr)
