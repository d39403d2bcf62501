"""Fusion: operations that are computed together, as another view, or where their result is stored."""
