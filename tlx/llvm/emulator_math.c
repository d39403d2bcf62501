/* Arithmetic of doubles and mathematical functions for programs without a C library, for `tlx.llvm.emulator`.

   Arithmetic is rounded once, also to subnormal numbers. Functions of double are computed in pairs of doubles (Dekker,
   A floating-point technique for extending the available precision, 1971), of about 100 bits, and rounded; those of
   float are those of double, rounded again. Slow, but for tests of code that calls a library.

   Compiled for Hexagon v67, which adds, multiplies, compares and converts doubles. */

typedef unsigned word;
typedef unsigned long long bits64;
typedef struct { double high, low; } pair;

#define SIGN (1ull << 63)
#define INFINITE (0x7FFull << 52)
#define FRACTION ((1ull << 52) - 1)

static bits64 bits_of(double x) { return (union { double value; bits64 bits; }){x}.bits; }
static double double_of(bits64 bits) { return (union { bits64 bits; double value; }){bits}.value; }
static double infinity(bits64 sign) { return double_of(sign | INFINITE); }
static double not_a_number(void) { return double_of(INFINITE | 1ull << 51); }
static bits64 sign_of(double x) { return bits_of(x) & SIGN; }
static int is_finite(double x) { return (bits_of(x) & INFINITE) != INFINITE; }
static double magnitude(double x) { return double_of(bits_of(x) & ~SIGN); }
static double with_sign(double x, bits64 sign) { return double_of((bits_of(x) & ~SIGN) | sign); }

/* A finite number other than zero is mantissa * 2^exponent, 2^52 <= mantissa < 2^53. */
static bits64 mantissa_of(double x, int *exponent) {
  bits64 fraction = bits_of(x) & FRACTION;
  int biased = bits_of(x) >> 52 & 2047;
  if (biased) fraction |= 1ull << 52;
  else biased = 1;
  for (; !(fraction >> 52); biased--) fraction <<= 1;
  *exponent = biased - 1075;
  return fraction;
}

/* mantissa * 2^exponent to nearest, ties to even; the last bit is set where more bits follow. */
static double rounded(bits64 sign, bits64 mantissa, int exponent) {
  if (!mantissa) return double_of(sign);
  for (; !(mantissa >> 63); exponent--) mantissa <<= 1;
  if (exponent > 960) return infinity(sign);
  int shift = exponent < -1085 ? 11 + (-1085 - exponent) : 11;
  if (shift > 64) return double_of(sign);
  bits64 kept = shift == 64 ? 0 : mantissa >> shift, rest = mantissa << (64 - shift), half = 1ull << 63;
  kept += rest > half || (rest == half && (kept & 1));
  bits64 biased = shift > 11 ? 0 : (bits64)(exponent + 1085);
  return double_of(sign | ((biased << 52) + kept)); /* the first bit of a normal number adds 1 to the exponent */
}

static double scaled(double x, int n) {
  if (!is_finite(x) || x == 0) return x;
  int exponent;
  bits64 mantissa = mantissa_of(x, &exponent);
  return rounded(sign_of(x), mantissa, exponent + n);
}

/* Arithmetic --------------------------------------------------------------------------------------------------- */

double __hexagon_adddf3(double x, double y) { return x + y; }
double __hexagon_subdf3(double x, double y) { return x - y; }
double __hexagon_muldf3(double x, double y) { return x * y; }

double __hexagon_divdf3(double x, double y) {
  bits64 sign = sign_of(x) ^ sign_of(y);
  if (x != x || y != y) return not_a_number();
  if (!is_finite(x)) return is_finite(y) ? infinity(sign) : not_a_number();
  if (y == 0) return x == 0 ? not_a_number() : infinity(sign);
  if (x == 0 || !is_finite(y)) return double_of(sign);
  int e, f;
  bits64 rest = mantissa_of(x, &e), divisor = mantissa_of(y, &f), quotient = 0;
  for (int i = 0; i < 56; i++, rest <<= 1) {
    quotient <<= 1;
    if (rest >= divisor) rest -= divisor, quotient |= 1;
  }
  return rounded(sign, quotient << 1 | (rest != 0), e - f - 56);
}

