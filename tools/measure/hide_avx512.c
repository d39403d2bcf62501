/* Hide AVX-512 and AMX from a process, to measure libraries that choose their kernels by CPUID with AVX2 only.
 *
 *     cc -O2 -shared -fPIC tools/measure/hide_avx512.c -o hide_avx512.so
 *     LD_PRELOAD=$PWD/hide_avx512.so tlx bench models blocks --target=avx2 --types=f32
 *
 * Linux on x86-64, on processors with CPUID faulting (`cpuid_fault` in /proc/cpuinfo): CPUID raises SIGSEGV, and the
 * handler answers without these features. Threads inherit that; programs that are started preload the library, too. A
 * program that installs its own handler of SIGSEGV afterwards, or reads /proc/cpuinfo, is not deceived.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define BIT(n) (1u << (n))

static const long set_cpuid_fault = 0x1012; /* ARCH_SET_CPUID of <asm/prctl.h> */
static struct sigaction previous;

static void allow_cpuid(long allowed) { syscall(SYS_arch_prctl, set_cpuid_fault, allowed); }

static void answer(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *code = (const unsigned char *)registers[REG_RIP];
  if (info->si_code != SI_KERNEL || code[0] != 0x0f || code[1] != 0xa2) { /* no CPUID */
    sigaction(number, &previous, NULL);                                     /* the instruction faults again */
    return;
  }
  unsigned leaf = (unsigned)registers[REG_RAX], part = (unsigned)registers[REG_RCX], a, b, c, d;
  allow_cpuid(1);
  __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(part));
  allow_cpuid(0);
  if (leaf == 7 && part == 0) {
    /* F, DQ, IFMA, PF, ER, CD, BW and VL */
    b &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31));
    c &= ~(BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14)); /* VBMI VBMI2 VNNI BITALG VPOPCNTDQ */
    d &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25)); /* 4VNNIW 4FMAPS VP2INTERSECT AMX FP16 */
  } else if (leaf == 7 && part == 1) {
    a &= ~(BIT(4) | BIT(5) | BIT(21) | BIT(23)); /* AVX-VNNI AVX512-BF16 AMX-FP16 AVX-IFMA */
  }
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void hide(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = answer;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  sigaction(SIGSEGV, &action, &previous);
  allow_cpuid(0);
}
