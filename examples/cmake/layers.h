/* A dense layer, and the scaling of a matrix. Matrices are row-major. */
#pragma once

enum { ROWS = 32, INPUTS = 64, OUTPUTS = 48 };

#ifdef __cplusplus
extern "C" {
#define restrict __restrict__
#endif

/* y = relu(x w): ROWS x INPUTS by INPUTS x OUTPUTS */
void dense(float *restrict y, const float *restrict x, const float *restrict w);

#ifdef __cplusplus
#undef restrict
}

/* y = factor * y, ROWS x OUTPUTS */
void scale(float *y, float factor);
#endif
