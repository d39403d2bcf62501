"""Steps of LLVM's instructions: arithmetic, casts, vector elements, memory, calls, tensor operations."""
