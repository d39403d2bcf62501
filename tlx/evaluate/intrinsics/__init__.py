"""LLVM's intrinsics and library functions in numpy, found by name in `table`."""
