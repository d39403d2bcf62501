"""The first version of the language: its grammar, and what its programs are in the second."""
