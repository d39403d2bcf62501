"""What tests share: compilers and tools to look for, programs, readers of assembly and remarks, a browser."""
