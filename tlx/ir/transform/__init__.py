"""Changing IR: def-use edits, inlining, outlining of loops, module constructors."""
