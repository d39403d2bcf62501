// A bit of everything that C has: structs, unions, switches, gotos, variadic calls, function pointers, inline assembly.
#include <stdarg.h>
#include <stdio.h>

struct node {
  struct node *next;
  union { int i; float f; } value;
  int (*visit)(const char *, ...);
};

static int sum(int count, ...) {
  va_list list;
  int total = 0;
  va_start(list, count);
  while (count-- > 0) total += va_arg(list, int);
  va_end(list);
  return total;
}

static _Bool flag;
static const char *const words[] = {"plain", "quoted \"}\" {", 0};

int walk(struct node *first, int kind) {
  static void *places[] = {&&stop, &&more};
  int count = 0;
  for (struct node *n = first; n; n = n->next) {
    switch (kind) {
    case 0: count += n->value.i; break;
    case 1: count += (int)n->value.f; break;
    case 7: goto *places[count & 1];
    default: count += n->visit(words[count & 1], count);
    }
  more:
    __asm__ volatile("" : "+r"(count) : : "memory");
  }
stop:
  flag = count > 3;
  return sum(3, count, kind, 5) + __sync_fetch_and_add(&count, 1);
}

int main(void) {
  struct node n = {0, {1}, printf};
  return walk(&n, 2);
}
