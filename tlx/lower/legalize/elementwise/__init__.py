"""Elementwise instructions on registers, in forms that every LLVM from 14 on selects good code for."""
