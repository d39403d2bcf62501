"""Parser of LLVM assembly: lexer, recursive descent over types, values, instructions, functions and modules."""
