#include "layers.h"

#include <tlx.h>

typedef float outputs __attribute__((__vector_size__(ROWS * OUTPUTS * 4)));
typedef int dims __attribute__((__vector_size__(8)));
#define MATRIX(rows, columns) (dims){rows, columns}, (dims){0, 1}, (dims){0, 0} /* shape, layout, padding */
#define DENSE (dims){0, 0}

void dense(float *restrict y, const float *restrict x, const float *restrict w) {
  int a = tensor_load(x, MATRIX(ROWS, INPUTS), DENSE);
  int b = tensor_load(w, MATRIX(INPUTS, OUTPUTS), DENSE);
  outputs p = TLX_CALL(outputs, matmul, a, b);
  outputs r = TLX_CALL(outputs, relu, tensor_typeinfo(p, MATRIX(ROWS, OUTPUTS)));
  tensor_store(y, tensor_typeinfo(r, MATRIX(ROWS, OUTPUTS)), DENSE);
}
