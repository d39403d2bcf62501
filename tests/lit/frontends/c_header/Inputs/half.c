/* Elements of 16 bits. */
#include <tlx.h>

typedef int dims2 __attribute__((__vector_size__(8), __aligned__(4)));
typedef __bf16 b256 __attribute__((__vector_size__(512), __aligned__(2)));
typedef _Float16 h256 __attribute__((__vector_size__(512), __aligned__(2)));
typedef _Float16 h4 __attribute__((__vector_size__(8)));
typedef __bf16 b2 __attribute__((__vector_size__(4)));
typedef float f256 __attribute__((__vector_size__(1024), __aligned__(4)));

#define M16 (dims2){16, 16}, (dims2){0, 1}, (dims2){0, 0}

#ifdef __cplusplus
extern "C" {
#endif
void bfloats(f256 *out, const b256 *a, const b256 *b) {
  *out = TLX_CALL(f256, matmul, tensor_typeinfo(*a, M16), tensor_typeinfo(*b, M16));
}
void halves(f256 *out, const h256 *a, const _Float16 *b) {
  *out = TLX_CALL(f256, matmul, tensor_typeinfo(*a, M16), tensor_load(b, M16, (dims2){0, 0}));
}
void scalars(h256 *h, b256 *b, _Float16 x, __bf16 y) {
  *h = TLX_CALL(h256, broadcast, tensor_typeinfo(*h, M16), x);
  *b = TLX_CALL(b256, broadcast, tensor_typeinfo(*b, M16), y);
}
void small(h4 *h, b2 *b) {
  int t = tensor_typeinfo(*h, (dims2){2, 2}, (dims2){0, 1}, (dims2){0, 0});
  *h = TLX_CALL(h4, matmul, t, t);
  t = tensor_typeinfo(*b, (dims2){1, 2}, (dims2){0, 1}, (dims2){0, 0});
  *b = TLX_CALL(b2, transpose, t, (dims2){1, 0});
}
#ifdef __cplusplus
}
#endif
