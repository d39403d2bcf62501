; A step of K keeps its sums in registers; by llvm-mca, the loops are within 7 % of the bound by the ports. Without dot
; products, bytes are multiplied as i32, and bfloat as float.
;
; REQUIRES: clang-19, llvm-mca-19, llvm-filecheck
; RUN: sed 's/ELEMENT/float/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=rvv --mcpu=sifive-x280 --mtriple=riscv64-linux-gnu
; RUN: clang-19 --target=riscv64-linux-gnu -mcpu=sifive-x280 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=sifive-x280 --bound=1.07 | FileCheck %s --check-prefix=FLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/bfloat/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=rvv --mcpu=sifive-x280 --mtriple=riscv64-linux-gnu
; RUN: clang-19 --target=riscv64-linux-gnu -mcpu=sifive-x280 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=sifive-x280 --bound=1.07 | FileCheck %s --check-prefix=BFLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/i8/g; s/SUM/i32/g' %s | tlx-lower - -o %t.ll --target=rvv --mcpu=sifive-x280 --mtriple=riscv64-linux-gnu
; RUN: clang-19 --target=riscv64-linux-gnu -mcpu=sifive-x280 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=sifive-x280 --bound=1.07 | FileCheck %s --check-prefix=BYTES --implicit-check-not="stack {{[1-9]}}"
;
; FLOAT: vle32.v v 4
; FLOAT-NEXT: vfmacc.vf v 24
; BFLOAT: vle32.v v 4
; BFLOAT-NEXT: vfmacc.vf v 24
; BYTES: vle32.v v 4
; BYTES-NEXT: vmacc.vx v 24

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
