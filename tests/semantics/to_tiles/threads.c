/* Calls lowered functions with teams of several sizes, alone and inside a parallel region, and compares all bytes. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 150, N = 210, K = 170, COPIES = 4 };

void product(float *c, const float *a, const float *b);
void map(float *y, const float *x);
void sums(float *y, const float *x);

static float a[M * K], b[K * N], x[M * N];
static float product_of[COPIES][M * N], map_of[COPIES][M * N], sums_of[COPIES][M];

static void run(int copy) {
  product(product_of[copy], a, b);
  map(map_of[copy], x);
  sums(sums_of[copy], x);
}

static void compare(const char *where, int threads, int copy) {
  if (memcmp(product_of[0], product_of[copy], sizeof product_of[0]) || memcmp(map_of[0], map_of[copy], sizeof map_of[0]) ||
      memcmp(sums_of[0], sums_of[copy], sizeof sums_of[0])) {
    printf("%s, %d threads: another result\n", where, threads);
    exit(1);
  }
}

int main(void) {
  const int teams[] = {1, 2, 3, 7};
  for (int i = 0; i < M * K; i++) a[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  for (int i = 0; i < K * N; i++) b[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  for (int i = 0; i < M * N; i++) x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  omp_set_dynamic(0);
  omp_set_num_threads(1);
  run(0);
  for (int t = 0; t < 4; t++) {
    omp_set_num_threads(teams[t]);
    memset(product_of[1], 1, sizeof product_of[1]);
    run(1);
    compare("alone", teams[t], 1);
#pragma omp parallel for num_threads(3)
    for (int copy = 1; copy < COPIES; copy++) run(copy);
    for (int copy = 1; copy < COPIES; copy++) compare("inside a parallel region", teams[t], copy);
  }
  float want = 0.0f;
  for (int k = 0; k < K; k++) want += a[k] * b[k * N];
  printf("%s\n", product_of[0][0] - want < 1e-4f && want - product_of[0][0] < 1e-4f ? "equal" : "wrong");
  return 0;
}
