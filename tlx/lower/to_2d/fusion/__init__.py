"""Fusion: operations that are computed together, or where their result is stored."""
