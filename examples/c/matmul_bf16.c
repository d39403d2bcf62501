/* Like matmul.c, with operands of __bf16 and a result of float. The type needs clang 17 or newer.
 *
 * The data is computed as bits, so that no library function is needed for conversions.
 */
#include <tlx.h>

#include "compare.h"

#define ELEMENTS(rows, columns) ((long)BATCH * HEADS * (rows) * (columns))

typedef __bf16 _tensor1_t __attribute__((__vector_size__(ELEMENTS(M, K) * 2), __aligned__(2)));
typedef __bf16 _tensor2_t __attribute__((__vector_size__(ELEMENTS(K, N) * 2), __aligned__(2)));
typedef float _tensor_t __attribute__((__vector_size__(ELEMENTS(M, N) * sizeof(float)), __aligned__(4)));
typedef int _shape_t __attribute__((__vector_size__(16), __aligned__(4)));
typedef int _token_t;

void example(_tensor_t *restrict c, const _tensor1_t *a, const _tensor2_t *b);

void example(_tensor_t *restrict c, const _tensor1_t *a, const _tensor2_t *b) {
  const _shape_t layout = {0, 1, 2, 3}, padding = {0, 0, 0, 0};
  _token_t ta = tensor_typeinfo(*a, (_shape_t){BATCH, HEADS, M, K}, layout, padding);
  _token_t tb = tensor_typeinfo(*b, (_shape_t){BATCH, HEADS, K, N}, layout, padding);
  *c = tensor_matmul(ta, tb);
}

int main(void) {
  unsigned short *a = allocate(ELEMENTS(M, K) * 2);
  unsigned short *b = allocate(ELEMENTS(K, N) * 2);
  float *c = allocate(ELEMENTS(M, N) * sizeof(float));
  float *expected = allocate(ELEMENTS(M, N) * sizeof(float));
  for (long i = 0; i < ELEMENTS(M, K); i++) a[i] = bfloat_bits((float)random_int(-1000, 1000) / 1000);
  for (long i = 0; i < ELEMENTS(K, N); i++) b[i] = bfloat_bits((float)random_int(-1000, 1000) / 1000);

  double start = seconds();
  example((_tensor_t *)c, (const _tensor1_t *)a, (const _tensor2_t *)b);
  double lowered = seconds() - start;

  start = seconds();
  naive_bf16(expected, a, b, (long)BATCH * HEADS, M, N, K);
  double naive = seconds() - start;

  /* Additions may be in any order: each may be off by half a unit in the last place of a sum of at most K. */
  const float tolerance = (float)K * (float)K * 6e-8f;
  long wrong = 0;
  for (long i = 0; i < ELEMENTS(M, N); i++) {
    float difference = c[i] - expected[i];
    wrong += !(difference <= tolerance && -difference <= tolerance);
  }
  return report("bf16 -> f32", wrong, lowered, naive);
}
