"""Instruction scheduling: loads ahead of products and not repeated, and tile products among vector code."""
