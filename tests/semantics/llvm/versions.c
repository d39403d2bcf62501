/* Products of every kind in one program that every clang from 14 on compiles; it compares with plain loops itself.
 *
 * Small whole numbers: sums are exact in any order and in bfloat. bfloats are moved as their bits, since older clangs
 * have no such type for this machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tlx.h>

enum { M = 21, K = 38, N = 35 };

typedef float floats __attribute__((__vector_size__(M * N * 4), __aligned__(4)));
typedef int ints __attribute__((__vector_size__(M * N * 4), __aligned__(4)));
typedef int dims __attribute__((__vector_size__(8)));

#define LHS (dims){M, K}, (dims){0, 1}, (dims){0, 0}
#define RHS (dims){K, N}, (dims){0, 1}, (dims){0, 0}
#define RHS_BY_COLUMNS (dims){N, K}, (dims){1, 0}, (dims){0, 0}
#define RESULT (dims){M, N}, (dims){0, 1}, (dims){0, 0}
#define DENSE (dims){0, 0}

int tensor_load_bf16(const unsigned short *, ...);

void product_f32(float *restrict c, const float *a, const float *b) {
  floats p = TLX_CALL(floats, matmul, tensor_load(a, LHS, DENSE), tensor_load(b, RHS_BY_COLUMNS, DENSE));
  tensor_store(c, tensor_typeinfo(p, RESULT), DENSE);
}

void product_i8(int *restrict c, const signed char *a, const signed char *b) {
  ints p = TLX_CALL(ints, matmul, tensor_load(a, LHS, DENSE), tensor_load(b, RHS, DENSE));
  tensor_store(c, tensor_typeinfo(p, RESULT), DENSE);
}

/* Sums over several products, unsigned by signed. */
void sum_i8(ints *c, const unsigned char *a, const signed char *b, int count) {
  ints sum = *c;
  for (int i = 0; i < count; i++) {
    int x = tensor_load((const signed char *)a + i * M * K, LHS, DENSE);
    int y = tensor_load(b + i * K * N, RHS, DENSE);
    sum = TLX_CALL(ints, usmma, tensor_typeinfo(sum, RESULT), x, y);
  }
  *c = sum;
}

void product_bf16(float *restrict c, const unsigned short *a, const unsigned short *b) {
  floats p = TLX_CALL(floats, matmul, tensor_load_bf16(a, LHS, DENSE), tensor_load_bf16(b, RHS, DENSE));
  tensor_store(c, tensor_typeinfo(p, RESULT), DENSE);
}

enum { COUNT = 3 };
static signed char a[COUNT * M * K], b[COUNT * K * N];
static long wrong;

static unsigned short bits(float x) {
  union { float f; unsigned u; } both = {x};
  return both.u >> 16;
}

static int expected(int i, int j, const signed char *x, const signed char *y, int by_columns) {
  int sum = 0;
  for (int k = 0; k < K; k++) sum += x[i * K + k] * y[by_columns ? j * K + k : k * N + j];
  return sum;
}

static void check_floats(int bfloats) {
  static float x[M * K], y[K * N], c[M * N];
  static unsigned short xs[M * K], ys[K * N];
  for (int i = 0; i < M * K; i++) xs[i] = bits(x[i] = a[i]);
  for (int i = 0; i < K * N; i++) ys[i] = bits(y[i] = b[i]);
  if (bfloats) product_bf16(c, xs, ys);
  else product_f32(c, x, y);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) wrong += c[i * N + j] != expected(i, j, a, b, !bfloats);
}

static void check_ints(void) {
  static int c[M * N];
  static int sum[M * N] __attribute__((__aligned__(64)));
  product_i8(c, a, b);
  for (int i = 0; i < M * N; i++) sum[i] = i;
  sum_i8((ints *)sum, (unsigned char *)a, b, COUNT);
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < N; j++) {
      int total = i * N + j;
      wrong += c[i * N + j] != expected(i, j, a, b, 0);
      for (int k = 0; k < COUNT * K; k++)
        total += (unsigned char)a[k / K * M * K + i * K + k % K] * b[k * N + j];
      wrong += sum[i * N + j] != total;
    }
  }
}

int main(void) {
  for (int i = 0; i < COUNT * M * K; i++) a[i] = rand() % 19 - 9;
  for (int i = 0; i < COUNT * K * N; i++) b[i] = rand() % 19 - 9;
  check_floats(0);
  check_floats(1);
  check_ints();
  printf(wrong ? "%ld elements differ\n" : "all elements agree\n", wrong);
  return wrong != 0;
}
