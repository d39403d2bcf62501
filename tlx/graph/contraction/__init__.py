"""Contractions: products of matrices and convolutions."""