double sqrt(double x) {
  if (x == 0 || x != x || x == infinity(0)) return x;
  if (x < 0) return not_a_number();
  int exponent;
  bits64 rest = mantissa_of(x, &exponent), root = 0, doubled = 0;
  rest <<= exponent & 1 ? 2 : 1;
  for (bits64 bit = 1ull << 53; bit; bit >>= 1, rest <<= 1) {
    bits64 next = doubled + bit;
    if (next <= rest) doubled = next + bit, rest -= next, root += bit;
  }
  return rounded(0, root << 1 | (rest != 0), (exponent - (exponent & 1)) / 2 - 28);
}

/* A sum of 256 bits, the lowest word first, with sign: the product of mantissas is at bit 64. */
enum { WORDS = 8, PRODUCT_BIT = 64, HIGHEST_BIT = 200 };

static void add_at(word *sum, bits64 number, int bit, int is_negative) {
  word addend[WORDS] = {0};
  if (bit < 0) number = bit > -64 && number >> -bit ? number >> -bit | 1 : 1, bit = 0; /* what is cut off is not zero */
  int index = bit >> 5, shift = bit & 31;
  addend[index] = (word)(number << shift);
  addend[index + 1] = (word)(number >> (32 - shift));
  if (shift) addend[index + 2] = (word)(number >> 32 >> (32 - shift));
  bits64 carry = is_negative;
  for (int i = 0; i < WORDS; i++) {
    carry += (bits64)sum[i] + (is_negative ? ~addend[i] : addend[i]);
    sum[i] = (word)carry;
    carry >>= 32;
  }
}

static double sum_of(word *sum, int exponent) {
  bits64 sign = sum[WORDS - 1] >> 31 ? SIGN : 0, carry = 1, mantissa = 0;
  for (int i = 0; sign && i < WORDS; i++) carry += (word)~sum[i], sum[i] = (word)carry, carry >>= 32;
  int top = WORDS - 1;
  while (top > 0 && !sum[top]) top--;
  for (int i = top; i >= 0 && i > top - 2; i--) mantissa = mantissa << 32 | sum[i];
  int shift = top > 0 ? 32 * (top - 1) : 0;
  word below = 0;
  for (int i = 0; i < top - 2; i++) below |= sum[i];
  if (top > 1) { /* the third word may have bits that matter where the first has few */
    for (int i = 31; !(mantissa >> 63); i--, shift--) {
      mantissa = mantissa << 1 | (sum[top - 2] >> i & 1);
      sum[top - 2] &= ~(1u << i);
    }
    below |= sum[top - 2];
  }
  return rounded(sign, mantissa | (below != 0), exponent + shift);
}

