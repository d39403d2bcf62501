// Calls the products of products.ll on small integers, whose products are exact, and compares with plain loops.

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { M = 7, N = 21, K = 11 };

void f32(float *c, const float *a, const float *b);
void f64(double *c, const double *a, const double *b);
void s8(int32_t *c, const int8_t *a, const int8_t *b);
void u8(int32_t *c, const uint8_t *a, const uint8_t *b);
void bf16_f32(float *c, const uint16_t *a, const uint16_t *b);
void f16_f32(float *c, const uint16_t *a, const uint16_t *b);
void heap(float *c, const uint16_t *a, const uint16_t *b);
void i64(int64_t *c, const int64_t *a, const int64_t *b);

static int a[40 * 64], b[64 * 500];

static long expected(int i, int j, int n, int k) {
  long sum = 0;
  for (int p = 0; p < k; p++)
    sum += (long)a[i * k + p] * b[p * n + j];
  return sum;
}

static uint16_t bfloat(int number) {
  float value = (float)number;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static uint16_t half(int number) {
  static const uint16_t magnitudes[] = {0x0000, 0x3C00, 0x4000, 0x4200, 0x4400};
  return number < 0 ? magnitudes[-number] | 0x8000 : magnitudes[number];
}

static void fill(int low, int range) {
  uint32_t state = 1;
  for (int i = 0; i < 40 * 64; i++)
    a[i] = low + (int)((state = state * 1664525 + 1013904223) >> 16) % range;
  for (int i = 0; i < 64 * 500; i++)
    b[i] = low + (int)((state = state * 1664525 + 1013904223) >> 16) % range;
}

static int failures;

// CHECK(function, type of A and B, type of C, element of A, element of B, start, extents)
#define CHECK(f, ab, ct, from_a, from_b, start, m, n, k)                                                           \
  do {                                                                                                             \
    static ab x[(m) * (k)], y[(k) * (n)];                                                                          \
    static ct c[(m) * (n)];                                                                                        \
    for (int i = 0; i < (m) * (k); i++)                                                                            \
      x[i] = (ab)(from_a);                                                                                         \
    for (int i = 0; i < (k) * (n); i++)                                                                            \
      y[i] = (ab)(from_b);                                                                                         \
    for (int i = 0; i < (m) * (n); i++)                                                                            \
      c[i] = (ct)(start);                                                                                          \
    f(c, x, y);                                                                                                    \
    for (int i = 0; i < (m) * (n); i++)                                                                            \
      if (c[i] != (ct)(expected(i / (n), i % (n), n, k) + (start)) && ++failures)                                  \
        printf("%s: wrong at %d, %d\n", #f, i / (n), i % (n));                                                     \
  } while (0)

int main(void) {
  fill(-4, 9);
  CHECK(f32, float, float, a[i], b[i], 0, M, N, K);
  CHECK(f64, double, double, a[i], b[i], 0, M, N, K);
  CHECK(i64, int64_t, int64_t, a[i], b[i], 0, 4, 4, 4);
  CHECK(heap, uint16_t, float, bfloat(a[i]), bfloat(b[i]), 0, 40, 500, 64);
  // B of bf16_f32 and A of f16_f32 are column-major.
  CHECK(bf16_f32, uint16_t, float, bfloat(a[i]), bfloat(b[i % K * N + i / K]), 0, M, N, K);
  CHECK(f16_f32, uint16_t, float, half(a[i % M * K + i / M]), half(b[i]), 0, M, N, K);
  fill(-128, 256);
  CHECK(s8, int8_t, int32_t, a[i], b[i], 0, M, N, K);
  fill(0, 256);
  CHECK(u8, uint8_t, int32_t, a[i], b[i], 1000 + i % 7, M, N, K);
  return failures != 0;
}
