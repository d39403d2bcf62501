"""TLX from Python: compile a module, call its functions on numpy arrays, check its meaning.

compiler    `tlx.compile`
cache       compiled code on disk
cache_key   the key of a compilation there: all that determines its result
arguments   the arguments of machine code, checked against its parameters
call        calls of machine code with numpy arrays
wrappers    functions that take in memory what cannot be passed from outside
device      functions whose kernels run on a device
emulation   modules of other machines, which run under an emulator
signatures  parameters and results of functions, in terms of numpy
prototypes  the signatures of a module's functions
files       input and output files: paths and `-`, LLVM IR, bitcode, languages of front ends
validation  whether each stage's output means the same as the input
"""
