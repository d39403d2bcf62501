#include "layers.h"

// The transpose of a row-major matrix: clang's matrices are column-major.
using Matrix = float __attribute__((matrix_type(OUTPUTS, ROWS)));

void scale(float *y, float factor) {
  Matrix m = __builtin_matrix_column_major_load(y, OUTPUTS, ROWS, OUTPUTS);
  __builtin_matrix_column_major_store(factor * m, y, OUTPUTS);
}
