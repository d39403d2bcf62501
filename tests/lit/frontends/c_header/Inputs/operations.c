/* Each operation as C spells it. */
#include <tlx.h>

typedef int dims1 __attribute__((__vector_size__(4)));
typedef int dims2 __attribute__((__vector_size__(8), __aligned__(4)));
typedef int dims4 __attribute__((__vector_size__(16), __aligned__(4)));
typedef float f1 __attribute__((__vector_size__(4)));
typedef float f2 __attribute__((__vector_size__(8)));
typedef float f4 __attribute__((__vector_size__(16), __aligned__(4)));
typedef float f6 __attribute__((__ext_vector_type__(6), __aligned__(4)));
typedef float f12 __attribute__((__ext_vector_type__(12), __aligned__(4)));
typedef float f16 __attribute__((__vector_size__(64), __aligned__(4)));
typedef float f20 __attribute__((__ext_vector_type__(20), __aligned__(4)));
typedef float f24 __attribute__((__ext_vector_type__(24), __aligned__(4)));
typedef float f28 __attribute__((__ext_vector_type__(28), __aligned__(4)));
typedef float f32 __attribute__((__vector_size__(128), __aligned__(4)));
typedef float f64 __attribute__((__vector_size__(256), __aligned__(4)));
typedef float f256 __attribute__((__vector_size__(1024), __aligned__(4)));
typedef float f48 __attribute__((__ext_vector_type__(48), __aligned__(4)));
typedef signed char c4 __attribute__((__vector_size__(4)));
typedef int i1 __attribute__((__vector_size__(4)));
typedef int i4 __attribute__((__vector_size__(16), __aligned__(4)));
typedef int i16 __attribute__((__vector_size__(64), __aligned__(4)));
typedef f16 _tensor_t;

#define ROWS (dims2){0, 1}
#define DENSE (dims2){0, 0}
#define M44 (dims2){4, 4}, ROWS, DENSE
#define NCHW (dims4){0, 1, 2, 3}
#define DENSE4 (dims4){0, 0, 0, 0}

