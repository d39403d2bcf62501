"""How kernels are called: from C, and from Python with numpy arrays.

signature       the C parameters of a kernel, and a C header that declares the kernels of a program
arguments       numpy arrays and numbers, checked and converted to C parameters
runtime         kernels compiled into this process
"""
