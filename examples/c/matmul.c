/* The example of the proposal: a batched product of 4-D tensors of int, 1x10x800x800 by default (see -D in README.md).
 *
 * The kernel is written with the placeholder functions of tlx.h; see README.md for the three commands.
 */
#include <tlx.h>

#include "compare.h"

#define ELEMENTS(rows, columns) ((long)BATCH * HEADS * (rows) * (columns))

typedef int _tensor1_t __attribute__((__vector_size__(ELEMENTS(M, K) * sizeof(int)), __aligned__(4)));
typedef int _tensor2_t __attribute__((__vector_size__(ELEMENTS(K, N) * sizeof(int)), __aligned__(4)));
typedef int _tensor_t __attribute__((__vector_size__(ELEMENTS(M, N) * sizeof(int)), __aligned__(4)));
typedef int _shape_t __attribute__((__vector_size__(16), __aligned__(4)));
typedef _shape_t _layout_t;
typedef _shape_t _padding_t;
typedef int _token_t;

void example(_tensor_t *restrict tensor3, const _tensor1_t *tensor1, const _tensor2_t *tensor2);

void example(_tensor_t *restrict tensor3, const _tensor1_t *tensor1, const _tensor2_t *tensor2) {
  _layout_t layout = {0, 1, 2, 3};
  _padding_t padding = {0, 0, 0, 0};

  /* Define type information for the input tensors */
  _token_t tensor1_token = tensor_typeinfo(*tensor1, (_shape_t){BATCH, HEADS, M, K}, layout, padding);
  _token_t tensor2_token = tensor_typeinfo(*tensor2, (_shape_t){BATCH, HEADS, K, N}, layout, padding);

  /* Perform Matmul */
  *tensor3 = tensor_matmul(tensor1_token, tensor2_token);
}

int main(void) {
  int *a = allocate(ELEMENTS(M, K) * sizeof(int));
  int *b = allocate(ELEMENTS(K, N) * sizeof(int));
  int *c = allocate(ELEMENTS(M, N) * sizeof(int));
  int *expected = allocate(ELEMENTS(M, N) * sizeof(int));
  for (long i = 0; i < ELEMENTS(M, K); i++) a[i] = random_int(-1000, 1000);
  for (long i = 0; i < ELEMENTS(K, N); i++) b[i] = random_int(-1000, 1000);

  double start = seconds();
  example((_tensor_t *)c, (const _tensor1_t *)a, (const _tensor2_t *)b);
  double lowered = seconds() - start;

  start = seconds();
  naive_i32(expected, a, b, (long)BATCH * HEADS, M, N, K);
  double naive = seconds() - start;

  long wrong = 0;
  for (long i = 0; i < ELEMENTS(M, N); i++) wrong += c[i] != expected[i];
  return report("i32", wrong, lowered, naive);
}
