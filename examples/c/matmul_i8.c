/* Like matmul.c, with operands of signed char and a result of int: narrow operands are extended before they are
 * multiplied, which is what AMX's and AVX-VNNI's dot products do.
 */
#include <tlx.h>

#include "compare.h"

#define ELEMENTS(rows, columns) ((long)BATCH * HEADS * (rows) * (columns))

typedef signed char _tensor1_t __attribute__((__vector_size__(ELEMENTS(M, K)), __aligned__(1)));
typedef signed char _tensor2_t __attribute__((__vector_size__(ELEMENTS(K, N)), __aligned__(1)));
typedef int _tensor_t __attribute__((__vector_size__(ELEMENTS(M, N) * sizeof(int)), __aligned__(4)));
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
  signed char *a = allocate(ELEMENTS(M, K));
  signed char *b = allocate(ELEMENTS(K, N));
  int *c = allocate(ELEMENTS(M, N) * sizeof(int));
  int *expected = allocate(ELEMENTS(M, N) * sizeof(int));
  for (long i = 0; i < ELEMENTS(M, K); i++) a[i] = (signed char)random_int(-128, 127);
  for (long i = 0; i < ELEMENTS(K, N); i++) b[i] = (signed char)random_int(-128, 127);

  double start = seconds();
  example((_tensor_t *)c, (const _tensor1_t *)a, (const _tensor2_t *)b);
  double lowered = seconds() - start;

  start = seconds();
  naive_i8(expected, a, b, (long)BATCH * HEADS, M, N, K);
  double naive = seconds() - start;

  long wrong = 0;
  for (long i = 0; i < ELEMENTS(M, N); i++) wrong += c[i] != expected[i];
  return report("i8 -> i32", wrong, lowered, naive);
}
