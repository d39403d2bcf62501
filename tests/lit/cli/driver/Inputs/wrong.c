#include <tlx.h>
typedef float matrix __attribute__((__vector_size__(64 * 64 * 4)));
typedef int dims __attribute__((__vector_size__(8)));
#define WRONG (dims){64, 63}, (dims){0, 1}, (dims){0, 0}
#define DENSE (dims){0, 0}
void f(float *c, const float *x) {
  matrix p = *(const matrix *)x;
  tensor_store(c, tensor_typeinfo(p, WRONG), DENSE);
}