#ifdef __cplusplus
extern "C" {
#endif

/* 1 x 2 x 5 x 5, kernel 3 x 2 x 2 x 2 */
static inline int input(const float *x) { return tensor_load(x, (dims4){1, 2, 5, 5}, NCHW, DENSE4, DENSE4); }
static inline int kernel(const float *w) { return tensor_load(w, (dims4){3, 2, 2, 2}, NCHW, DENSE4, DENSE4); }

void convolution(float *y, const float *x, const float *w) {
  f48 r = TLX_CALL(f48, convolution, input(x), kernel(w));
  tensor_store(y, tensor_typeinfo(r, (dims4){1, 3, 4, 4}, NCHW, DENSE4), DENSE4);
}
void convolution_strided(float *y, const float *x, const float *w) {
  f12 r = TLX_CALL(f12, convolution, input(x), kernel(w), (dims2){2, 2}, DENSE, DENSE);
  tensor_store(y, tensor_typeinfo(r, (dims4){1, 3, 2, 2}, NCHW, DENSE4), DENSE4);
}
void convolution_dilated(float *y, const float *x, const float *w) {
  f12 r = TLX_CALL(f12, convolution, input(x), kernel(w), (dims4){0, 0, 2, 2}, DENSE4, (dims4){0, 0, 1, 1});
  tensor_store(y, tensor_typeinfo(r, (dims4){1, 3, 2, 2}, NCHW, DENSE4), DENSE4);
}

f16 relu(f16 x) { return tensor_relu(tensor_typeinfo(x, M44)); }
f16 fabs_(f16 x) { return tensor_fabs(tensor_typeinfo(x, M44)); }
f16 floor_(f16 x) { return tensor_floor(tensor_typeinfo(x, M44)); }
f16 ceil_(f16 x) { return tensor_ceil(tensor_typeinfo(x, M44)); }
f16 sqrt_(f16 x) { return tensor_sqrt(tensor_typeinfo(x, M44)); }
f16 tanh_(f16 x) { return tensor_tanh(tensor_typeinfo(x, M44)); }
f16 erfc_(f16 x) { return tensor_erfc(tensor_typeinfo(x, M44)); }
f16 sigmoid(f16 x) { return tensor_sigmoid(tensor_typeinfo(x, M44)); }
f16 sin_(f16 x) { return tensor_sin(tensor_typeinfo(x, M44)); }
f16 cos_(f16 x) { return tensor_cos(tensor_typeinfo(x, M44)); }
f16 exp_(f16 x) { return tensor_exp(tensor_typeinfo(x, M44)); }
f16 exp2_(f16 x) { return tensor_exp2(tensor_typeinfo(x, M44)); }
f16 log_(f16 x) { return tensor_log(tensor_typeinfo(x, M44)); }
f16 log2_(f16 x) { return tensor_log2(tensor_typeinfo(x, M44)); }
f16 log10_(f16 x) { return tensor_log10(tensor_typeinfo(x, M44)); }
f16 chained(f16 x) { return tensor_relu(tensor_typeinfo(tensor_floor(tensor_typeinfo(x, M44)), M44)); }
void relu_small(c4 *x) {
#if defined(__cplusplus) || __clang_major__ >= 16
  *x = TLX_CALL(c4, relu, tensor_typeinfo(*x, (dims2){2, 2}, ROWS, DENSE));
#else
  *x = TLX_CALL(c4, relu, tensor_typeinfo_i8(*x, (dims2){2, 2}, ROWS, DENSE));
#endif
}

f4 reduce_add(f16 x) { return TLX_CALL(f4, reduce_add, tensor_typeinfo(x, M44), (dims2){1, 4}, (dims2){1, 1}); }
f4 reduce_max(f16 x) { return TLX_CALL(f4, reduce_max, tensor_typeinfo(x, M44), (dims2){2, 2}, (dims2){2, 2}); }
f4 reduce_min(f16 x) { return TLX_CALL(f4, reduce_min, tensor_typeinfo(x, M44), (dims2){4, 1}, (dims2){1, 1}); }
f4 reduce_mul(f16 x) { return TLX_CALL(f4, reduce_mul, tensor_typeinfo(x, M44), (dims2){2, 2}, (dims2){2, 2}); }
i4 reduce_and(i16 x) { return TLX_CALL(i4, reduce_and, tensor_typeinfo(x, M44), (dims2){1, 4}, (dims2){1, 1}); }
i4 reduce_or(i16 x) { return TLX_CALL(i4, reduce_or, tensor_typeinfo(x, M44), (dims2){1, 4}, (dims2){1, 1}); }
i4 reduce_xor(i16 x) { return TLX_CALL(i4, reduce_xor, tensor_typeinfo(x, M44), (dims2){1, 4}, (dims2){1, 1}); }
/* results of 8 and of 4 bytes, which arrive as scalars */
void reduce_pair(float *to, f16 x) {
  f2 r = TLX_CALL(f2, reduce_add, tensor_typeinfo(x, M44), (dims2){4, 2}, (dims2){4, 2});
  to[0] = r[0];
  to[1] = r[1];
}
void reduce_all(float *to, f16 x) {
  f1 r = TLX_CALL(f1, reduce_add, tensor_typeinfo(x, M44), (dims2){4, 4}, (dims2){4, 4});
  *to = r[0];
}
void reduce_all_ints(int *to, i16 x) {
  i1 r = TLX_CALL(i1, reduce_add, tensor_typeinfo(x, M44), (dims2){4, 4}, (dims2){4, 4});
  *to = r[0];
}

f20 pad(f16 x, float value) {
  return TLX_CALL(f20, pad, tensor_typeinfo(x, M44), (dims2){1, 0}, (dims2){0, 0}, value);
}
f6 crop(f16 x) { return TLX_CALL(f6, pad, tensor_typeinfo(x, M44), (dims2){-1, 0}, (dims2){-1, -1}, 0.5f); }
f28 spread(f16 x) {
  return TLX_CALL(f28, pad, tensor_typeinfo(x, M44), DENSE, DENSE, 2.0f, (dims2){0, 1});
}

f32 concat_rows(f16 x, f16 y) { return TLX_CALL(f32, concat, tensor_typeinfo(x, M44), tensor_typeinfo(y, M44), 0); }
f48 concat_columns(f16 x, f16 y) {
  int t = tensor_typeinfo(x, M44);
  return TLX_CALL(f48, concat, t, tensor_typeinfo(y, M44), t, 1);
}
f16 concat_one(f16 x) { return tensor_concat(tensor_typeinfo(x, M44), 0); }

f16 contract(f16 x, f16 y) {
  return tensor_contract(tensor_typeinfo(x, M44), tensor_typeinfo(y, M44), (dims1){0}, (dims1){1});
}
f4 contract_batch(f16 x, f16 y) {
  return TLX_CALL(f4, contract, tensor_typeinfo(x, M44), tensor_typeinfo(y, M44), (dims1){1}, (dims1){1}, (dims1){0},
                  (dims1){0});
}
void contract_nothing(float *to, f16 x, f16 y) {
  f256 r = TLX_CALL(f256, contract, tensor_typeinfo(x, M44), tensor_typeinfo(y, M44));
  __builtin_memcpy(to, &r, sizeof r);
}
void contract_nothing_batch(float *to, f16 x, f16 y) {
  f64 r = TLX_CALL(f64, contract, tensor_typeinfo(x, M44), tensor_typeinfo(y, M44), (dims1){-1}, (dims1){-1}, (dims1){0},
                   (dims1){0});
  __builtin_memcpy(to, &r, sizeof r);
}
void contract_all(float *to, f16 x, f16 y) {
  f1 r = TLX_CALL(f1, contract, tensor_typeinfo(x, M44), tensor_typeinfo(y, M44), ROWS, ROWS);
  *to = r[0];
}
#ifdef __cplusplus
}
#endif
