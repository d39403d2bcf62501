// A lowered object file is linked into a C program without any flags.
//
// REQUIRES: clang-19, host-x86_64
// RUN: tlx-lower --target=generic --emit=obj -O2 %S/Inputs/gemm.ll -o %t.o
// RUN: clang-19 %s %t.o -o %t.exe && %t.exe | FileCheck %s
// RUN: tlx-lower --target=generic %S/Inputs/gemm.ll -o %t.ll
// RUN: clang-19 -O2 -Wno-override-module %s %t.ll -o %t.exe && %t.exe | FileCheck %s
// CHECK: 50 60 114 140 178 220

#include <stdio.h>

void gemm(const float *a, const float *b, float *c);

int main(void) {
  const float a[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const float b[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float c[6];
  gemm(a, b, c);
  for (int i = 0; i < 6; i++)
    printf("%g ", c[i]);
}
