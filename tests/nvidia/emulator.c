/* Runs kernels on a CPU: each thread of a block is a fibre, in random order.

   It is strict where a GPU only may be: asynchronous copies arrive when they are waited for, and not before, be it by
   the thread that started them or at an mbarrier; a box may be copied only over memory whose products have been waited
   for by all of their warps, which have told so at an mbarrier; shared memory begins as NaN; an access outside of the buffers is an error, and so are two accesses of a byte of shared
   memory by different threads without a barrier between them, if one of them writes. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { THREADS = 1024, SHARED = 232448, STACK = 1 << 18, COPIES = 512, BUFFERS = 4096, WARP = 32 };

char tlx_shared[SHARED] __attribute__((aligned(1024)));

struct meeting { int arrived; unsigned generation; };
static ucontext_t scheduler, fibres[THREADS];
static char *stacks, done[THREADS], error[512];
static struct { struct meeting *at; unsigned generation; } waiting[THREADS];
static int self, block, grid, threads, shared_bytes;
static unsigned seed;
static struct meeting everyone, warps[THREADS / WARP];
static unsigned epoch;
/* The last accesses of a byte: `wrote` and `had_read` are the epochs of the thread's subgroup then, and `several` is
   whether several threads have read it, of one subgroup or of others. */
enum { MEMBERS = 1, OTHERS };
static struct {
  int writer, reader;
  unsigned written, read, wrote, had_read;
  char several;
  short pending, pending_reads;
} bytes[SHARED];
/* A subgroup: its first thread, and how often its threads have met. Threads that never meet are subgroups of one. */
static struct { int first; unsigned met; struct meeting at; } subgroups[THREADS];
static int first_of[THREADS];
static struct { char *begin, *end; char writable; } buffers[BUFFERS];
static int buffer_count;
static struct { char *to; const char *from; int valid, group; } copies[THREADS][COPIES];
static int copy_count[THREADS], committed[THREADS];

__attribute__((destructor)) static void free_stacks(void) { free(stacks); }

static unsigned next_random(void) { seed = seed * 1664525u + 1013904223u; return seed >> 8; }

static void fail(const char *format, ...) {
  if (!error[0]) {
    va_list arguments;
    va_start(arguments, format);
    int n = snprintf(error, sizeof error, "block %d, thread %d: ", block, self);
    vsnprintf(error + n, sizeof error - n, format, arguments);
    va_end(arguments);
  }
  swapcontext(&fibres[self], &scheduler);
}

/* Whether the calling thread is the last of n to arrive; the others return when it has called leave. */
static int meet(struct meeting *m, int n) {
  if (++m->arrived == n) return 1;
  waiting[self].at = m;
  waiting[self].generation = m->generation;
  while (m->generation == waiting[self].generation) swapcontext(&fibres[self], &scheduler);
  waiting[self].at = 0;
  return 0;
}
static void leave(struct meeting *m) { m->arrived = 0; m->generation++; }

/* Whether the thread's subgroup has met since what another thread of it did. */
static int before(int thread, unsigned met) {
  return first_of[thread] == first_of[self] && subgroups[first_of[self]].met > met;
}

static void touch(const char *p, int size, int writes) {
  long at = p - tlx_shared;
  if (p >= stacks + (long)self * STACK && p + size <= stacks + (long)(self + 1) * STACK) return;
  if (at < 0 || at >= SHARED) {
    static int last;
    for (int k = 0; k < buffer_count; k++) {
      int i = (last + k) % buffer_count;
      if (p >= buffers[i].begin && p + size <= buffers[i].end && (!writes || buffers[i].writable)) { last = i; return; }
    }
    fail("%s of %d bytes outside of the buffers", writes ? "store" : "load", size);
    return;
  }
  if (at + size > shared_bytes) fail("access of byte %ld of %d bytes of shared memory", at, shared_bytes);
  for (long i = at; i < at + size; i++) {
    if (bytes[i].pending) fail("access of byte %ld of shared memory, which is being copied", i);
    if (writes && bytes[i].pending_reads) fail("store of byte %ld of shared memory, which a product reads", i);
    int others_wrote = bytes[i].written == epoch && bytes[i].writer != self &&
                       !before(bytes[i].writer, bytes[i].wrote);
    int may_race = (bytes[i].several || bytes[i].reader != self) && !before(bytes[i].reader, bytes[i].had_read);
    int others_read = bytes[i].read == epoch && (bytes[i].several == OTHERS || may_race);
    if (others_wrote || (writes && others_read))
      fail("%s of byte %ld of shared memory, which thread %d %s since the last barrier", writes ? "store" : "load", i,
           others_wrote ? bytes[i].writer : bytes[i].reader, others_wrote ? "wrote" : "read");
    unsigned met = subgroups[first_of[self]].met;
    if (writes) { bytes[i].written = epoch; bytes[i].writer = self; bytes[i].wrote = met; }
    else {
      int is_first = bytes[i].read != epoch || (bytes[i].reader != self && before(bytes[i].reader, bytes[i].had_read));
      if (is_first) bytes[i].several = 0;
      else if (bytes[i].reader != self && bytes[i].several != OTHERS)
        bytes[i].several = first_of[bytes[i].reader] != first_of[self] ? OTHERS : MEMBERS;
      bytes[i].read = epoch; bytes[i].reader = self; bytes[i].had_read = met;
    }
  }
}
void emu_load(const char *p, long size) { touch(p, size, 0); }
void emu_store(const char *p, long size) { touch(p, size, 1); }

