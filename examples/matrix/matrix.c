/* clang's matrix types and builtins (-fenable-matrix), without a header of TLX. See README.md for the three commands. */
#include <stdio.h>
#include <stdlib.h>

enum { M = 37, K = 43, N = 50, LD = 61, SIDE = 24 };

typedef float m37x43 __attribute__((matrix_type(M, K)));
typedef float m43x50 __attribute__((matrix_type(K, N)));
typedef float m37x50 __attribute__((matrix_type(M, N)));
typedef double square __attribute__((matrix_type(SIDE, SIDE)));
typedef int tall __attribute__((matrix_type(12, 5)));
typedef int wide __attribute__((matrix_type(5, 12)));
typedef int small __attribute__((matrix_type(5, 5)));

/* C = A B, all of them submatrices of arrays with leading dimension LD. */
void product(float *restrict c, float *a, float *b) {
  m37x43 x = __builtin_matrix_column_major_load(a, M, K, LD);
  m43x50 y = __builtin_matrix_column_major_load(b, K, N, LD);
  __builtin_matrix_column_major_store(x * y, c, LD);
}

/* C = A^T B, where only the caller knows how far apart the columns are. */
void transposed_product(double *c, double *a, double *b, unsigned long stride) {
  square x = __builtin_matrix_column_major_load(a, SIDE, SIDE, stride);
  square y = __builtin_matrix_column_major_load(b, SIDE, SIDE, stride);
  __builtin_matrix_column_major_store(__builtin_matrix_transpose(x) * y, c, stride);
}

/* C = A^T A - C. */
void gram(small *c, const tall *a) {
  wide flipped = __builtin_matrix_transpose(*a);
  *c = flipped * *a - *c;
}

static long wrong;

static void expect(int holds) { wrong += !holds; }

static float fa[LD * LD], fb[LD * LD], fc[LD * LD];
static double da[SIDE * LD], db[SIDE * LD], dc[SIDE * LD];

/* Small whole numbers: sums are exact in any order. */
static void fill(void) {
  for (int i = 0; i < LD * LD; i++) fa[i] = rand() % 19 - 9, fb[i] = rand() % 19 - 9, fc[i] = -1;
  for (int i = 0; i < SIDE * LD; i++) da[i] = rand() % 19 - 9, db[i] = rand() % 19 - 9, dc[i] = -1;
}

static void check_product(void) {
  product(fc, fa, fb);
  for (int j = 0; j < LD; j++) {
    for (int i = 0; i < LD; i++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += fa[k * LD + i] * fb[(j < N ? j : 0) * LD + k];
      expect(fc[j * LD + i] == (i < M && j < N ? sum : -1));
    }
  }
}

static void check_transposed_product(void) {
  transposed_product(dc, da, db, LD);
  for (int j = 0; j < SIDE; j++) {
    for (int i = 0; i < LD; i++) {
      double sum = 0;
      for (int k = 0; k < SIDE; k++) sum += da[(i < SIDE ? i : 0) * LD + k] * db[j * LD + k];
      expect(dc[j * LD + i] == (i < SIDE ? sum : -1));
    }
  }
}

static void check_gram(void) {
  tall a;
  small c;
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 5; j++) a[i][j] = rand();
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 5; j++) c[i][j] = i + 10 * j;
  gram(&c, &a);
  for (int i = 0; i < 5; i++) {
    for (int j = 0; j < 5; j++) {
      unsigned sum = 0;
      for (int k = 0; k < 12; k++) sum += (unsigned)a[k][i] * (unsigned)a[k][j];
      expect(c[i][j] == (int)(sum - (unsigned)(i + 10 * j)));
    }
  }
}

int main(void) {
  fill();
  check_product();
  check_transposed_product();
  check_gram();
  printf(wrong ? "%ld elements differ\n" : "all elements agree\n", wrong);
  return wrong != 0;
}
