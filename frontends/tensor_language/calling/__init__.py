"""How kernels are called: from C, and from Python with numpy arrays.

signature       the calling convention: which C parameters a kernel's parameters become
header          a C header that declares the kernels of a program
arguments       numpy arrays and numbers, checked and taken apart into C parameters
runtime         kernels compiled into this process
"""
