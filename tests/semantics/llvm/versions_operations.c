/* A convolution, a layer, reductions, moves, a contraction and functions in one program that every clang from 14 on
 * compiles; it compares with plain loops itself.
 *
 * Small whole numbers: sums are exact in any order.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tlx.h>

enum { M = 13, K = 22, N = 19 };
enum { CHANNELS = 3, HEIGHT = 9, WIDTH = 12, FILTERS = 5, OUT_HEIGHT = HEIGHT - 2, OUT_WIDTH = WIDTH - 2 };
enum { WIDE = 2 * N + 3 };

#define FLOATS(count) __attribute__((__vector_size__((count) * 4), __aligned__(4)))
typedef float matrix FLOATS(M * N);
typedef float row FLOATS(N);
typedef float column FLOATS(M);
typedef float image FLOATS(FILTERS * OUT_HEIGHT * OUT_WIDTH);
typedef float padded FLOATS(M * (N + 3));
typedef float joined FLOATS(M * WIDE);
typedef int dims1 __attribute__((__vector_size__(4)));
typedef int dims __attribute__((__vector_size__(8)));
typedef int dims4 __attribute__((__vector_size__(16)));

#define DENSE (dims){0, 0}
#define DENSE4 (dims4){0, 0, 0, 0}
#define BY_ROWS(rows, columns) (dims){rows, columns}, (dims){0, 1}, DENSE
#define NCHW(n, c, h, w) (dims4){n, c, h, w}, (dims4){0, 1, 2, 3}, DENSE4

void convolution(float *restrict y, const float *x, const float *w) {
  int in = tensor_load(x, NCHW(1, CHANNELS, HEIGHT, WIDTH), DENSE4);
  image r = TLX_CALL(image, convolution, in, tensor_load(w, NCHW(FILTERS, CHANNELS, 3, 3), DENSE4));
  tensor_store(y, tensor_typeinfo(r, NCHW(1, FILTERS, OUT_HEIGHT, OUT_WIDTH)), DENSE4);
}

/* relu(a @ b + bias), and of its rows the sums, of its columns the largest */
void layer(float *restrict y, float *restrict sums, float *restrict most, const float *a, const float *b,
           const float *bias) {
  matrix p = TLX_CALL(matrix, matmul, tensor_load(a, BY_ROWS(M, K), DENSE), tensor_load(b, BY_ROWS(K, N), DENSE));
  p += TLX_CALL(matrix, broadcast, tensor_load(bias, (dims1){N}, (dims1){0}, (dims1){0}, (dims1){0}), (dims){M, N},
                (dims1){1});
  p = TLX_CALL(matrix, relu, tensor_typeinfo(p, BY_ROWS(M, N)));
  int t = tensor_typeinfo(p, BY_ROWS(M, N));
  tensor_store(y, t, DENSE);
  column s = TLX_CALL(column, reduce_add, t, (dims){1, N}, (dims){1, 1});
  tensor_store(sums, tensor_typeinfo(s, BY_ROWS(M, 1)), DENSE);
  row m = TLX_CALL(row, reduce_max, t, (dims){M, 1}, (dims){1, 1});
  tensor_store(most, tensor_typeinfo(m, BY_ROWS(1, N)), DENSE);
}

/* x with a column of sevens before it and two behind it, and x again */
void moves(float *restrict y, const float *x) {
  int t = tensor_load(x, BY_ROWS(M, N), DENSE);
  padded p = TLX_CALL(padded, pad, t, (dims){0, 1}, (dims){0, 2}, 7.0f);
  joined j = TLX_CALL(joined, concat, tensor_typeinfo(p, BY_ROWS(M, N + 3)), t, 1);
  tensor_store(y, tensor_typeinfo(j, BY_ROWS(M, WIDE)), DENSE);
}

/* a^T @ b^T */
void contraction(float *restrict y, const float *a, const float *b) {
  int x = tensor_load(a, BY_ROWS(K, M), DENSE);
  matrix r = TLX_CALL(matrix, contract, x, tensor_load(b, BY_ROWS(N, K), DENSE), (dims1){0}, (dims1){1});
  tensor_store(y, tensor_typeinfo(r, BY_ROWS(M, N)), DENSE);
}

void functions(float *restrict y, const float *x) {
  matrix r = TLX_CALL(matrix, tanh, tensor_load(x, BY_ROWS(M, N), DENSE));
  r = TLX_CALL(matrix, sin, tensor_typeinfo(r * r - 0.25f, BY_ROWS(M, N)));
  tensor_store(y, tensor_typeinfo(r, BY_ROWS(M, N)), DENSE);
}

static float a[CHANNELS * HEIGHT * WIDTH + M * K], b[FILTERS * CHANNELS * 9 + K * N], bias[N];
static float y[FILTERS * OUT_HEIGHT * OUT_WIDTH + M * WIDE], sums[M], most[N];
static long wrong;

static void check_convolution(void) {
  convolution(y, a, b);
  for (int f = 0; f < FILTERS; f++)
    for (int i = 0; i < OUT_HEIGHT; i++)
      for (int j = 0; j < OUT_WIDTH; j++) {
        float sum = 0;
        for (int c = 0; c < CHANNELS; c++)
          for (int k = 0; k < 9; k++)
            sum += a[(c * HEIGHT + i + k / 3) * WIDTH + j + k % 3] * b[(f * CHANNELS + c) * 9 + k];
        wrong += y[(f * OUT_HEIGHT + i) * OUT_WIDTH + j] != sum;
      }
}

static void check_layer(void) {
  float largest[N] = {0};
  layer(y, sums, most, a, b, bias);
  for (int i = 0; i < M; i++) {
    float total = 0;
    for (int j = 0; j < N; j++) {
      float sum = bias[j];
      for (int k = 0; k < K; k++) sum += a[i * K + k] * b[k * N + j];
      if (sum < 0) sum = 0;
      if (sum > largest[j]) largest[j] = sum;
      total += sum;
      wrong += y[i * N + j] != sum;
    }
    wrong += sums[i] != total;
  }
  for (int j = 0; j < N; j++) wrong += most[j] != largest[j];
}

static void check_moves(void) {
  moves(y, a);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < WIDE; j++) {
      float seven = j == 0 || j == N + 1 || j == N + 2;
      wrong += y[i * WIDE + j] != (seven ? 7 : a[i * N + (j < N + 1 ? j - 1 : j - N - 3)]);
    }
}

static void check_contraction(void) {
  contraction(y, a, b);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += a[k * M + i] * b[j * K + k];
      wrong += y[i * N + j] != sum;
    }
}

/* Two functions within 4 ulp each, and what the first one's error does to the second's argument. */
static void check_functions(void) {
  functions(y, a);
  for (int i = 0; i < M * N; i++) {
    double t = tanh(a[i]);
    wrong += !(fabs(y[i] - sin(t * t - 0.25)) < 16 * 0x1p-24);
  }
}

int main(void) {
  for (unsigned i = 0; i < sizeof a / sizeof *a; i++) a[i] = rand() % 9 - 4;
  for (unsigned i = 0; i < sizeof b / sizeof *b; i++) b[i] = rand() % 9 - 4;
  for (int i = 0; i < N; i++) bias[i] = rand() % 99 - 50;
  check_convolution();
  check_layer();
  check_moves();
  check_contraction();
  check_functions();
  printf(wrong ? "%ld elements differ\n" : "all elements agree\n", wrong);
  return wrong != 0;
}
