"""Contractions: everything that multiplies and adds, blocked into 2-D products."""
