"""C programs compiled by clang at several levels: the evaluator gives what the native code gives."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.tools import require
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse

Ints = NDArray[np.int32]

PRELUDE = """
#include <stdint.h>
#include <stddef.h>
void *malloc(size_t); void free(void *); void *memcpy(void *, const void *, size_t); void *memset(void *, int, size_t);
float sqrtf(float);
"""

PROGRAMS = {
    "sort": """
static void sift(int *a, int i, int n) {
  for (;;) {
    int c = 2 * i + 1;
    if (c >= n) return;
    if (c + 1 < n && a[c + 1] > a[c]) c++;
    if (a[i] >= a[c]) return;
    int t = a[i]; a[i] = a[c]; a[c] = t; i = c;
  }
}
void test(const int32_t *in, int32_t *out, int n) {
  memcpy(out, in, n * sizeof(int));
  for (int i = n / 2 - 1; i >= 0; i--) sift(out, i, n);
  for (int m = n - 1; m > 0; m--) { int t = out[0]; out[0] = out[m]; out[m] = t; sift(out, 0, m); }
}""",
    "matmul": """
void test(const int32_t *in, int32_t *out, int n) {
  float a[8][8], b[8][8];
  for (int i = 0; i < 64; i++) { a[i / 8][i % 8] = in[i % n] * 0.5f; b[i / 8][i % 8] = in[(i + 7) % n] * 0.25f; }
  for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) {
    float s = 0; for (int k = 0; k < 8; k++) s += a[i][k] * b[k][j];
    if (i * 8 + j < n) out[i * 8 + j] = (int)(s / 1024);
  }
}""",
    "structs": """
struct node { int8_t tag; struct node *next; double value; uint16_t more[3]; };
typedef int (*op)(int, int);
static int add(int a, int b) { return a + b; }
static int mix(int a, int b) { return a * 31 ^ b; }
static const op table[2] = { add, mix };
void test(const int32_t *in, int32_t *out, int n) {
  struct node *head = 0;
  for (int i = 0; i < n; i++) {
    struct node *x = malloc(sizeof *x);
    x->tag = (int8_t)in[i]; x->value = in[i] / 3.0; x->next = head; x->more[i % 3] = (uint16_t)(in[i] >> 3);
    x->more[(i + 1) % 3] = 0; x->more[(i + 2) % 3] = 1;
    head = x;
  }
  int i = 0, r = 1;
  while (head) {
    struct node *x = head;
    r = table[i & 1](r & 0xffff, x->tag) + (int)x->value + x->more[0] + x->more[1] * 2 + x->more[2] * 3;
    out[i++] = r; head = x->next; free(x);
  }
}""",
    "integers": """
static unsigned rotate(unsigned x, int k) { return x << k | x >> (32 - k); }
void test(const int32_t *in, int32_t *out, int n) {
  uint64_t state = 88172645463325252ull;
  for (int i = 0; i < n; i++) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    int64_t wide = (int64_t)in[i] * (int32_t)state;
    unsigned u = (unsigned)in[i];
    out[i] = (int)(wide / 1000003 + wide % 977) ^ rotate(u, 5) ^ (int)(u / 7 + u % 13)
           ^ __builtin_popcount(u) ^ __builtin_ctz(u | 1) ^ __builtin_clz(u | 1) ^ (in[i] >> 3)
           ^ (int)(((unsigned __int128)state * u) >> 40);
  }
}""",
    "switches": """
enum { ADD, SUB, MUL, JMP, END };
static const unsigned char code[] = { ADD, 3, MUL, 2, SUB, 1, JMP, 9, END, ADD, 100, END };
static const char *names[] = { "add", "sub", "mul", "jmp", "end" };
void test(const int32_t *in, int32_t *out, int n) {
  for (int i = 0; i < n; i++) {
    unsigned acc = in[i]; int pc = 0, trace = 0;
    for (;;) {
      trace = trace * 7 + names[code[pc]][1];
      switch (code[pc]) {
        case ADD: acc += code[pc + 1]; pc += 2; continue;
        case SUB: acc -= code[pc + 1]; pc += 2; continue;
        case MUL: acc *= code[pc + 1]; pc += 2; continue;
        case JMP: pc = code[pc + 1]; continue;
        default: break;
      }
      break;
    }
    out[i] = acc ^ trace;
  }
}""",
    "recursion": """