double fma(double x, double y, double z) {
  if (!is_finite(x) || !is_finite(y) || x == 0 || y == 0) return x * y + z;
  if (!is_finite(z)) return z;
  int ex, ey, ez = 0;
  bits64 mx = mantissa_of(x, &ex), my = mantissa_of(y, &ey), mz = z == 0 ? 0 : mantissa_of(z, &ez);
  int is_negative = sign_of(x) != sign_of(y), exponent = ex + ey - PRODUCT_BIT, bit = ez - exponent;
  word sum[WORDS] = {0};
  if (mz && bit > HIGHEST_BIT) { /* the product is below the last bit of the sum */
    add_at(sum, mz, HIGHEST_BIT, z < 0);
    add_at(sum, 1, 0, is_negative);
    return sum_of(sum, ez - HIGHEST_BIT);
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      add_at(sum, (mx >> 32 * i & 0xFFFFFFFF) * (my >> 32 * j & 0xFFFFFFFF), PRODUCT_BIT + 32 * (i + j), is_negative);
  if (mz) add_at(sum, mz, bit, z < 0);
  word any = 0;
  for (int i = 0; i < WORDS; i++) any |= sum[i];
  return any ? sum_of(sum, exponent) : 0.0;
}

/* A product of floats is exact in double; a sum rounded to odd there is rounded right to float. */
float fmaf(float x, float y, float z) {
  double product = (double)x * y, sum = product + z, part = sum - product;
  double error = (product - (sum - part)) + (z - part);
  if (is_finite(sum) && error != 0 && !(bits_of(sum) & 1))
    sum = double_of(bits_of(sum) + ((sum < 0) == (error < 0) ? 1 : -1));
  return (float)sum;
}

/* Rounding to integers ----------------------------------------------------------------------------------------- */

double trunc(double x) {
  int exponent = (int)(bits_of(x) >> 52 & 2047) - 1023;
  if (exponent >= 52) return (x != x ? x + x : x);
  return exponent < 0 ? with_sign(0, sign_of(x)) : double_of(bits_of(x) & ~(FRACTION >> exponent));
}
double floor(double x) { return trunc(x) > x ? trunc(x) - 1 : trunc(x); }
double ceil(double x) { return trunc(x) < x ? with_sign(trunc(x) + 1, sign_of(x)) : trunc(x); }
double round(double x) {
  double rest = magnitude(x) - magnitude(trunc(x));
  return rest >= 0.5 ? with_sign(magnitude(trunc(x)) + 1, sign_of(x)) : trunc(x);
}
double roundeven(double x) {
  double size = magnitude(x);
  return size < 0x1p52 ? with_sign(size + 0x1p52 - 0x1p52, sign_of(x)) : (x != x ? x + x : x);
}
double rint(double x) { return roundeven(x); }
double nearbyint(double x) { return roundeven(x); }

double fmod(double x, double y) {
  if (x != x || y != y || !is_finite(x) || y == 0) return not_a_number();
  if (magnitude(x) < magnitude(y) || x == 0) return x;
  int e, f;
  bits64 rest = mantissa_of(x, &e), divisor = mantissa_of(y, &f);
  for (;; rest <<= 1, e--) {
    if (rest >= divisor) rest -= divisor;
    if (e == f) return rounded(sign_of(x), rest, f);
  }
}

/* Pairs of doubles --------------------------------------------------------------------------------------------- */

static pair exact_sum(double x, double y) {
  double sum = x + y, part = sum - x;
  return (pair){sum, (x - (sum - part)) + (y - part)};
}
static pair exact_product(double x, double y) {
  double high_x = double_of(bits_of(x) & ~0ull << 27), low_x = x - high_x, product = x * y;
  double high_y = double_of(bits_of(y) & ~0ull << 27), low_y = y - high_y;
  return (pair){product, ((high_x * high_y - product) + high_x * low_y + low_x * high_y) + low_x * low_y};
}
static pair add(pair x, pair y) {
  pair sum = exact_sum(x.high, y.high), low = exact_sum(x.low, y.low);
  sum = exact_sum(sum.high, sum.low + low.high);
  return exact_sum(sum.high, sum.low + low.low);
}
static pair multiply(pair x, pair y) {
  pair product = exact_product(x.high, y.high);
  return exact_sum(product.high, product.low + (x.high * y.low + x.low * y.high));
}
static pair negative(pair x) { return (pair){-x.high, -x.low}; }
static pair divide(pair x, pair y) {
  pair quotient = {x.high / y.high, 0}, rest = add(x, negative(multiply(quotient, y)));
  quotient = exact_sum(quotient.high, rest.high / y.high);
  rest = add(x, negative(multiply(quotient, y)));
  return add(quotient, (pair){rest.high / y.high, 0});
}
static pair of(double x) { return (pair){x, 0}; }

static const pair LN2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}, LN10 = {0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53}, HALF_PI = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

/* e^x = result * 2^exponent, for |x| < 10^4. */
static pair exponential(pair x, int *exponent) {
  double n = roundeven(x.high / LN2.high);
  *exponent = (int)n;
  pair r = add(x, negative(multiply(of(n), LN2))), sum = of(1);
  r = (pair){r.high * 0x1p-8, r.low * 0x1p-8};
  for (int i = 10; i; i--) sum = add(of(1), multiply(sum, divide(r, of(i))));
  for (int i = 0; i < 8; i++) sum = multiply(sum, sum);
  return sum;
}

