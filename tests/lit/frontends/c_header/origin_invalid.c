// With -g, a diagnostic names the line of the C program too.
//
// REQUIRES: clang-19
// RUN: clang-19 -g -O1 -S -emit-llvm -I%include %s -o - | not tlx raise 2>&1 | FileCheck %s
// CHECK: <stdin>:{{[0-9]+}}:{{[0-9]+}}: error: tensor_typeinfo: layout <1, 1> is not a permutation of 0 to 1
// CHECK: {{^}}note: this is {{.*}}origin_invalid.c:[[# @LINE + 8 ]]:{{[0-9]+}} of the C program

#include <tlx.h>

typedef float tensor __attribute__((__vector_size__(64), __aligned__(4)));
typedef int dims __attribute__((__vector_size__(8), __aligned__(4)));

tensor f(tensor x) {
  int t = tensor_typeinfo(x, (dims){4, 4}, (dims){1, 1}, (dims){0, 0});
  return TLX_CALL(tensor, matmul, t, t);
}