int emu_tid(void) { return self; }
int emu_ctaid(void) { return block; }
/* The threads of a subgroup, given by a mask of lanes, meet; the last one of them gets 1, and has to let the others go. */
static int arrive(unsigned mask) {
  int warp = self / WARP * WARP, first = warp + __builtin_ctz(mask);
  if (!(mask >> (self - warp) & 1)) fail("a thread that is not a member of %#x", mask);
  for (int lane = 0; lane < WARP; lane++)
    if (mask >> lane & 1) first_of[warp + lane] = first;
  return meet(&subgroups[first].at, __builtin_popcount(mask));
}
void emu_meet(unsigned mask) {
  if (!arrive(mask)) return;
  subgroups[first_of[self]].met++;
  leave(&subgroups[first_of[self]].at);
}
static unsigned passed[THREADS], received[THREADS];
static int wanted[THREADS];
unsigned emu_shuffle(unsigned mask, unsigned value, int lane, int segment) {
  int size = WARP - (segment >> 8), warp = self / WARP * WARP;
  passed[self] = value;
  wanted[self] = self / size * size + (lane & (size - 1));
  if (!arrive(mask)) return received[self];
  for (int k = 0; k < WARP; k++)
    if (mask >> k & 1) received[warp + k] = passed[wanted[warp + k]];
  leave(&subgroups[first_of[self]].at);
  return received[self];
}
unsigned emu_ballot(unsigned mask, unsigned char flag) {
  int warp = self / WARP * WARP;
  passed[self] = flag;
  if (!arrive(mask)) return received[self];
  unsigned bits = 0;
  for (int k = 0; k < WARP; k++)
    if (mask >> k & 1) bits |= passed[warp + k] << k;
  for (int k = 0; k < WARP; k++)
    if (mask >> k & 1) received[warp + k] = bits;
  leave(&subgroups[first_of[self]].at);
  return bits;
}

void emu_barrier(void) { if (meet(&everyone, threads)) { epoch++; leave(&everyone); } }

void emu_cp_async(char *to, const char *from, int valid) {
  int n = copy_count[self]++;
  if (n == COPIES) fail("too many copies");
  if ((uintptr_t)to % 16 || (uintptr_t)from % 16) fail("an asynchronous copy that is not aligned");
  touch(to, 16, 1);
  if (valid) touch(from, valid, 0);
  copies[self][n].to = to; copies[self][n].from = from; copies[self][n].valid = valid;
  copies[self][n].group = committed[self];
  memset(to, 0xff, 16);
  for (int i = 0; i < 16; i++) bytes[to - tlx_shared + i].pending++;
}
void emu_commit(void) { committed[self]++; }
void emu_wait(int left) {
  int kept = 0;
  for (int i = 0; i < copy_count[self]; i++) {
    if (copies[self][i].group >= committed[self] - left) { copies[self][kept++] = copies[self][i]; continue; }
    char *to = copies[self][i].to;
    for (int k = 0; k < 16; k++) bytes[to - tlx_shared + k].pending--;
    memset(to, 0, 16);
    memcpy(to, copies[self][i].from, copies[self][i].valid);
    touch(to, 16, 1);
  }
  copy_count[self] = kept;
}

