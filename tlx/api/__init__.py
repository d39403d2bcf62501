"""TLX from Python: compile a module, call its functions on numpy arrays, check what it means.

compiler    `tlx.compile`
call        calling machine code with numpy arrays
signatures  what functions take and return, seen from numpy
namespace   functions by name
files       what users name: paths and `-`, LLVM IR, bitcode, the languages of front ends
validation  does what a stage leaves mean the same as the input?
"""
