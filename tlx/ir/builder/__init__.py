"""Builders of IR in llvmlite's idiom: values, instructions and loops, tensor operations, parallel regions."""
