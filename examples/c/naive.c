/* Plain loops, in the order that lets clang vectorise them. */
#include <string.h>

#include "compare.h"

void naive_i32(int *c, const int *a, const int *b, long batches, long m, long n, long k) {
  memset(c, 0, (size_t)(batches * m * n) * sizeof *c);
  for (long batch = 0; batch < batches; batch++, a += m * k, b += k * n, c += m * n)
    for (long i = 0; i < m; i++)
      for (long p = 0; p < k; p++)
        for (long j = 0; j < n; j++) c[i * n + j] += a[i * k + p] * b[p * n + j];
}

void naive_i8(int *c, const signed char *a, const signed char *b, long batches, long m, long n, long k) {
  memset(c, 0, (size_t)(batches * m * n) * sizeof *c);
  for (long batch = 0; batch < batches; batch++, a += m * k, b += k * n, c += m * n)
    for (long i = 0; i < m; i++)
      for (long p = 0; p < k; p++)
        for (long j = 0; j < n; j++) c[i * n + j] += a[i * k + p] * b[p * n + j];
}

static float from_bfloat(unsigned short bits) {
  unsigned wide = (unsigned)bits << 16;
  float number;
  memcpy(&number, &wide, sizeof number);
  return number;
}

void naive_bf16(float *c, const unsigned short *a, const unsigned short *b, long batches, long m, long n, long k) {
  memset(c, 0, (size_t)(batches * m * n) * sizeof *c);
  for (long batch = 0; batch < batches; batch++, a += m * k, b += k * n, c += m * n)
    for (long i = 0; i < m; i++)
      for (long p = 0; p < k; p++)
        for (long j = 0; j < n; j++) c[i * n + j] += from_bfloat(a[i * k + p]) * from_bfloat(b[p * n + j]);
}
