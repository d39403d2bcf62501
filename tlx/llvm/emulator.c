/* Calls functions of a module on arrays that it reads, for `tlx.llvm.emulator`; runs under an emulator.

   Requests on standard input and replies on standard output are words of 32 bits and bytes, in this machine's order:

     -> arrays, for each: bytes, guard (0: an inaccessible page precedes it, 1: one follows it), contents
        calls, for each: function, arguments, for each: the array whose address is passed
     <- for each array: whether the rest of its pages is unchanged, contents

   The first reply is the word 1, from which the other side learns the order of bytes.

     [ no access ][ fill | array ][ no access ]        [ no access ][ array | fill ][ no access ]

   BARE: without a C library, for Hexagon's Linux. */

typedef unsigned char byte;
typedef unsigned word;
typedef __SIZE_TYPE__ size;

#ifdef BARE
#define PAGE 65536
static long call_system(long number, long a, long b, long c, long d, long e, long f) {
  register long r6 asm("r6") = number, r0 asm("r0") = a, r1 asm("r1") = b, r2 asm("r2") = c;
  register long r3 asm("r3") = d, r4 asm("r4") = e, r5 asm("r5") = f;
  asm volatile("trap0(#1)" : "+r"(r0) : "r"(r6), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5) : "memory");
  return r0;
}
static long read(int file, void *to, size n) { return call_system(63, file, (long)to, n, 0, 0, 0); }
static long write(int file, const void *from, size n) { return call_system(64, file, (long)from, n, 0, 0, 0); }
static void _exit(int status) { for (;;) call_system(94, status, 0, 0, 0, 0, 0); }
static void *map(size n) {
  long address = call_system(222, 0, n, 0, 0x22, -1, 0);
  if (address < 0 && address > -4096) _exit(3);
  return (void *)address;
}
static void unmap(void *p, size n) { call_system(215, (long)p, n, 0, 0, 0, 0); }
static int allow(void *p, size n) { return call_system(226, (long)p, n, 3, 0, 0, 0); }

void *memcpy(void *to, const void *from, size n) {
  for (size i = 0; i < n; i++) ((volatile byte *)to)[i] = ((const byte *)from)[i];
  return to;
}
void *memmove(void *to, const void *from, size n) {
  if ((byte *)to < (const byte *)from) return memcpy(to, from, n);
  while (n--) ((volatile byte *)to)[n] = ((const byte *)from)[n];
  return to;
}
void *memset(void *to, int value, size n) {
  for (size i = 0; i < n; i++) ((volatile byte *)to)[i] = value;
  return to;
}
void *__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *to, const void *from, size n) {
  return memcpy(to, from, n);
}
/* Each allocation has pages of its own; its bytes are in the 256 before it. */
void *aligned_alloc(size align, size n) {
  (void)align;
  byte *p = map(n + 256);
  allow(p, n + 256);
  *(size *)p = n + 256;
  return p + 256;
}
void *malloc(size n) { return aligned_alloc(256, n); }
void free(void *p) { if (p) unmap((byte *)p - 256, *(size *)((byte *)p - 256)); }
void abort(void) { _exit(134); }

static unsigned long long divide(unsigned long long a, unsigned long long b, unsigned long long *rest) {
  unsigned long long quotient = 0, r = 0;
  for (int i = 63; i >= 0; i--) {
    r = r << 1 | (a >> i & 1);
    if (r >= b) { r -= b; quotient |= 1ull << i; }
  }
  *rest = r;
  return quotient;
}
#define DIVISIONS(NAME, TYPE, UNSIGNED) \
  UNSIGNED __hexagon_udiv##NAME(UNSIGNED a, UNSIGNED b) { unsigned long long r; return divide(a, b, &r); } \
  UNSIGNED __hexagon_umod##NAME(UNSIGNED a, UNSIGNED b) { unsigned long long r; divide(a, b, &r); return r; } \
  TYPE __hexagon_div##NAME(TYPE a, TYPE b) { \
    unsigned long long r; TYPE q = divide(a < 0 ? -(UNSIGNED)a : a, b < 0 ? -(UNSIGNED)b : b, &r); \
    return (a < 0) != (b < 0) ? -q : q; \
  } \
  TYPE __hexagon_mod##NAME(TYPE a, TYPE b) { \
    unsigned long long r; divide(a < 0 ? -(UNSIGNED)a : a, b < 0 ? -(UNSIGNED)b : b, &r); \
    return a < 0 ? -(TYPE)r : (TYPE)r; \
  }