static struct { char *p; void *out; uint32_t a[4], b[2]; float c[4]; int value; } lanes[THREADS];

void emu_ldmatrix(uint32_t *out, char *p, int transposed) {
  int first = self / WARP * WARP;
  if ((uintptr_t)p % 16) fail("ldmatrix of an address that is not aligned");
  touch(p, 16, 0);
  lanes[self].out = out; lanes[self].p = p;
  if (!meet(&warps[self / WARP], WARP)) return;
  for (int l = 0; l < WARP; l++)
    for (int i = 0; i < 4; i++) {
      uint16_t halves[2];
      for (int e = 0; e < 2; e++) {
        int row = transposed ? 2 * (l % 4) + e : l / 4, column = transposed ? l / 4 : 2 * (l % 4) + e;
        memcpy(&halves[e], lanes[first + 8 * i + row].p + 2 * column, 2);
      }
      ((uint32_t *)lanes[first + l].out)[i] = halves[0] | (uint32_t)halves[1] << 16;
    }
  leave(&warps[self / WARP]);
}

static float from_bfloat(uint16_t x) { uint32_t u = (uint32_t)x << 16; float f; memcpy(&f, &u, 4); return f; }
static float from_half(uint16_t x) { _Float16 h; memcpy(&h, &x, 2); return h; }

/* What LLVM calls to round to bfloat, which is passed as a half is. */
_Float16 __truncsfbf2(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  uint16_t bits = x != x ? (u >> 16 | 0x40) : (u + 0x7fff + (u >> 16 & 1)) >> 16;
  _Float16 h;
  memcpy(&h, &bits, 2);
  return h;
}

static void mma16(float *out, const uint32_t *a, const uint32_t *b, const float *c, float (*widen)(uint16_t)) {
  int first = self / WARP * WARP;
  float A[16][16], B[16][8];
  memcpy(lanes[self].a, a, 16); memcpy(lanes[self].b, b, 8); memcpy(lanes[self].c, c, 16);
  lanes[self].out = out;
  if (!meet(&warps[self / WARP], WARP)) return;
  for (int l = 0; l < WARP; l++)
    for (int e = 0; e < 2; e++) {
      int g = l / 4, q = 2 * (l % 4);
      for (int i = 0; i < 4; i++) A[g + 8 * (i & 1)][q + e + 8 * (i >> 1)] = widen(lanes[first + l].a[i] >> 16 * e);
      for (int i = 0; i < 2; i++) B[q + e + 8 * i][g] = widen(lanes[first + l].b[i] >> 16 * e);
    }
  for (int l = 0; l < WARP; l++)
    for (int i = 0; i < 4; i++) {
      int row = l / 4 + 8 * (i >> 1), column = 2 * (l % 4) + (i & 1);
      float sum = lanes[first + l].c[i];
      for (int k = 0; k < 16; k++) sum += A[row][k] * B[k][column];
      ((float *)lanes[first + l].out)[i] = sum;
    }
  leave(&warps[self / WARP]);
}
static float from_tf32(uint32_t x) { float f; x &= ~0x1fffu; memcpy(&f, &x, 4); return f; }
void emu_mma_tf32(float *out, uint32_t *a, uint32_t *b, float *c) {
  int first = self / WARP * WARP;
  memcpy(lanes[self].a, a, 16); memcpy(lanes[self].b, b, 8); memcpy(lanes[self].c, c, 16);
  lanes[self].out = out;
  if (!meet(&warps[self / WARP], WARP)) return;
  for (int l = 0; l < WARP; l++)
    for (int i = 0; i < 4; i++) {
      int row = l / 4, column = 2 * (l % 4) + (i & 1);
      float sum = lanes[first + l].c[i];
      for (int k = 0; k < 8; k++)
        sum += from_tf32(lanes[first + 4 * row + k % 4].a[k / 4 * 2 + i / 2]) *
               from_tf32(lanes[first + 4 * column + k % 4].b[k / 4]);
      ((float *)lanes[first + l].out)[i] = sum;
    }
  leave(&warps[self / WARP]);
}
void emu_mma_bf16(float *out, uint32_t *a, uint32_t *b, float *c) { mma16(out, a, b, c, from_bfloat); }
void emu_mma_f16(float *out, uint32_t *a, uint32_t *b, float *c) { mma16(out, a, b, c, from_half); }

