"""LLVM in a process of its own: broken IR may end that process, never the tool."""
