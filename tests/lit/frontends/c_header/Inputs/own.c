/* No header: the program declares the placeholders itself, with types of its own. */
#pragma clang diagnostic ignored "-Wpsabi"

typedef float v16 __attribute__((__vector_size__(64), __aligned__(4)));
typedef float v4 __attribute__((__vector_size__(16), __aligned__(4)));
typedef int s2 __attribute__((__vector_size__(8), __aligned__(4)));
typedef int s3 __attribute__((__ext_vector_type__(3)));
typedef signed char c4 __attribute__((__vector_size__(4)));
typedef long token;

token tensor_typeinfo(v16, s2, s2, s2);
token tensor_typeinfo_v4(v4, s2, s2, s2);
token tensor_typeinfo_3d(v16, s3, s3, s3);
token tensor_typeinfo_i8_4(c4, s2, s2, s2);
token tensor_load_f32(const float *, s2, s2, s2, s2);
void tensor_store(float *, token, s2);
v16 tensor_matmul(token, token);
v4 tensor_matmul_v4(token, token);
c4 tensor_matmul_c4(token, token);
v16 tensor_broadcast(token, float);
c4 tensor_broadcast_i8(token, signed char);
token outer(v16) __asm__("\01tensor_totensor");

#define SHAPE s2 S = {4, 4}, L = {0, 1}, P = {0, 0}

v16 matmul(v16 a, v16 b, float s) {
  SHAPE;
  token t = tensor_typeinfo(a, S, L, P);
  return tensor_matmul(t, tensor_typeinfo(b, S, L, P)) + tensor_broadcast(t, s);
}
v4 matmul4(v4 a, v4 b) {
  s2 S = {2, 2}, L = {0, 1}, P = {0, 0};
  return tensor_matmul_v4(tensor_typeinfo_v4(a, S, L, P), tensor_typeinfo_v4(b, S, L, P));
}
v16 matmul3(v16 a) {
  s3 S = {1, 4, 4}, L = {0, 1, 2}, P = {0, 0, 0};
  token t = tensor_typeinfo_3d(a, S, L, P);
  return tensor_matmul(t, t);
}
c4 bytes(c4 a, signed char s) {
  s2 S = {2, 2}, L = {0, 1}, P = {0, 0};
  token t = tensor_typeinfo_i8_4(a, S, L, P);
  return tensor_matmul_c4(t, tensor_typeinfo_i8_4(tensor_broadcast_i8(t, s), S, L, P));
}
void copy(float *to, const float *from) {
  SHAPE;
  tensor_store(to, tensor_load_f32(from, S, L, P, P), P);
}
