"""Contractions: every operation that multiplies and adds, blocked into 2-D products."""
