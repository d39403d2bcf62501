"""Checks a syntax tree against the rules of the language."""
