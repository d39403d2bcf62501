// The program in the proposal's section on testing (with operands that can be multiplied), with the header.
//
// REQUIRES: clang-19, clang-14
// RUN: clang-19 -O0 -S -emit-llvm -I%include %s -o - | tlx raise | FileCheck %s --check-prefixes=CHECK,OPAQUE
// RUN: clang-19 -O2 -S -emit-llvm -I%include %s -o - | tlx raise | FileCheck %s --check-prefixes=CHECK,OPAQUE
// RUN: clang-14 -O0 -S -emit-llvm -I%include %s -o - | tlx raise | FileCheck %s --check-prefixes=CHECK,TYPED
// RUN: clang-14 -O2 -S -emit-llvm -I%include %s -o - | tlx raise | FileCheck %s --check-prefixes=CHECK,TYPED
// RUN: clang-19 -O0 -S -emit-llvm -I%include %s -o - | tlx raise | tlx verify | count 0

#include <tlx.h>

typedef int _tensor_t  __attribute__((__vector_size__(25600000)));
typedef int _shape_t   __attribute__((__vector_size__(16), __aligned__(4)));
typedef int _layout_t  __attribute__((__vector_size__(16), __aligned__(4)));
typedef int _padding_t __attribute__((__vector_size__(16), __aligned__(4)));
typedef int _token_t;

// CHECK-LABEL: define dso_local void @example(
// OPAQUE-SAME: ptr {{.*}}byval(<6400000 x i32>) align 33554432 [[A:%.*]], ptr {{.*}}byval(<6400000 x i32>) align 33554432 [[B:%.*]]) {{.*}}{
// OPAQUE-NEXT: [[TA:%.*]] = call token @llvm.tensor.typeinfo.p0.v4i32(ptr byval(<6400000 x i32>) [[A]], <4 x i32> <i32 1, i32 10, i32 800, i32 800>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> {{zeroinitializer|<i32 0, i32 0, i32 0, i32 0>}})
// OPAQUE-NEXT: [[TB:%.*]] = call token @llvm.tensor.typeinfo.p0.v4i32(ptr byval(<6400000 x i32>) [[B]],
// TYPED-SAME: <6400000 x i32>* {{.*}}byval(<6400000 x i32>) align 33554432 [[A:%.*]], <6400000 x i32>* {{.*}}byval(<6400000 x i32>) align 33554432 [[B:%.*]]) {{.*}}{
// TYPED-NEXT: [[TA:%.*]] = call token @llvm.tensor.typeinfo.p0v6400000i32.v4i32(<6400000 x i32>* byval(<6400000 x i32>) [[A]], <4 x i32> <i32 1, i32 10, i32 800, i32 800>,
// TYPED-NEXT: [[TB:%.*]] = call token @llvm.tensor.typeinfo.p0v6400000i32.v4i32(<6400000 x i32>* byval(<6400000 x i32>) [[B]],
// CHECK-NEXT: [[C:%.*]] = call <6400000 x i32> @llvm.tensor.matmul.v6400000i32(token [[TA]], token [[TB]])
// CHECK-NEXT: call token @llvm.tensor.typeinfo.v6400000i32.v4i32(<6400000 x i32> [[C]], <4 x i32> <i32 1, i32 10, i32 800, i32 800>,
// CHECK-NEXT: ret void
// CHECK-NOT: @tensor_
void example(_tensor_t tensor1, _tensor_t tensor2) {
  _shape_t shape = {1, 10, 800, 800};
  _layout_t layout = {0, 1, 2, 3};
  _padding_t padding = {0, 0, 0, 0};

  /* Define type information for the input tensors */
  _token_t tensor1_token = tensor_typeinfo(tensor1, shape, layout, padding);
  _token_t tensor2_token = tensor_typeinfo(tensor2, shape, layout, padding);

  /* Perform Matmul */
  _tensor_t tensor3 = tensor_matmul(tensor1_token, tensor2_token);

  /* Define type information for the output tensor */
  _token_t tensor3_token = tensor_typeinfo(tensor3, shape, layout, padding);
}