static int counter;
static int ackermann(int m, int n) {
  counter++;
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
void test(const int32_t *in, int32_t *out, int n) {
  counter = 0;
  for (int i = 0; i < n && i < 6; i++) out[i] = ackermann(2, (in[i] & 3) + i) * 1000 + counter % 1000;
}""",
    "floats": """
struct pair { float x, y; };
static struct pair turn(struct pair p) { struct pair r = { -p.y, p.x }; return r; }
struct big { double v[5]; };
static double total(struct big b) { b.v[0] += 1; double s = 0; for (int i = 0; i < 5; i++) s += b.v[i]; return s; }
void test(const int32_t *in, int32_t *out, int n) {
  struct big b;
  for (int i = 0; i < 5; i++) b.v[i] = in[i % n] * 0.125;
  for (int i = 0; i < n; i++) {
    struct pair p = { in[i] * 0.001f, in[(i + 1) % n] * 0.002f };
    p = turn(turn(turn(p)));
    float norm = sqrtf(p.x * p.x + p.y * p.y);
    double d = total(b) / (1.0 + (norm > 1e6f ? 2 : norm < 10 ? 3.5 : norm));
    out[i] = (int)(norm * 16) + (int)d + (p.x != p.x) + (int)(unsigned char)(p.y > 0 ? 3.7f : 2.2);
  }
}""",
    "variable_length": """
void test(const int32_t *in, int32_t *out, int n) {
  for (int r = 1; r <= 3; r++) {
    int row[n * r];
    memset(row, 0x11, sizeof row);
    for (int i = 0; i < n; i++) row[i * r] = in[i];
    for (int i = 0; i < n; i++) out[i] = (r == 1 ? 0 : out[i]) * 3 + row[(i * 5) % (n * r)];
  }
}""",
    "bytes": """
struct __attribute__((packed)) odd { char c; int i; short s; };
struct bits { unsigned a : 3, b : 11, c : 18; };
union view { float f; uint32_t u; unsigned char b[4]; };
void test(const int32_t *in, int32_t *out, int n) {
  char text[] = "the quick brown fox";
  for (int i = 0; i < n; i++) {
    struct odd o = { (char)in[i], in[i] * 3, (short)(in[i] >> 2) };
    unsigned char raw[sizeof o]; memcpy(raw, &o, sizeof o);
    struct bits f = { in[i] & 7, in[i] & 2047, in[i] & 0x3ffff };
    union view v; v.f = (float)in[i];
    int h = 0; for (size_t k = 0; k < sizeof raw; k++) h = h * 131 + raw[k];
    for (char *p = text; *p; p++) { if (*p >= 'a' && *p <= 'z') *p = 'a' + (*p - 'a' + 1) % 26; h += *p; }
    out[i] = h ^ (f.a + f.b * 3 + f.c * 5) ^ v.u ^ v.b[2];
  }
}""",
}
COUNT = 37
BUILDS = [
    ("clang-19", ["-O0"]),
    ("clang-19", ["-O2"]),
    ("clang-19", ["-O3", "-mavx512f", "-mavx512vl", "-mavx512bw"]),
    ("clang-14", ["-O0"]),
    ("clang-14", ["-O2"]),
]


def compile_c(compiler: str, source: str, flags: list[str], target: Path) -> None:
    command = [require(compiler), *flags, "-ffp-contract=off", "-x", "c", "-", "-o", str(target)]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ints]:
    """What each program gives when it is compiled."""
    folder = tmp_path_factory.mktemp("programs")
    results: dict[str, Ints] = {}
    for name, source in PROGRAMS.items():
        library = folder / f"{name}.so"
        compile_c("clang-19", PRELUDE + source, ["-O1", "-shared", "-fPIC"], library)
        out = np.zeros(COUNT, np.int32)
        ctypes.CDLL(str(library)).test(
            operand().ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), COUNT
        )
        results[name] = out
    return results


def operand() -> Ints:
    return np.random.default_rng(5).integers(-100000, 100000, COUNT).astype(np.int32)


@pytest.mark.parametrize("build", BUILDS, ids=lambda b: " ".join([b[0], *b[1][:1]]))
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_native_code_gives(
    name: str,
    build: tuple[str, list[str]],
    native: dict[str, Ints],
    tmp_path: Path,
) -> None:
    compiler, flags = build
    text = tmp_path / f"{name}.ll"
    compile_c(compiler, PRELUDE + PROGRAMS[name], [*flags, "-S", "-emit-llvm"], text)
    out = np.zeros(COUNT, np.int32)
    Machine(parse(text.read_text(), text.name)).call("test", operand(), out, COUNT)
    np.testing.assert_array_equal(out, native[name])
