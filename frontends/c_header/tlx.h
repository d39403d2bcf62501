/* tlx.h - tensor operations for C and C++, compiled by clang 14 or newer.

   Generated from the table of intrinsics; do not edit.

   The functions declared here have no definition. clang compiles calls of them to LLVM IR, and tlx-lower turns these
   calls into loops and vector code:

       clang -S -emit-llvm -O1 -I`tlx --include-dir` program.c -o program.ll
       tlx-lower program.ll -o lowered.ll
       clang lowered.ll -o program

   The elements of a tensor are a value of a vector type, of any size; a shape is a vector of int. An int is a handle of
   a tensor with its shape, layout and padding:

       typedef float _tensor_t __attribute__((__vector_size__(64), __aligned__(4)));
       typedef int dims __attribute__((__vector_size__(8), __aligned__(4)));

       int x = tensor_typeinfo(v, (dims){4, 4}, (dims){0, 1}, (dims){0, 0});   (shape, layout, padding)
       _tensor_t y = tensor_matmul(x, x);

   An operation returns the type that the name _tensor_t denotes at the call. For another type write
   TLX_CALL(type, matmul, x, x); or declare it once by TLX_TENSOR(f32_4x4, type) and call tensor_matmul_f32_4x4(x, x).

   clang passes vectors of 8 bytes or less as integers, which loses their element type. tensor_typeinfo keeps it where
   functions can be overloaded: in C++, and in C from clang 15 on. Elsewhere call tensor_typeinfo_f32 and the like. */
#ifndef TLX_H
#define TLX_H

#ifndef __clang__
#error "tlx.h needs clang"
#else

/* The user's -Wpedantic, -Wstrict-prototypes and so on concern the user's code. */
#pragma clang system_header

/* The calls are never executed, so it does not matter how they pass vectors. */
#pragma clang diagnostic ignored "-Wpsabi"

/* Each handle must come from exactly one call: the optimiser may not merge calls, nor make a call depend on control
   flow that it did not depend on. */
#define TLX_ATTRIBUTES __attribute__((__nothrow__, __convergent__, __nomerge__))

#if defined(__cplusplus)
#define TLX_OVERLOAD
#else
#define TLX_OVERLOAD __attribute__((__overloadable__))
#endif

