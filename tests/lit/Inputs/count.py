#!/usr/bin/env python3
"""Stands in for LLVM's ``count``: succeeds where standard input has as many lines as the argument says."""

import sys


def main(expected: int) -> int:
    """Count the lines and complain about another number of them."""
    lines = len(sys.stdin.readlines())
    if lines == expected:
        return 0
    sys.stderr.write(f"expected {expected} lines and got {lines}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
