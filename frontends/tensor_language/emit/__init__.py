"""Turns a checked syntax tree into TLX IR."""