/* ln x of a positive number: m 2^n, s = (m - 1) / (m + 1), 2 (s + s^3 / 3 + ...). */
static pair logarithm(double x) {
  int n;
  double m = (double)mantissa_of(x, &n) * 0x1p-52;
  n += 52;
  if (m > 1.4142135623730951) m *= 0.5, n++;
  pair s = divide(of(m - 1), exact_sum(m, 1)), square = multiply(s, s), sum = of(0);
  for (int i = 43; i > 0; i -= 2) sum = add(multiply(sum, square), divide(of(2), of(i)));
  return add(multiply(sum, s), multiply(of(n), LN2));
}

static double as_double(pair x) { return x.high + x.low; }

/* scaled(), rounded once also where the result is subnormal. */
static double scaled_pair(pair x, int exponent) {
  double sum = x.high + x.low, error = x.low - (sum - x.high);
  if (error != 0 && !(bits_of(sum) & 1) && exponent < -1000)
    sum = double_of(bits_of(sum) + ((sum < 0) == (error < 0) ? 1 : -1));
  return scaled(sum, exponent);
}

/* Functions ---------------------------------------------------------------------------------------------------- */

static double power_of_e(pair x) {
  if (x.high != x.high) return x.high;
  if (magnitude(x.high) > 800) return sign_of(x.high) ? 0 : infinity(0);
  int exponent;
  pair result = exponential(x, &exponent);
  return scaled_pair(result, exponent);
}
double exp(double x) { return power_of_e(of(x)); }
double exp2(double x) {
  if (!is_finite(x) || magnitude(x) > 1100) return power_of_e(of(x));
  double n = roundeven(x);
  int exponent;
  pair result = exponential(multiply(of(x - n), LN2), &exponent);
  return scaled_pair(result, exponent + (int)n);
}

/* ln x / ln base. */
static double logarithm_to(double x, pair ln_base) {
  if (x != x || x == infinity(0)) return x;
  if (x <= 0) return x == 0 ? infinity(SIGN) : not_a_number();
  return as_double(divide(logarithm(x), ln_base));
}
double log(double x) { return logarithm_to(x, of(1)); }
double log2(double x) { return logarithm_to(x, LN2); }
double log10(double x) { return logarithm_to(x, LN10); }

double pow(double x, double y) {
  if (x == 1 || y == 0) return 1;
  if (x != x || y != y) return not_a_number();
  double size = magnitude(x);
  int is_integer = trunc(y) == y, is_odd = is_integer && magnitude(y) < 0x1p53 && ((long long)magnitude(y) & 1);
  bits64 sign = is_odd ? sign_of(x) : 0;
  if (!is_finite(y)) return size == 1 ? 1 : (size > 1) == (y > 0) ? infinity(0) : 0;
  if (x == 0 || !is_finite(x)) return (x == 0) == (y < 0) ? infinity(sign) : double_of(sign);
  if (x < 0 && !is_integer) return not_a_number();
  if (size == 1) return with_sign(1, sign);
  pair ln = logarithm(size);
  if (magnitude(y) > 0x1p70) return (ln.high > 0) == (y > 0) ? infinity(sign) : double_of(sign);
  return with_sign(power_of_e(multiply(ln, of(y))), sign);
}

double tanh(double x) {
  double size = magnitude(x);
  if (x != x || size < 1e-9) return x;
  if (size > 25) return with_sign(1, sign_of(x));
  int n;
  pair e = exponential(of(2 * size), &n);
  e = (pair){scaled(e.high, n), scaled(e.low, n)};
  return with_sign(as_double(divide(add(e, of(-1)), add(e, of(1)))), sign_of(x));
}

/* 2 / pi */
static const word TWO_OVER_PI[] = {
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D
};