static void mma_bytes(int32_t *out, const uint32_t *a, const uint32_t *b, const int32_t *c, int a_signed, int b_signed) {
  int first = self / WARP * WARP;
  int A[16][32], B[32][8];
  memcpy(lanes[self].a, a, 16); memcpy(lanes[self].b, b, 8); memcpy(lanes[self].c, c, 16);
  lanes[self].out = out;
  if (!meet(&warps[self / WARP], WARP)) return;
  for (int l = 0; l < WARP; l++)
    for (int e = 0; e < 4; e++) {
      int g = l / 4, q = 4 * (l % 4);
      for (int i = 0; i < 4; i++) {
        uint8_t x = lanes[first + l].a[i] >> 8 * e;
        A[g + 8 * (i & 1)][q + e + 16 * (i >> 1)] = a_signed ? (int8_t)x : x;
      }
      for (int i = 0; i < 2; i++) {
        uint8_t x = lanes[first + l].b[i] >> 8 * e;
        B[q + e + 16 * i][g] = b_signed ? (int8_t)x : x;
      }
    }
  for (int l = 0; l < WARP; l++)
    for (int i = 0; i < 4; i++) {
      int row = l / 4 + 8 * (i >> 1), column = 2 * (l % 4) + (i & 1);
      uint32_t sum;
      memcpy(&sum, &lanes[first + l].c[i], 4);
      for (int k = 0; k < 32; k++) sum += (uint32_t)(A[row][k] * B[k][column]);
      ((uint32_t *)lanes[first + l].out)[i] = sum;
    }
  leave(&warps[self / WARP]);
}
void emu_mma_ss(int32_t *out, uint32_t *a, uint32_t *b, int32_t *c) { mma_bytes(out, a, b, c, 1, 1); }
void emu_mma_uu(int32_t *out, uint32_t *a, uint32_t *b, int32_t *c) { mma_bytes(out, a, b, c, 0, 0); }
void emu_mma_su(int32_t *out, uint32_t *a, uint32_t *b, int32_t *c) { mma_bytes(out, a, b, c, 1, 0); }
void emu_mma_us(int32_t *out, uint32_t *a, uint32_t *b, int32_t *c) { mma_bytes(out, a, b, c, 0, 1); }

void emu_mma_f64(double *out, double *a, double *b, double *c) {
  static struct { double a, b, c[2], *out; } own[THREADS];
  int first = self / WARP * WARP;
  own[self].a = *a; own[self].b = *b; own[self].c[0] = c[0]; own[self].c[1] = c[1]; own[self].out = out;
  if (!meet(&warps[self / WARP], WARP)) return;
  for (int l = 0; l < WARP; l++)
    for (int i = 0; i < 2; i++) {
      int row = l / 4, column = 2 * (l % 4) + i;
      double sum = own[first + l].c[i];
      for (int k = 0; k < 4; k++) sum += own[first + 4 * row + k].a * own[first + 4 * column + k].b;
      own[first + l].out[i] = sum;
    }
  leave(&warps[self / WARP]);
}

/* m16n8k8 of doubles. */
void emu_mma_wide_f64(double *out, double *a, double *b, double *c) {
  static struct { double a[4], b[2], c[4], *out; } own[THREADS];
  int first = self / WARP * WARP;
  memcpy(own[self].a, a, sizeof own->a); memcpy(own[self].b, b, sizeof own->b); memcpy(own[self].c, c, sizeof own->c);
  own[self].out = out;
  if (!meet(&warps[self / WARP], WARP)) return;
  for (int l = 0; l < WARP; l++)
    for (int i = 0; i < 4; i++) {
      int row = l / 4, column = 2 * (l % 4) + (i & 1);
      double sum = own[first + l].c[i];
      for (int k = 0; k < 8; k++)
        sum += own[first + 4 * row + k % 4].a[k / 4 * 2 + i / 2] * own[first + 4 * column + k % 4].b[k / 4];
      own[first + l].out[i] = sum;
    }
  leave(&warps[self / WARP]);
}

/* Products of groups of four warps. What they read must not be written before they have been waited for. */
enum { GROUP = 128, STARTED = 4, CHUNKS = 8192 };
static struct meeting groups[THREADS / GROUP];
static struct { int count; int chunks[CHUNKS]; } started[THREADS / GROUP][STARTED];
static int started_count[THREADS / GROUP];
static struct { void *sums; uint64_t *descriptors; } members[THREADS];

