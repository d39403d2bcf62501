; The summary for ThinLTO is removed, as it describes functions as they were, and names others that are gone.
; RUN: tlx-lower %s --target=generic | FileCheck %s --implicit-check-not='^{{[0-9]}}'
; CHECK-LABEL: define void @f(
; CHECK: declare
; CHECK: !0 = !{}

define void @f(ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> <i32 80>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %x, <1 x i32> zeroinitializer)
  ret void
}

!named = !{!0}
!0 = !{}
^0 = module: (path: "", hash: (0, 0, 0, 0, 0))
^1 = gv: (name: "f", summaries: (function: (module: ^0, flags: (linkage: external, visibility: default, notEligibleToImport: 0, live: 0, dsoLocal: 0, canAutoHide: 0), insts: 3))) ; guid = 1
