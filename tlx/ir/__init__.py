"""Lossless model of LLVM assembly: lexer, types, values, reader, writer, builder, rewriter, verifier."""
