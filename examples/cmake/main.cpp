#include "layers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  std::vector<float> x(ROWS * INPUTS), w(INPUTS * OUTPUTS), y(ROWS * OUTPUTS);
  for (int i = 0; i < ROWS * INPUTS; i++) x[i] = (i % 7) - 3;
  for (int i = 0; i < INPUTS * OUTPUTS; i++) w[i] = (i % 5) - 2;
  dense(y.data(), x.data(), w.data());
  scale(y.data(), 0.5f);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < OUTPUTS; j++) {
      float sum = 0;
      for (int k = 0; k < INPUTS; k++) sum += x[INPUTS * i + k] * w[OUTPUTS * k + j];
      if (y[OUTPUTS * i + j] != 0.5f * std::max(sum, 0.0f)) {
        std::printf("row %d, column %d: %g\n", i, j, y[OUTPUTS * i + j]);
        return 1;
      }
    }
  std::puts("all elements agree");
}