enum { BFLOAT, HALF, TF32, BYTES, BYTES_UNSIGNED, E4M3, E5M2 };
static float from_e4m3(uint8_t x) { /* a half of 2^-8 times the number */
  return (x & 127) == 127 ? from_half(0x7e00) : 256 * from_half((uint16_t)((x & 128) << 8 | (x & 127) << 7));
}
static int bytes_of(int kind) { return kind >= BYTES ? 1 : kind == TF32 ? 4 : 2; }

static long place_of(uint64_t d, int mn, int k, int by_lines_of_k, int size) {
  if (d >> 62 != 1) fail("a descriptor without the swizzle of 128 bytes");
  if (by_lines_of_k && size != 2) fail("lines along K of elements that have not 16 bits");
  long base = (long)((((d & 0x3fff) << 4) - ((uintptr_t)tlx_shared & 0x3ffff)) & 0x3ffff);
  long boxes = (d >> 16 & 0x3fff) << 4, groups_of_lines = (d >> 32 & 0x3fff) << 4;
  long at = base + (by_lines_of_k ? mn % 64 * 2 + mn / 64 * boxes + k % 8 * 128 + k / 8 * groups_of_lines
                                  : k * size + mn % 8 * 128 + mn / 8 * groups_of_lines);
  return at ^ (at >> 7 & 7) << 4;
}
static void check_arrival(int g, long at);
static float operand(int g, uint64_t d, int mn, int k, int by_lines_of_k, int kind) {
  long at = place_of(d, mn, k, by_lines_of_k, bytes_of(kind));
  int n = started_count[g];
  touch(tlx_shared + at, bytes_of(kind), 0);
  if (at % 16 == 0) {
    check_arrival(g, at);
    if (started[g][n].count == CHUNKS) fail("too many chunks");
    started[g][n].chunks[started[g][n].count++] = at;
    for (int i = 0; i < 16; i++) bytes[at + i].pending_reads++;
  }
  if (kind == BYTES) return (int8_t)tlx_shared[at];
  if (kind == BYTES_UNSIGNED) return (uint8_t)tlx_shared[at];
  if (kind == E4M3) return from_e4m3(tlx_shared[at]);
  if (kind == E5M2) return from_half((uint16_t)(tlx_shared[at] << 8));
  uint32_t bits;
  memcpy(&bits, tlx_shared + at, 4);
  if (kind == TF32) return from_tf32(bits);
  uint16_t x = bits;
  return kind == HALF ? from_half(x) : from_bfloat(x);
}
/* The kinds of the elements of A and B; the sums are float, or i32 of bytes. */
void emu_wgmma(void *sums, int columns, int steps, uint64_t *descriptors, int a_kind, int b_kind, int a_by_k, int b_by_k) {
  static float A[64][32], B[32][256];
  int g = self / GROUP, depth = 32 / bytes_of(a_kind);
  members[self].sums = sums; members[self].descriptors = descriptors;
  if (!meet(&groups[g], GROUP)) return;
  if (started_count[g] == STARTED) fail("too many products that are not waited for");
  started[g][started_count[g]].count = 0;
  for (int step = 0; step < steps; step++) {
    for (int t = 0; t < GROUP; t++)
      if (memcmp(members[g * GROUP + t].descriptors + 2 * step, descriptors + 2 * step, 16)) fail("descriptors differ");
    for (int i = 0; i < 64; i++)
      for (int k = 0; k < depth; k++) A[i][k] = operand(g, descriptors[2 * step], i, k, a_by_k, a_kind);
    for (int k = 0; k < depth; k++)
      for (int j = 0; j < columns; j++) B[k][j] = operand(g, descriptors[2 * step + 1], j, k, b_by_k, b_kind);
    for (int t = 0; t < GROUP; t++)
      for (int j = 0; j < columns / 2; j++) {
        int row = t / 32 * 16 + t % 32 / 4 + 8 * (j >> 1 & 1), column = j / 4 * 8 + t % 4 * 2 + (j & 1);
        void *sum = (float *)members[g * GROUP + t].sums + j;
        for (int k = 0; k < depth; k++)
          if (a_kind == BYTES || a_kind == BYTES_UNSIGNED) *(uint32_t *)sum += (uint32_t)((int)A[row][k] * (int)B[k][column]);
          else *(float *)sum += A[row][k] * B[k][column];
      }
  }
  started_count[g]++;
  leave(&groups[g]);
}
/* The same with A in registers, four for each step, which follow the thread's sums. */
void emu_wgmma_held(float *sums, int columns, int steps, uint64_t *descriptors, int is_half, int b_by_k) {
  static struct { float *sums; uint64_t *descriptors; } held[THREADS];
  static float A[64][16], B[16][256];
  int g = self / GROUP;
  held[self].sums = sums; held[self].descriptors = descriptors;
  if (!meet(&groups[g], GROUP)) return;
  if (started_count[g] == STARTED) fail("too many products that are not waited for");
  started[g][started_count[g]].count = 0;
  for (int step = 0; step < steps; step++) {
    for (int t = 0; t < GROUP; t++) {
      if (held[g * GROUP + t].descriptors[step] != descriptors[step]) fail("descriptors differ");
      uint32_t registers[4];
      memcpy(registers, held[g * GROUP + t].sums + columns / 2 + 4 * step, 16);
      for (int i = 0; i < 8; i++) {
        uint16_t x = registers[i / 2] >> 16 * (i & 1);
        A[t / 32 * 16 + t % 32 / 4 + 8 * (i >> 1 & 1)][2 * (t % 4) + (i & 1) + 8 * (i >> 2)] =
            is_half ? from_half(x) : from_bfloat(x);
      }
    }
    for (int k = 0; k < 16; k++)
      for (int j = 0; j < columns; j++) B[k][j] = operand(g, descriptors[step], j, k, b_by_k, is_half);
    for (int t = 0; t < GROUP; t++)
      for (int j = 0; j < columns / 2; j++) {
        int row = t / 32 * 16 + t % 32 / 4 + 8 * (j >> 1 & 1), column = j / 4 * 8 + t % 4 * 2 + (j & 1);
        float *sum = held[g * GROUP + t].sums + j;
        for (int k = 0; k < 16; k++) *sum += A[row][k] * B[k][column];
      }
  }
  started_count[g]++;
  leave(&groups[g]);
}
void emu_wgmma_wait(int left) {
  int g = self / GROUP;
  if (!meet(&groups[g], GROUP)) return;
  while (started_count[g] > left) {
    for (int i = 0; i < started[g][0].count; i++)
      for (int k = 0; k < 16; k++) bytes[started[g][0].chunks[i] + k].pending_reads--;
    memmove(&started[g][0], &started[g][1], sizeof started[g][0] * (STARTED - 1));
    started_count[g]--;
  }
  leave(&groups[g]);
}

