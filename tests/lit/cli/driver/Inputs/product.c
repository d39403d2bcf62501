#include <stdio.h>
void gemm(float *restrict c, const float *restrict x, const float *restrict y);
static float x[64 * 64], y[64 * 64], c[64 * 64];
int main(void) {
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 64; j++)
      x[64 * i + j] = i, y[64 * i + j] = j;
  gemm(c, x, y);
  printf("%.0f %.0f\n", c[64 * 1 + 1], c[64 * 3 + 2]);
}
