"""Instruction scheduling: loads ahead of the products that use them, and tile products among vector code."""