DIVISIONS(si3, int, unsigned)
DIVISIONS(di3, long long, unsigned long long)

float fmaxf(float a, float b) { return a != a ? b : b != b ? a : a > b ? a : b; }
float fminf(float a, float b) { return a != a ? b : b != b ? a : a < b ? a : b; }
double fmax(double a, double b) { return a != a ? b : b != b ? a : a > b ? a : b; }
double fmin(double a, double b) { return a != a ? b : b != b ? a : a < b ? a : b; }

/* OpenMP, for which there is no library: the threads of a team are coroutines, and take turns when they yield. */
enum { THREADS = 3, MOST_THREADS = 16, STACK = 1 << 20 };
static struct { byte *stack; void *frame; int ended; } threads[MOST_THREADS];
static word team = 1, thread;
static void *caller, (*body)(void *), *shared;

/* Saves the registers that calls preserve, keeps the frame with them in *from, and returns from that in `to`. */
void tlx_turn(void **from, void *to);
asm("tlx_turn:\n{ allocframe(#56) }\n"
    "memd(r29+#0) = r17:16\nmemd(r29+#8) = r19:18\nmemd(r29+#16) = r21:20\n"
    "memd(r29+#24) = r23:22\nmemd(r29+#32) = r25:24\nmemd(r29+#40) = r27:26\n"
    "memw(r0+#0) = r29\nr29 = r1\nr30 = add(r29,#56)\n"
    "r17:16 = memd(r29+#0)\nr19:18 = memd(r29+#8)\nr21:20 = memd(r29+#16)\n"
    "r23:22 = memd(r29+#24)\nr25:24 = memd(r29+#32)\nr27:26 = memd(r29+#40)\n"
    "{ dealloc_return }\n");

int sched_yield(void) {
  word from = thread;
  for (word step = 1; step <= team; step++) {
    word next = (from + step) % team;
    if (threads[next].ended) continue;
    thread = next;
    if (next != from) tlx_turn(&threads[from].frame, threads[next].frame);
    return 0;
  }
  tlx_turn(&threads[from].frame, caller);
  return 0;
}

static void begin(void) {
  body(shared);
  threads[thread].ended = 1;
  sched_yield();
}

void GOMP_parallel(void (*function)(void *), void *data, word count, word flags) {
  (void)flags;
  if (team > 1 || count == 1 || count > MOST_THREADS) {
    if (team == 1 && count > 1) _exit(5);
    function(data);
    return;
  }
  body = function;
  shared = data;
  team = count ? count : THREADS;
  for (word i = 0; i < team; i++) {
    threads[i].stack = map(STACK);
    if (allow(threads[i].stack, STACK)) _exit(3);
    word *frame = (word *)(threads[i].stack + STACK - 256 - 64);
    frame[15] = (word)begin; /* the address to which `tlx_turn` returns */
    threads[i].frame = frame;
    threads[i].ended = 0;
  }
  thread = 0;
  tlx_turn(&caller, threads[0].frame);
  for (word i = 0; i < team; i++) unmap(threads[i].stack, STACK);
  team = 1;
  thread = 0;
}
int omp_get_max_threads(void) { return THREADS; }
int omp_get_thread_num(void) { return (int)thread; }
int omp_get_num_threads(void) { return (int)team; }
int omp_in_parallel(void) { return team > 1; }
#else
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define PAGE ((size)sysconf(_SC_PAGESIZE))
static void *map(size n) {
  void *p = mmap(0, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) _exit(3);
  return p;
}
static void unmap(void *p, size n) { munmap(p, n); }
static int allow(void *p, size n) { return mprotect(p, n, PROT_READ | PROT_WRITE); }
#endif

#if defined BARE || defined __powerpc64__ || defined __s390x__ || defined __riscv
/* Conversions of half, which libgcc does not have for these machines. LLVM passes its bits as an integer, on RISC-V in
   the low bits of a floating-point register. */
#ifdef __riscv
typedef float half;
static word bits_of(half h) { return (union { float value; word bits; }){h}.bits & 0xFFFF; }
static half half_of(word bits) { return (union { word bits; float value; }){bits | 0xFFFF0000}.value; }
#else
typedef unsigned short half;
static word bits_of(half h) { return h; }
static half half_of(word bits) { return bits; }
#endif

