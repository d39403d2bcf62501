/* Every way in which clang hands tensors over: one function a way. */
#include <tlx.h>

typedef int dims1 __attribute__((__vector_size__(4)));
typedef int dims2 __attribute__((__vector_size__(8), __aligned__(4)));
typedef int dims3 __attribute__((__ext_vector_type__(3)));
typedef int dims4 __attribute__((__vector_size__(16), __aligned__(4)));
typedef int dims5 __attribute__((__ext_vector_type__(5)));
typedef float f2 __attribute__((__vector_size__(8)));
typedef float f4 __attribute__((__vector_size__(16), __aligned__(4)));
typedef float f8 __attribute__((__vector_size__(32), __aligned__(4)));
typedef float f9 __attribute__((__ext_vector_type__(9), __aligned__(4)));
typedef float f16 __attribute__((__vector_size__(64), __aligned__(4)));
typedef float f64 __attribute__((__vector_size__(256), __aligned__(4)));
typedef double d1 __attribute__((__vector_size__(8)));
typedef double d4 __attribute__((__vector_size__(32), __aligned__(8)));
typedef signed char c2 __attribute__((__vector_size__(2)));
typedef signed char c3 __attribute__((__vector_size__(3)));
typedef signed char c5 __attribute__((__vector_size__(5)));
typedef short h3 __attribute__((__vector_size__(6)));
typedef float f3 __attribute__((__ext_vector_type__(3)));
typedef signed char c4 __attribute__((__vector_size__(4)));
typedef short h4 __attribute__((__vector_size__(8)));
typedef long long l1 __attribute__((__vector_size__(8)));
typedef int i64 __attribute__((__vector_size__(256), __aligned__(4)));
typedef int i16 __attribute__((__vector_size__(64), __aligned__(4)));
typedef signed char c16 __attribute__((__vector_size__(16)));
typedef f16 _tensor_t;
typedef int _token_t;

TLX_TENSOR(f4, f4)
TLX_TENSOR(f8, f8)
TLX_TENSOR(f64, f64)
TLX_TENSOR(i64, i64)

#define ROWS (dims2){0, 1}
#define DENSE (dims2){0, 0}
#define M44 (dims2){4, 4}, ROWS, DENSE