/* x = q pi / 2 + r, |r| <= pi / 4; q modulo 4. A mantissa times those 192 bits of 2 / pi that are not multiples of 4. */
/* number * 2^(32 index) */
static void add_at_word(word *sum, bits64 number, int index) {
  for (bits64 carry = number; index < WORDS && carry; index++) {
    bits64 next = (bits64)sum[index] + (word)carry;
    sum[index] = (word)next;
    carry = (carry >> 32) + (next >> 32);
  }
}
static int bit_at(const word *number, int bit) {
  return bit >= 0 && bit < 32 * WORDS ? number[bit >> 5] >> (bit & 31) & 1 : 0;
}
static int reduce(double size, pair *r) {
  int e;
  bits64 mantissa = mantissa_of(size, &e);
  int first = e < 2 ? 0 : e - 2; /* bits of the table before this one give multiples of 4 */
  word product[WORDS] = {0};
  for (int i = 0; i < 6; i++) { /* the lowest word first */
    int bit = first + 32 * (5 - i), index = bit >> 5, shift = bit & 31;
    word factor = (word)(((bits64)TWO_OVER_PI[index] << 32 | TWO_OVER_PI[index + 1]) >> (32 - shift));
    for (int j = 0; j < 2; j++)
      add_at_word(product, (mantissa >> 32 * j & 0xFFFFFFFF) * factor, i + j);
  }
  int point = 192 + first - e; /* bits after the binary point */
  int q = 0;
  pair sum = of(0);
  for (int i = 1; i >= 0; i--) q = q << 1 | bit_at(product, point + i);
  int is_above = bit_at(product, point - 1);
  for (int part = 0; part < 3; part++) { /* the fraction, or what it lacks to 1 */
    bits64 digits = 0;
    for (int i = 0; i < 48; i++) digits = digits << 1 | (bit_at(product, point - 1 - 48 * part - i) ^ is_above);
    sum = add(sum, of(scaled((double)digits, -48 * (part + 1))));
  }
  *r = multiply(is_above ? negative(sum) : sum, HALF_PI);
  return (q + is_above) & 3;
}

/* The Taylor series from x (odd) or 1. */
static pair series(pair x, int is_odd) {
  pair square = multiply(x, x), sum = of(1);
  for (int i = 28 + is_odd; i > 1; i -= 2)
    sum = add(of(1), negative(multiply(sum, divide(square, of(i * (i - 1))))));
  return is_odd ? multiply(sum, x) : sum;
}

static double sine(double x, int quarter) {
  if (!is_finite(x)) return not_a_number();
  double size = magnitude(x);
  if (size < 1e-9) return quarter ? 1 : x;
  pair r = of(size);
  int q = size < 0.7 ? 0 : reduce(size, &r);
  q = (q + quarter) & 3;
  double result = as_double(series(r, !(q & 1)));
  if (q & 2) result = -result;
  return quarter ? result : with_sign(result, sign_of(result) ^ sign_of(x));
}
double sin(double x) { return sine(x, 0); }
double cos(double x) { return sine(x, 1); }

/* Of float ----------------------------------------------------------------------------------------------------- */

#define OF_FLOAT(NAME) float NAME##f(float x) { return (float)NAME(x); }
OF_FLOAT(sqrt) OF_FLOAT(trunc) OF_FLOAT(floor) OF_FLOAT(ceil) OF_FLOAT(round) OF_FLOAT(roundeven) OF_FLOAT(rint)
OF_FLOAT(nearbyint) OF_FLOAT(exp) OF_FLOAT(exp2) OF_FLOAT(log) OF_FLOAT(log2) OF_FLOAT(log10) OF_FLOAT(tanh)
OF_FLOAT(sin) OF_FLOAT(cos)
float powf(float x, float y) { return (float)pow(x, y); }
float fmodf(float x, float y) { return (float)fmod(x, y); }
double __hexagon_sqrtdf2(double x) { return sqrt(x); }
float __hexagon_sqrtf(float x) { return sqrtf(x); }
