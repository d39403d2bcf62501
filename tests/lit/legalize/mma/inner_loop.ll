; A step of K multiplies in 2x4 accumulators and loads operands ahead of their products, without spills. By llvm-mca, the
; loops are within 7 % of the bound by the ports, and within 15 % for double, whose A is twice as wide.
; Signed by signed bytes are multiplied with the signs of A flipped.
;
; REQUIRES: clang-19, llvm-mca-19, llvm-filecheck
; RUN: sed 's/ELEMENT/float/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=mma --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.07 | FileCheck %s --check-prefix=FLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/bfloat/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=mma --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.07 | FileCheck %s --check-prefix=BFLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/i8/g; s/SUM/i32/g' %s | tlx-lower - -o %t.ll --target=mma --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.07 | FileCheck %s --check-prefix=BYTES --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/double/g; s/SUM/double/g' %s | tlx-lower - -o %t.ll --target=mma --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.15 | FileCheck %s --check-prefix=DOUBLE --implicit-check-not="stack {{[1-9]}}"
;
; FLOAT: lxv v 96
; FLOAT-NEXT: xvf32gerpp v 128
; BFLOAT: lxv v 96
; BFLOAT-NEXT: xvbf16ger2pp v 128
; BYTES: lxv v 96
; BYTES-NEXT: xvi8ger4pp v 128
; DOUBLE: lxv v 128
; DOUBLE-NEXT: xvf64gerpp v 128

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
