/* Calls what cross.ll defines and compares with plain loops; prints what is wrong, and "right" at the end. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

void product(const float *a, const float *b, float *c);
void bytes(const int8_t *a, const int8_t *b, int32_t *c);
void exponential(const float *x, float *y);
float scaled(float x, double factor, int shift, float y);

enum { M = 7, K = 9, N = 21 };

int main(void) {
  static float a[M * K], b[K * N], c[M * N], y[M * K];
  static int8_t s[M * K], t[K * N];
  static int32_t d[M * N];
  int wrong = 0;
  for (int i = 0; i < M * K; i++) a[i] = (i * 7 % 11 - 5) / 4.0f, s[i] = (int8_t)(i * 37);
  for (int i = 0; i < K * N; i++) b[i] = (i * 5 % 13 - 6) / 2.0f, t[i] = (int8_t)(i * 53);
  product(a, b, c);
  bytes(s, t, d);
  exponential(a, y);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      float sum = 0;
      int32_t whole = 0;
      for (int k = 0; k < K; k++) sum += a[i * K + k] * b[k * N + j], whole += s[i * K + k] * t[k * N + j];
      if (c[i * N + j] != sum) wrong++, printf("product %d %d: %g, not %g\n", i, j, c[i * N + j], sum);
      if (d[i * N + j] != whole) wrong++, printf("bytes %d %d: %d, not %d\n", i, j, d[i * N + j], whole);
    }
  for (int i = 0; i < M * K; i++)
    if (!(fabsf(y[i] - expf(a[i])) <= 1e-6f * expf(a[i]))) wrong++, printf("exp %g: %g\n", a[i], y[i]);
  if (scaled(2.5f, 4.0, 3, 0.5f) != 80.5f) wrong++, printf("scaled: %g\n", scaled(2.5f, 4.0, 3, 0.5f));
  if (!wrong) puts("right");
  return wrong != 0;
}
