; Four steps of K, or two of bytes on Power10, keep their sums in registers: those of float and double in the 64 of VSX,
; those of bytes in the 32 of VMX. Operands are loaded ahead of their products, so that few wait, and no register is
; copied. The bounds are what LLVM's models of the processors allow (docs/machines/targets.md).
;
; REQUIRES: clang-19, llvm-mca-19, llvm-filecheck
; RUN: sed 's/ELEMENT/float/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr9 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr9 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr9 --bound=1.03 | FileCheck %s --check-prefix=FLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/bfloat/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr9 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr9 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr9 --bound=1.03 | FileCheck %s --check-prefix=FLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/i8/g; s/SUM/i32/g' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr9 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr9 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr9 --bound=1.08 | FileCheck %s --check-prefix=BYTES9 --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/double/g; s/SUM/double/g' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr9 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr9 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr9 --bound=1.18 | FileCheck %s --check-prefix=DOUBLE --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/float/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr10 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.11 | FileCheck %s --check-prefix=FLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/bfloat/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr10 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.11 | FileCheck %s --check-prefix=FLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/i8/g; s/SUM/i32/g' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr10 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.40 | FileCheck %s --check-prefix=BYTES10 --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/double/g; s/SUM/double/g' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr10 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.11 | FileCheck %s --check-prefix=DOUBLE --implicit-check-not="stack {{[1-9]}}"
;
; FLOAT: lxv v 32
; FLOAT-NEXT: lxvwsx v 20
; FLOAT-NEXT: xvmaddasp v 160
; BYTES9: lxv v 16
; BYTES9-NEXT: lxvwsx v 16
; BYTES9-NEXT: vmsummbm v 64
; BYTES10: lxv v 12
; BYTES10-NEXT: lxvwsx v 6
; BYTES10-NEXT: vmsummbm v 36
; DOUBLE: lxv v 32
; DOUBLE-NEXT: lxvdsx v 20
; DOUBLE-NEXT: xvmaddadp v 160

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(ELEMENT) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(ELEMENT) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x SUM> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x SUM> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
