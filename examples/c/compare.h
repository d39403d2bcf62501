/* Shared by the examples: sizes, random data, the plain loops to compare with, and the report. */
#ifndef COMPARE_H
#define COMPARE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef BATCH
#define BATCH 1
#endif
#ifndef HEADS
#define HEADS 10
#endif
#ifndef M
#define M 800
#endif
#ifndef N
#define N 800
#endif
#ifndef K
#define K 800
#endif

/* naive.c: for each of `batches` products, C (m x n) = A (m x k) times B (k x n). */
void naive_i32(int *c, const int *a, const int *b, long batches, long m, long n, long k);
void naive_i8(int *c, const signed char *a, const signed char *b, long batches, long m, long n, long k);
void naive_bf16(float *c, const unsigned short *a, const unsigned short *b, long batches, long m, long n, long k);

static inline void *allocate(long bytes) {
  void *memory = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
  if (!memory) {
    fputs("out of memory\n", stderr);
    exit(1);
  }
  memset(memory, 0, (size_t)bytes);
  return memory;
}

static inline int random_int(int low, int high) { return low + rand() % (high - low + 1); }

static inline unsigned short bfloat_bits(float number) {
  unsigned bits;
  memcpy(&bits, &number, sizeof bits);
  return (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int report(const char *types, long wrong, double lowered, double naive) {
  const double operations = 2.0 * BATCH * HEADS * M * N * K;
  printf("matmul %dx%dx%dx%dx%d %s: lowered %.3f s (%.1f GOP/s), naive %.3f s (%.1f GOP/s), ", BATCH, HEADS, M, N, K,
         types, lowered, operations / lowered * 1e-9, naive, operations / naive * 1e-9);
  if (wrong)
    printf("%ld of %ld elements WRONG\n", wrong, (long)BATCH * HEADS * M * N);
  else
    printf("all %ld elements agree\n", (long)BATCH * HEADS * M * N);
  return wrong != 0;
}

#endif