#ifdef __cplusplus
extern "C" {
#endif

static inline _token_t m44(f16 x) { return tensor_typeinfo(x, M44); }
static inline f16 times(_token_t a, _token_t b) { return tensor_matmul(a, b); }
static inline _token_t pick(int c, _token_t a, _token_t b) { return c ? a : b; }
static inline f16 product(f16 a, f16 b) { return times(m44(a), m44(b)); }
void outside(int);

/* tensors of 64 bytes: in memory, or in a register with AVX-512 */
void matmul(f16 *out, const f16 *a, const f16 *b) {
  _token_t ta = tensor_typeinfo(*a, M44);
  _token_t tb = tensor_typeinfo(*b, M44);
  *out = tensor_matmul(ta, tb);
}

f16 by_value(f16 a, f16 b) { return tensor_matmul(tensor_typeinfo(a, M44), tensor_typeinfo(b, M44)); }

/* a parameter that is written before the token is used: the token has the value at the call */
f16 overwritten(f16 a) {
  _token_t t = tensor_typeinfo(a, M44);
  a = a + a;
  return tensor_matmul(t, tensor_typeinfo(a, M44));
}

void helpers(f16 *out, const f16 *a, const f16 *b) { *out = product(product(*a, *b), *b); }

void picked(f16 *out, const f16 *a, const f16 *b, int c) { *out = times(pick(c, m44(*a), m44(*b)), m44(*b)); }

/* an accumulator that is a vector, and one that is a token */
void loop_value(int *c, const signed char *a, const signed char *b, int n) {
  i64 acc = {0};
  for (int k = 0; k < n; k++) {
    _token_t ta = tensor_load(a + 32 * k, (dims2){8, 4}, ROWS, DENSE, DENSE);
    _token_t tb = tensor_load(b + 32 * k, (dims2){4, 8}, ROWS, DENSE, DENSE);
    acc = tensor_smma_i64(tensor_typeinfo(acc, (dims2){8, 8}, ROWS, DENSE), ta, tb);
  }
  tensor_store(c, tensor_typeinfo(acc, (dims2){8, 8}, ROWS, DENSE), DENSE);
}

void loop_token(int *c, const signed char *a, const signed char *b, int n) {
  _token_t acc = tensor_load(c, (dims2){8, 8}, ROWS, DENSE, DENSE);
  for (int k = 0; k < n; k++) {
    _token_t ta = tensor_load(a + 32 * k, (dims2){8, 4}, ROWS, DENSE, DENSE);
    _token_t tb = tensor_load(b + 32 * k, (dims2){4, 8}, ROWS, DENSE, DENSE);
    acc = tensor_typeinfo(tensor_smma_i64(acc, ta, tb), (dims2){8, 8}, ROWS, DENSE);
  }
  tensor_store(c, acc, DENSE);
}

void branch_use(f16 *out, const f16 *a, const f16 *b, int c) {
  _token_t ta = m44(*a), tb = m44(*b);
  if (c)
    *out = tensor_matmul(ta, tb);
  else
    *out = tensor_matmul(tb, ta);
}

void branch_merge(f16 *out, const f16 *a, const f16 *b, int c) {
  _token_t t;
  if (c)
    t = m44(*a);
  else
    t = tensor_load((const float *)b, M44, DENSE);
  *out = tensor_matmul(t, t);
}

void branch_select(f16 *out, const f16 *a, const f16 *b, int c) {
  _token_t ta = m44(*a), tb = m44(*b);
  *out = tensor_matmul(c ? ta : tb, tb);
}

void defined_in_loop(f16 *out, const f16 *a, int n) {
  _token_t t;
  int i = 0;
  for (;;) {
    t = m44(a[i]);
    if (i++ >= n) break;
    *out += tensor_matmul(t, t);
  }
  *out += tensor_tovector(t);
}

void switched(f16 *out, const f16 *a, int k) {
  _token_t t = m44(*a);
  switch (k) {
  case 0: *out = tensor_tovector(t); break;
  case 1:
  case 2: t = m44(a[1]); /* fall through */
  case 3: *out = tensor_matmul(t, t); break;
  default: *out = tensor_matmul(m44(*a), m44(a[1]));
  }
}

/* vectors of other sizes */
f4 tensor16(f4 x) { return tensor_matmul_f4(tensor_typeinfo(x, (dims2){2, 2}, ROWS, DENSE), tensor_typeinfo(x, (dims2){2, 2}, ROWS, DENSE)); }
f8 tensor32(f8 x) { return tensor_transpose_f8(tensor_typeinfo(x, (dims2){2, 4}, ROWS, DENSE), (dims2){1, 0}); }
f64 tensor256(f64 x) { return tensor_matmul_f64(tensor_typeinfo(x, (dims2){8, 8}, ROWS, DENSE), tensor_typeinfo(x, (dims2){8, 8}, ROWS, DENSE)); }
void tensor36(float *out, const f9 *x) {
  tensor_store(out, tensor_typeinfo(*x, (dims2){3, 3}, ROWS, DENSE), DENSE);
}

/* 8 bytes and less: passed as scalars, the element type in the name */
void small(c2 *pc2, c4 *pc4, f2 *pf2, h4 *ph4, l1 *pl1, d1 *pd1) {
  _token_t t = tensor_typeinfo_i8(*pc2, (dims2){1, 2}, ROWS, DENSE);
  *pc2 = TLX_CALL(c2, transpose, t, (dims2){1, 0});
  t = tensor_typeinfo_i8(*pc4, (dims2){2, 2}, ROWS, DENSE);
  *pc4 = TLX_CALL(c4, matmul, t, t);
  t = tensor_typeinfo_f32(*pf2, (dims2){1, 2}, ROWS, DENSE);
  *pf2 = TLX_CALL(f2, broadcast, t, 1.5f);
  t = tensor_typeinfo_i16(*ph4, (dims2){2, 2}, ROWS, DENSE);
  *ph4 = TLX_CALL(h4, matmul, t, t);
  t = tensor_typeinfo_i64(*pl1, (dims2){1, 1}, ROWS, DENSE);
  *pl1 = TLX_CALL(l1, matmul, t, t);
  t = tensor_typeinfo(*pd1, (dims2){1, 1}, ROWS, DENSE);
  *pd1 = TLX_CALL(d1, matmul, t, t);
}

/* sizes that are no power of two: passed with bits to spare */
void odd(c3 *pc3, c5 *pc5, h3 *ph3, f3 *pf3) {
  _token_t t = tensor_typeinfo_i8(*pc3, (dims2){1, 3}, ROWS, DENSE);
  *pc3 = TLX_CALL(c3, matmul, tensor_typeinfo_i8((c3){2}, (dims2){1, 1 + 2}, ROWS, (dims2){0, 2}), t);
  t = tensor_typeinfo_i8(*pc5, (dims2){1, 5}, ROWS, DENSE);
  *pc5 = TLX_CALL(c5, broadcast, t, -5);
  t = tensor_typeinfo_i16(*ph3, (dims2){3, 1}, ROWS, DENSE);
  *ph3 = TLX_CALL(h3, transpose, t, (dims2){1, 0});
  t = tensor_typeinfo(*pf3, (dims2){3, 1}, ROWS, DENSE);
  *pf3 = TLX_CALL(f3, broadcast, t, 0.5f);
}

#if defined(__cplusplus) || __clang_major__ >= 16
/* overloads put the element type into the name */
void small_overloaded(c4 *pc4, f2 *pf2, c3 *pc3) {
  _token_t t = tensor_typeinfo(*pc4, (dims2){2, 2}, ROWS, DENSE);
  *pc4 = TLX_CALL(c4, matmul, t, t);
  t = tensor_typeinfo(*pf2, (dims2){1, 2}, ROWS, DENSE);
  *pf2 = TLX_CALL(f2, broadcast, t, 1.5f);
  t = tensor_typeinfo(*pc3, (dims1){3}, (dims1){0}, (dims1){0});
  *pc3 = TLX_CALL(c3, broadcast, t, 9);
}
#endif

/* shapes of other ranks, in variables and in constants of the program */
static const dims2 constant44 = {4, 4};
f16 rank1(f16 x) { return tensor_broadcast(tensor_typeinfo(x, (dims1){16}, (dims1){0}, (dims1){0}), 2.0f); }
f16 rank3(f16 x) {
  dims3 shape = {1, 4, 4}, layout = {0, 1, 2}, padding = {0, 0, 0};
  _token_t t = tensor_typeinfo(x, shape, layout, padding);
  return tensor_matmul(t, t);
}
f16 rank4(f16 x) {
  _token_t t = tensor_typeinfo(x, (dims4){1, 1, 4, 4}, (dims4){0, 1, 2, 3}, (dims4){0, 0, 0, 0});
  return tensor_matmul(t, t);
}
f16 rank5(f16 x) {
  const dims5 shape = {1, 1, 1, 4, 4}, layout = {0, 1, 2, 3, 4}, padding = {0, 0, 0, 0, 0};
  _token_t t = tensor_typeinfo(x, shape, layout, padding);
  return tensor_matmul(t, t);
}
f16 constant_shape(f16 x) {
  _token_t t = tensor_typeinfo(x, constant44, ROWS, DENSE);
  return tensor_matmul(t, t);
}
f16 computed_shape(f16 x) {
  dims2 half = {2, 2};
  dims2 shape = half + half;
  shape[1] = 8 / 2;
  _token_t t = tensor_typeinfo(x, shape, ROWS, DENSE);
  return tensor_matmul(t, t);
}

/* scalars, promoted to double and int */
f16 scalar_float(f16 x, float s) { return tensor_broadcast(tensor_typeinfo(x, M44), s); }
f16 scalar_double(f16 x, double s) { return tensor_broadcast(tensor_typeinfo(x, M44), s); }
d4 scalar_widened(d4 x, float s) { return TLX_CALL(d4, broadcast, tensor_typeinfo(x, (dims2){2, 2}, ROWS, DENSE), s); }
c16 scalar_char(c16 x, signed char s) { return TLX_CALL(c16, broadcast, tensor_typeinfo(x, M44), s); }
c16 scalar_constant(c16 x) { return TLX_CALL(c16, broadcast, tensor_typeinfo(x, M44), -3); }
i16 scalar_int(i16 x, int s) { return TLX_CALL(i16, broadcast, tensor_typeinfo(x, M44), s); }

/* padding, layouts, parts of larger arrays */
void part(float *to, const float *from) {
  _token_t t = tensor_load(from, (dims2){3, 4}, (dims2){1, 0}, (dims2){0, 1}, (dims2){0, 7});
  tensor_store(to, t, (dims2){0, 5});
}
void unknown_element(void *to, const void *from, f16 like) {
  _token_t t = tensor_load(from, M44, DENSE);
  tensor_store(to, tensor_typeinfo(tensor_matmul(t, tensor_typeinfo(like, M44)), M44), DENSE);
}

/* ordinary arithmetic on tensors, and calls to other functions in between */
void epilogue(f16 *out, const f16 *a, const f16 *b, const f16 *bias) {
  f16 c = tensor_matmul(m44(*a), m44(*b)) + *bias;
  outside(1);
  *out = c * 0.5f;
}

void unused(f16 *out, const f16 *a) {
  _token_t t = m44(*a);
  (void)t;
  *out = *a;
}

#ifdef __cplusplus
}
#endif