#ifdef __cplusplus
extern "C++" {
#endif

/* X(type, element, bytes) for each element type. */
#if __SIZEOF_LONG__ == 8
#define TLX_EACH_LONG(X) X(long, i64, 8) X(unsigned long, i64, 8)
#else
#define TLX_EACH_LONG(X) X(long, i32, 4) X(unsigned long, i32, 4)
#endif
#if __clang_major__ >= 15 && (defined(__SSE2__) || defined(__aarch64__))
#define TLX_EACH_FLOAT16(X) X(_Float16, f16, 2)
#else
#define TLX_EACH_FLOAT16(X)
#endif
#if __clang_major__ >= 17 && (defined(__SSE2__) || defined(__aarch64__))
#define TLX_EACH_BFLOAT16(X) X(__bf16, bf16, 2)
#else
#define TLX_EACH_BFLOAT16(X)
#endif
#define TLX_EACH_TYPE(X) \
  X(char, i8, 1) X(signed char, i8, 1) X(unsigned char, i8, 1) \
  X(short, i16, 2) X(unsigned short, i16, 2) \
  X(int, i32, 4) X(unsigned, i32, 4) \
  TLX_EACH_LONG(X) X(long long, i64, 8) X(unsigned long long, i64, 8) \
  TLX_EACH_FLOAT16(X) TLX_EACH_BFLOAT16(X) X(float, f32, 4) X(double, f64, 8)

/* tensor_typeinfo(tensor, shape, layout, padding): Declares the shape, layout and padding of a flattened vector.
   Returns a token. */
#if defined(__cplusplus) || __clang_major__ >= 15
TLX_OVERLOAD int tensor_typeinfo(...) __asm__("tensor_typeinfo") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_typeinfo_i8(...) __asm__("tensor_typeinfo_i8") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_typeinfo_i16(...) __asm__("tensor_typeinfo_i16") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_typeinfo_i32(...) __asm__("tensor_typeinfo_i32") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_typeinfo_i64(...) __asm__("tensor_typeinfo_i64") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_typeinfo_f16(...) __asm__("tensor_typeinfo_f16") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_typeinfo_bf16(...) __asm__("tensor_typeinfo_bf16") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_typeinfo_f32(...) __asm__("tensor_typeinfo_f32") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_typeinfo_f64(...) __asm__("tensor_typeinfo_f64") TLX_ATTRIBUTES;
#define TLX_SMALL(T, element, size) \
  TLX_OVERLOAD int tensor_typeinfo(T __attribute__((__vector_size__(size))), ...) \
      __asm__("tensor_typeinfo_" #element) TLX_ATTRIBUTES;
#define TLX_SMALL_1(T, element) \
  TLX_SMALL(T, element, 1) TLX_SMALL(T, element, 3) TLX_SMALL(T, element, 5) TLX_SMALL(T, element, 7) \
  TLX_SMALL_2(T, element)
#define TLX_SMALL_2(T, element) TLX_SMALL(T, element, 2) TLX_SMALL(T, element, 6) TLX_SMALL_4(T, element)
#define TLX_SMALL_4(T, element) TLX_SMALL(T, element, 4) TLX_SMALL(T, element, 8)
#define TLX_SMALL_8(T, element) TLX_SMALL(T, element, 8)
#define TLX_SMALL_SIZES(T, element, bytes) TLX_SMALL_##bytes(T, element)
TLX_EACH_TYPE(TLX_SMALL_SIZES)
#undef TLX_SMALL
#undef TLX_SMALL_1
#undef TLX_SMALL_2
#undef TLX_SMALL_4
#undef TLX_SMALL_8
#undef TLX_SMALL_SIZES
#else
int tensor_typeinfo() TLX_ATTRIBUTES;
int tensor_typeinfo_i8() TLX_ATTRIBUTES;
int tensor_typeinfo_i16() TLX_ATTRIBUTES;
int tensor_typeinfo_i32() TLX_ATTRIBUTES;
int tensor_typeinfo_i64() TLX_ATTRIBUTES;
int tensor_typeinfo_f16() TLX_ATTRIBUTES;
int tensor_typeinfo_bf16() TLX_ATTRIBUTES;
int tensor_typeinfo_f32() TLX_ATTRIBUTES;
int tensor_typeinfo_f64() TLX_ATTRIBUTES;
#endif

/* tensor_totensor(vector, shape, layout, padding): Makes a token of a flattened vector; another name for
   `llvm.tensor.typeinfo`. Returns a token. */
#if defined(__cplusplus) || __clang_major__ >= 15
TLX_OVERLOAD int tensor_totensor(...) __asm__("tensor_totensor") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_totensor_i8(...) __asm__("tensor_totensor_i8") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_totensor_i16(...) __asm__("tensor_totensor_i16") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_totensor_i32(...) __asm__("tensor_totensor_i32") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_totensor_i64(...) __asm__("tensor_totensor_i64") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_totensor_f16(...) __asm__("tensor_totensor_f16") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_totensor_bf16(...) __asm__("tensor_totensor_bf16") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_totensor_f32(...) __asm__("tensor_totensor_f32") TLX_ATTRIBUTES;
TLX_OVERLOAD int tensor_totensor_f64(...) __asm__("tensor_totensor_f64") TLX_ATTRIBUTES;
#define TLX_SMALL(T, element, size) \
  TLX_OVERLOAD int tensor_totensor(T __attribute__((__vector_size__(size))), ...) \
      __asm__("tensor_totensor_" #element) TLX_ATTRIBUTES;
#define TLX_SMALL_1(T, element) \
  TLX_SMALL(T, element, 1) TLX_SMALL(T, element, 3) TLX_SMALL(T, element, 5) TLX_SMALL(T, element, 7) \
  TLX_SMALL_2(T, element)
#define TLX_SMALL_2(T, element) TLX_SMALL(T, element, 2) TLX_SMALL(T, element, 6) TLX_SMALL_4(T, element)
#define TLX_SMALL_4(T, element) TLX_SMALL(T, element, 4) TLX_SMALL(T, element, 8)
#define TLX_SMALL_8(T, element) TLX_SMALL(T, element, 8)
#define TLX_SMALL_SIZES(T, element, bytes) TLX_SMALL_##bytes(T, element)
TLX_EACH_TYPE(TLX_SMALL_SIZES)
#undef TLX_SMALL
#undef TLX_SMALL_1
#undef TLX_SMALL_2
#undef TLX_SMALL_4
#undef TLX_SMALL_8
#undef TLX_SMALL_SIZES
#else
int tensor_totensor() TLX_ATTRIBUTES;
int tensor_totensor_i8() TLX_ATTRIBUTES;
int tensor_totensor_i16() TLX_ATTRIBUTES;
int tensor_totensor_i32() TLX_ATTRIBUTES;
int tensor_totensor_i64() TLX_ATTRIBUTES;
int tensor_totensor_f16() TLX_ATTRIBUTES;
int tensor_totensor_bf16() TLX_ATTRIBUTES;
int tensor_totensor_f32() TLX_ATTRIBUTES;
int tensor_totensor_f64() TLX_ATTRIBUTES;
#endif

/* tensor_load(pointer, shape, layout, padding, strides): Loads a tensor, or a part of a larger one, from memory.
   Returns a token. */
TLX_OVERLOAD int tensor_load(const void *, ...) __asm__("tensor_load") TLX_ATTRIBUTES;
#define TLX_MEMORY(T, element, bytes) \
  TLX_OVERLOAD int tensor_load(const T *, ...) __asm__("tensor_load_" #element) TLX_ATTRIBUTES;
TLX_EACH_TYPE(TLX_MEMORY)
#undef TLX_MEMORY

/* tensor_store(pointer, tensor, strides), tensor_store(pointer, strides, tensor): Stores a tensor to memory, or
   into a part of a larger one. */
TLX_OVERLOAD void tensor_store(void *, ...) __asm__("tensor_store") TLX_ATTRIBUTES;
#define TLX_MEMORY(T, element, bytes) \
  TLX_OVERLOAD void tensor_store(T *, ...) __asm__("tensor_store_" #element) TLX_ATTRIBUTES;
TLX_EACH_TYPE(TLX_MEMORY)
#undef TLX_MEMORY

#ifdef __cplusplus
namespace tlx {
template <typename T> T tensor_tovector(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_matmul(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_umma(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_smma(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_mma(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_usmma(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_summa(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_contract(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_convolution(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_relu(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_tanh(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_sigmoid(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_erfc(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_sin(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_cos(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_exp(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_exp2(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_log(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_log2(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_log10(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_sqrt(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_fabs(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_floor(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_ceil(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reduce_add(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reduce_mul(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reduce_max(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reduce_min(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reduce_and(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reduce_or(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reduce_xor(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_transpose(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_broadcast(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_pad(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_concat(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reshape_block(int, ...) TLX_ATTRIBUTES;
template <typename T> T tensor_reshape_permute(int, ...) TLX_ATTRIBUTES;
}
}
#define TLX_EXTERN extern "C"
#else
#define TLX_EXTERN extern
#endif

/* TLX_CALL(type, operation, operands...): the operation with a result of that type. Each type is returned by functions
   of its own, because LLVM rewrites calls of one function that are declared with different types: in C++ by instances
   of templates, in C by tensor_<operation>_<number>, one for each use. */
#ifdef __cplusplus
#define TLX_CALL(T, op, ...) tlx::tensor_##op<T>(__VA_ARGS__)
#else
#define TLX_CALL(T, op, ...) TLX_CALL_(T, op, __COUNTER__, __VA_ARGS__)
#define TLX_CALL_(T, op, n, ...) TLX_CALL__(T, op, n, __VA_ARGS__)
#define TLX_CALL__(T, op, n, ...) \
  __extension__({ \
    extern T tensor_##op##_##n(int, ...) __asm__("tensor_" #op "_" #n) TLX_ATTRIBUTES; \
    tensor_##op##_##n(__VA_ARGS__); \
  })
#endif

/* tensor_tovector(x): Returns the flattened vector of a token. */
#define tensor_tovector(...) TLX_CALL(_tensor_t, tovector, __VA_ARGS__)

/* tensor_matmul(lhs, rhs): Multiplies matrices, or batches of matrices. */
#define tensor_matmul(...) TLX_CALL(_tensor_t, matmul, __VA_ARGS__)

/* tensor_umma(acc, lhs, rhs): Adds the product of two matrices, unsigned times unsigned, to a third. */
#define tensor_umma(...) TLX_CALL(_tensor_t, umma, __VA_ARGS__)

/* tensor_smma(acc, lhs, rhs): Adds the product of two matrices, signed times signed, to a third. */
#define tensor_smma(...) TLX_CALL(_tensor_t, smma, __VA_ARGS__)
/* tensor_mma(acc, lhs, rhs): Adds the product of two matrices, signed times signed, to a third. */
#define tensor_mma(...) TLX_CALL(_tensor_t, mma, __VA_ARGS__)

/* tensor_usmma(acc, lhs, rhs): Adds the product of two matrices, unsigned times signed, to a third. */
#define tensor_usmma(...) TLX_CALL(_tensor_t, usmma, __VA_ARGS__)

/* tensor_summa(acc, lhs, rhs): Adds the product of two matrices, signed times unsigned, to a third. */
#define tensor_summa(...) TLX_CALL(_tensor_t, summa, __VA_ARGS__)

/* tensor_contract(a, b, axes_a, axes_b), tensor_contract(a, b, axes_a, axes_b, batch_a, batch_b),
   tensor_contract(a, b): Multiplies tensors and sums over pairs of dimensions. */
#define tensor_contract(...) TLX_CALL(_tensor_t, contract, __VA_ARGS__)

/* tensor_convolution(x, w, strides, input_dilations, kernel_dilations), tensor_convolution(x, w): Slides a kernel
   over a tensor and sums products. */
#define tensor_convolution(...) TLX_CALL(_tensor_t, convolution, __VA_ARGS__)

/* tensor_relu(x): Replaces negative elements by zero. */
#define tensor_relu(...) TLX_CALL(_tensor_t, relu, __VA_ARGS__)

/* tensor_tanh(x): Hyperbolic tangent. */
#define tensor_tanh(...) TLX_CALL(_tensor_t, tanh, __VA_ARGS__)

/* tensor_sigmoid(x): Logistic function. */
#define tensor_sigmoid(...) TLX_CALL(_tensor_t, sigmoid, __VA_ARGS__)

/* tensor_erfc(x): Complementary error function. */
#define tensor_erfc(...) TLX_CALL(_tensor_t, erfc, __VA_ARGS__)

/* tensor_sin(x): Sine. */
#define tensor_sin(...) TLX_CALL(_tensor_t, sin, __VA_ARGS__)

/* tensor_cos(x): Cosine. */
#define tensor_cos(...) TLX_CALL(_tensor_t, cos, __VA_ARGS__)

/* tensor_exp(x): Exponential function. */
#define tensor_exp(...) TLX_CALL(_tensor_t, exp, __VA_ARGS__)

/* tensor_exp2(x): Power of two. */
#define tensor_exp2(...) TLX_CALL(_tensor_t, exp2, __VA_ARGS__)

/* tensor_log(x): Natural logarithm. */
#define tensor_log(...) TLX_CALL(_tensor_t, log, __VA_ARGS__)

/* tensor_log2(x): Binary logarithm. */
#define tensor_log2(...) TLX_CALL(_tensor_t, log2, __VA_ARGS__)

/* tensor_log10(x): Decimal logarithm. */
#define tensor_log10(...) TLX_CALL(_tensor_t, log10, __VA_ARGS__)

/* tensor_sqrt(x): Square root. */
#define tensor_sqrt(...) TLX_CALL(_tensor_t, sqrt, __VA_ARGS__)

/* tensor_fabs(x): Absolute value. */
#define tensor_fabs(...) TLX_CALL(_tensor_t, fabs, __VA_ARGS__)

/* tensor_floor(x): Rounds down. */
#define tensor_floor(...) TLX_CALL(_tensor_t, floor, __VA_ARGS__)

/* tensor_ceil(x): Rounds up. */
#define tensor_ceil(...) TLX_CALL(_tensor_t, ceil, __VA_ARGS__)

/* tensor_reduce_add(x, window, strides): Adds the elements of each window. */
#define tensor_reduce_add(...) TLX_CALL(_tensor_t, reduce_add, __VA_ARGS__)

/* tensor_reduce_mul(x, window, strides): Multiplies the elements of each window. */
#define tensor_reduce_mul(...) TLX_CALL(_tensor_t, reduce_mul, __VA_ARGS__)

/* tensor_reduce_max(x, window, strides): Finds the greatest element of each window. */
#define tensor_reduce_max(...) TLX_CALL(_tensor_t, reduce_max, __VA_ARGS__)

/* tensor_reduce_min(x, window, strides): Finds the least element of each window. */
#define tensor_reduce_min(...) TLX_CALL(_tensor_t, reduce_min, __VA_ARGS__)

/* tensor_reduce_and(x, window, strides): Bitwise and of each window. */
#define tensor_reduce_and(...) TLX_CALL(_tensor_t, reduce_and, __VA_ARGS__)

/* tensor_reduce_or(x, window, strides): Bitwise or of each window. */
#define tensor_reduce_or(...) TLX_CALL(_tensor_t, reduce_or, __VA_ARGS__)

/* tensor_reduce_xor(x, window, strides): Bitwise xor of each window. */
#define tensor_reduce_xor(...) TLX_CALL(_tensor_t, reduce_xor, __VA_ARGS__)

/* tensor_transpose(x, new_layout), tensor_transpose(x): Stores a tensor in another layout. */
#define tensor_transpose(...) TLX_CALL(_tensor_t, transpose, __VA_ARGS__)

/* tensor_broadcast(like, scalar), tensor_broadcast(x, out_shape, dims): Fills a tensor with a scalar, or repeats a
   tensor along further dimensions. */
#define tensor_broadcast(...) TLX_CALL(_tensor_t, broadcast, __VA_ARGS__)

/* tensor_pad(x, low, high, value), tensor_pad(x, low, high, value, interior): Surrounds a tensor with a value, or
   crops it. */
#define tensor_pad(...) TLX_CALL(_tensor_t, pad, __VA_ARGS__)

/* tensor_concat(x..., axis): Joins tensors along a dimension. */
#define tensor_concat(...) TLX_CALL(_tensor_t, concat, __VA_ARGS__)

/* tensor_reshape_block(x, dims, sizes): Splits dimensions into blocks, for example to pack an operand of a kernel.
   */
#define tensor_reshape_block(...) TLX_CALL(_tensor_t, reshape_block, __VA_ARGS__)

/* tensor_reshape_permute(x, perm, new_shape): Permutes the logical dimensions, then reshapes. */
#define tensor_reshape_permute(...) TLX_CALL(_tensor_t, reshape_permute, __VA_ARGS__)

/* TLX_TENSOR(suffix, type): functions tensor_<operation>_<suffix> that return the type. */
#define TLX_TENSOR(suffix, T) \
  TLX_EXTERN T tensor_tovector_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_matmul_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_umma_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_smma_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_mma_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_usmma_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_summa_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_contract_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_convolution_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_relu_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_tanh_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_sigmoid_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_erfc_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_sin_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_cos_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_exp_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_exp2_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_log_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_log2_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_log10_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_sqrt_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_fabs_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_floor_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_ceil_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reduce_add_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reduce_mul_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reduce_max_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reduce_min_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reduce_and_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reduce_or_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reduce_xor_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_transpose_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_broadcast_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_pad_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_concat_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reshape_block_##suffix(int, ...) TLX_ATTRIBUTES; \
  TLX_EXTERN T tensor_reshape_permute_##suffix(int, ...) TLX_ATTRIBUTES;

#endif /* __clang__ */
#endif /* TLX_H */