/* Mbarriers, and copies of boxes of tensors. What a thread knows of others: how often each had arrived somewhere when
   the phases ended that it has waited for. */
enum { BARRIERS = 32, BOXES = 64, DIMENSIONS = 5 };
struct tensor_map { char *base; int64_t extents[DIMENSIONS], strides[DIMENSIONS]; int32_t box[DIMENSIONS], rank, size, swizzle; };
struct box_copy { const struct tensor_map *map; char *to; int at[DIMENSIONS]; };
static struct mbarrier {
  long at;
  int count, pending, ready;
  unsigned phase, made;
  long expected, started;
  struct meeting waiters;
  struct box_copy boxes[BOXES];
  int box_count;
  int told[THREADS], known[THREADS];
} mbarriers[BARRIERS];
static int mbarrier_count, arrivals[THREADS], knows[THREADS][THREADS], waited[THREADS][BARRIERS];
/* For each chunk of 16 bytes: the barrier and phase that it arrived with, and what warps had told when they read it. */
static struct { int barrier; unsigned phase; int read[THREADS / WARP]; } chunks[SHARED / 16];

static struct mbarrier *barrier_at(char *p) {
  for (int i = 0; i < mbarrier_count; i++)
    if (mbarriers[i].at == p - tlx_shared) {
      if (mbarriers[i].made == epoch) fail("an mbarrier that may not be made yet");
      return &mbarriers[i];
    }
  fail("no mbarrier at byte %ld of shared memory", (long)(p - tlx_shared));
  return 0;
}
void emu_mbarrier_make(char *p, int count) {
  if ((p - tlx_shared) % 8 || p < tlx_shared || p + 8 > tlx_shared + shared_bytes) fail("an mbarrier out of place");
  if (mbarrier_count == BARRIERS) fail("too many mbarriers");
  touch(p, 8, 1);
  struct mbarrier *m = &mbarriers[mbarrier_count++];
  memset(m, 0, sizeof *m);
  m->at = p - tlx_shared; m->count = m->pending = count; m->made = epoch;
}
static void end_phase(struct mbarrier *m) {
  m->phase++; m->pending = m->count; m->ready = 0; m->expected = m->started = 0;
  memcpy(m->known, m->told, sizeof m->known);
  leave(&m->waiters);
}
/* The phase can end: at once, or when a thread waits for what is being copied. */
static void check_phase(struct mbarrier *m) {
  if (m->pending || m->expected != m->started) return;
  if (!m->box_count) { end_phase(m); return; }
  m->ready = 1;
  leave(&m->waiters);
}
static void tell(struct mbarrier *m) {
  if (!m->pending) fail("an mbarrier at which too many threads arrive");
  knows[self][self] = ++arrivals[self];
  for (int t = 0; t < threads; t++)
    if (knows[self][t] > m->told[t]) m->told[t] = knows[self][t];
  m->pending--;
}
void emu_mbarrier_arrive(char *p) { struct mbarrier *m = barrier_at(p); tell(m); check_phase(m); }
void emu_mbarrier_expect(char *p, int size) {
  struct mbarrier *m = barrier_at(p);
  tell(m);
  m->expected += size;
  check_phase(m);
}
static void land(struct mbarrier *m) {
  for (int n = 0; n < m->box_count; n++) {
    struct box_copy *c = &m->boxes[n];
    const struct tensor_map *map = c->map;
    int line = map->box[0] * map->size, lines = 1;
    for (int d = 1; d < map->rank; d++) lines *= map->box[d];
    for (int l = 0; l < lines; l++) {
      char *from = map->base;
      int inside = 1;
      for (int d = 1, rest = l; d < map->rank; rest /= map->box[d], d++) {
        long index = c->at[d] + rest % map->box[d];
        inside &= index >= 0 && index < map->extents[d];
        from += index * map->strides[d];
      }
      for (int k = 0; k < line; k++) {
        long at = c->to - tlx_shared + l * line + k, element = c->at[0] + k / map->size;
        at ^= (at >> 7 & 7) << 4;
        int here = inside && element >= 0 && element < map->extents[0];
        if (here && k % map->size == 0) touch(from + element * map->size, map->size, 0);
        tlx_shared[at] = here ? from[c->at[0] * map->size + k] : 0;
        bytes[at].pending--;
        chunks[at / 16].barrier = m - mbarriers + 1;
        chunks[at / 16].phase = m->phase + 1;
        memset(chunks[at / 16].read, 0, sizeof chunks->read);
      }
    }
  }
  m->box_count = 0;
}
void emu_mbarrier_wait(char *p, int parity) {
  struct mbarrier *m = barrier_at(p);
  while ((m->phase & 1) == parity) {
    if (m->ready) { land(m); end_phase(m); continue; }
    waiting[self].at = &m->waiters; waiting[self].generation = m->waiters.generation;
    swapcontext(&fibres[self], &scheduler);
    waiting[self].at = 0;
  }
  for (int t = 0; t < threads; t++)
    if (m->known[t] > knows[self][t]) knows[self][t] = m->known[t];
  waited[self][m - mbarriers] = m->phase;
}
static void start_box(char *to, const struct tensor_map *map, char *barrier, const int *at, int rank) {
  struct mbarrier *m = barrier_at(barrier);
  long size = map->size;
  if (rank != map->rank) fail("a copy of %d dimensions of a tensor of %d", rank, map->rank);
  for (int d = 0; d < rank; d++) size *= map->box[d];
  if ((to - tlx_shared) % 1024) fail("a box that is not aligned to 1024 bytes");
  if (map->box[0] * map->size != map->swizzle) fail("a box whose lines are not swizzled");
  if (to < tlx_shared || to + size > tlx_shared + shared_bytes) fail("a box outside of shared memory");
  if (m->box_count == BOXES) fail("too many copies");
  for (long i = to - tlx_shared; i < to - tlx_shared + size; i++) {
    if (bytes[i].pending || bytes[i].pending_reads) fail("a copy over byte %ld of shared memory, which is in use", i);
    if (bytes[i].written == epoch) fail("a copy over byte %ld, which thread %d wrote", i, bytes[i].writer);
    for (int w = 0; w < threads / WARP; w++)
      if (chunks[i / 16].read[w] > knows[self][w * WARP])
        fail("a copy over byte %ld, which warp %d has read and not told so", i, w);
    bytes[i].pending++;
  }
  m->boxes[m->box_count].map = map; m->boxes[m->box_count].to = to;
  memcpy(m->boxes[m->box_count++].at, at, sizeof(int) * rank);
  m->started += size;
  check_phase(m);
}
void emu_box_2(char *to, const struct tensor_map *map, int x, int y, char *barrier) {
  start_box(to, map, barrier, (int[]){x, y}, 2);
}
void emu_box_3(char *to, const struct tensor_map *map, int x, int y, int z, char *barrier) {
  start_box(to, map, barrier, (int[]){x, y, z}, 3);
}
void emu_box_4(char *to, const struct tensor_map *map, int x, int y, int z, int w, char *barrier) {
  start_box(to, map, barrier, (int[]){x, y, z, w}, 4);
}
void emu_box_5(char *to, const struct tensor_map *map, int x, int y, int z, int w, int v, char *barrier) {
  start_box(to, map, barrier, (int[]){x, y, z, w, v}, 5);
}
/* A product of a group reads a chunk: all of its threads must have waited for what arrived there. */
static void check_arrival(int g, long at) {
  int barrier = chunks[at / 16].barrier - 1;
  for (int w = g * GROUP / WARP; w < (g + 1) * GROUP / WARP; w++) {
    chunks[at / 16].read[w] = arrivals[w * WARP] + 1;
    if (barrier >= 0 && waited[w * WARP + self % WARP][barrier] < chunks[at / 16].phase)
      fail("a product that reads byte %ld, for which warp %d has not waited", at, w);
  }
}