float __extendhfsf2(half x) {
  word h = bits_of(x);
  union { word bits; float value; } f;
  word exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 0) {
    f.value = fraction * 0x1p-24f;
    f.bits |= (word)(h >> 15) << 31;
    return f.value;
  }
  f.bits = (word)(h >> 15) << 31 | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
  if (exponent == 31 && fraction) f.bits |= 1u << 22;
  return f.value;
}

/* A number sign * mantissa * 2^(exponent - 52), where 2^52 <= mantissa, to nearest, ties to even. */
static word to_half(word sign, int exponent, unsigned long long mantissa) {
  if (exponent > 15) return sign << 15 | 0x7C00;
  int shift = exponent < -14 ? 42 + (-14 - exponent) : 42;
  if (shift > 54) return sign << 15;
  unsigned long long kept = mantissa >> shift, rest = mantissa & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  return sign << 15 | (exponent < -14 ? (word)kept : (word)(kept + ((exponent + 14) << 10)));
}

half __truncdfhf2(double d) {
  union { double value; unsigned long long bits; } f = {d};
  word sign = f.bits >> 63, exponent = f.bits >> 52 & 2047;
  unsigned long long fraction = f.bits & ((1ull << 52) - 1);
  if (exponent == 2047) return half_of(sign << 15 | 0x7C00 | (fraction ? 0x200 | fraction >> 42 : 0));
  if (exponent == 0) return half_of(sign << 15);
  return half_of(to_half(sign, (int)exponent - 1023, fraction | 1ull << 52));
}

half __truncsfhf2(float f) { return __truncdfhf2(f); }
#endif

#define FILL 0xFF

extern void (*const tlx_functions[])(void **);

struct array {
  size bytes, pages;
  byte *memory, *data;
};

static void get(void *to, size n) {
  while (n) {
    long done = read(0, to, n);
    if (done <= 0) _exit(done < 0 ? 4 : 0);
    to = (byte *)to + done;
    n -= done;
  }
}

static word get_word(void) {
  word w;
  get(&w, sizeof w);
  return w;
}

static void put(const void *from, size n) {
  while (n) {
    long done = write(1, from, n);
    if (done <= 0) _exit(4);
    from = (const byte *)from + done;
    n -= done;
  }
}

static void put_word(word w) { put(&w, sizeof w); }

static int is_filled(const byte *from, const byte *to) {
  while (from < to)
    if (*from++ != FILL) return 0;
  return 1;
}

static void take(struct array *a) {
  size page = PAGE, bytes = get_word(), at_end = get_word();
  a->bytes = bytes;
  a->pages = (bytes + page - 1) / page * page;
  a->memory = (byte *)map(a->pages + 2 * page) + page;
  if (a->pages && allow(a->memory, a->pages)) _exit(3);
  memset(a->memory, FILL, a->pages);
  a->data = a->memory + (at_end ? a->pages - bytes : 0);
  get(a->data, bytes);
}

static void give(struct array *a) {
  size page = PAGE;
  put_word(is_filled(a->memory, a->data) && is_filled(a->data + a->bytes, a->memory + a->pages));
  put(a->data, a->bytes);
  unmap(a->memory - page, a->pages + 2 * page);
}

static void call(struct array *arrays) {
  void *arguments[256];
  word function = get_word(), count = get_word();
  for (word i = 0; i < count; i++) {
    word n = get_word();
    if (i < sizeof arguments / sizeof *arguments) arguments[i] = arrays[n].data;
  }
  tlx_functions[function](arguments);
}

static void serve(void) {
  static struct array arrays[512];
  put_word(1);
  for (;;) {
    word count = get_word();
    for (word i = 0; i < count; i++) take(&arrays[i]);
    for (word calls = get_word(); calls; calls--) call(arrays);
    for (word i = 0; i < count; i++) give(&arrays[i]);
  }
}

#ifdef BARE
void tlx_start(void) { serve(); }
/* Vectors are spilled to an aligned stack. */
asm(".globl _start\n_start:\n{ r29 = and(r29,#-256) }\n{ call tlx_start }\n");
#else
int main(void) {
  serve();
  return 0;
}
#endif