static void (*kernel)(void **);
static void **arguments;
static void run(void) { kernel(arguments); done[self] = 1; }

void emu_buffer(char *begin, long size, int writable) {
  buffers[buffer_count].begin = begin; buffers[buffer_count].end = begin + size;
  buffers[buffer_count++].writable = writable;
}
void emu_forget(void) { buffer_count = 0; }

/* Launch a kernel; returns the first error, empty if there is none. */
const char *emu_launch(void (*function)(void **), void **args, int blocks, int size, int shared, unsigned order) {
  if (!stacks) stacks = malloc((long)THREADS * STACK);
  kernel = function; arguments = args; grid = blocks; threads = size; shared_bytes = shared; seed = order * 7919 + 1;
  error[0] = 0;
  for (int n = 0, start = next_random() % blocks; n < blocks && !error[0]; n++) {
    block = (start + n) % blocks;
    memset(tlx_shared, 0xff, shared);
    memset(bytes, 0, sizeof bytes); memset(done, 0, sizeof done); memset(waiting, 0, sizeof waiting);
    memset(copy_count, 0, sizeof copy_count); memset(committed, 0, sizeof committed);
    memset(subgroups, 0, sizeof subgroups);
    for (int t = 0; t < THREADS; t++) first_of[t] = t;
    memset(warps, 0, sizeof warps); memset(&everyone, 0, sizeof everyone);
    memset(groups, 0, sizeof groups); memset(started_count, 0, sizeof started_count);
    mbarrier_count = 0;
    memset(arrivals, 0, sizeof arrivals); memset(chunks, 0, sizeof chunks); memset(waited, 0, sizeof waited);
    for (int t = 0; t < threads; t++) memset(knows[t], 0, sizeof(int) * threads);
    epoch = 1;
    for (int t = 0; t < threads; t++) {
      getcontext(&fibres[t]);
      fibres[t].uc_stack.ss_sp = stacks + (long)t * STACK; fibres[t].uc_stack.ss_size = STACK;
      fibres[t].uc_link = &scheduler;
      makecontext(&fibres[t], run, 0);
    }
    for (int left = threads; left && !error[0];) {
      int first = next_random() % threads, progress = 0;
      for (int i = 0; i < threads && !error[0]; i++) {
        self = (first + i) % threads;
        if (done[self] || (waiting[self].at && waiting[self].at->generation == waiting[self].generation)) continue;
        progress = 1;
        if (next_random() % 8 == 0) continue;
        swapcontext(&scheduler, &fibres[self]);
        left -= done[self];
      }
      if (!progress) snprintf(error, sizeof error, "block %d: threads wait for each other forever", block);
    }
  }
  return error;
}
