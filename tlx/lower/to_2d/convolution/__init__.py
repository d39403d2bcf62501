"""Convolutions as contractions on overlapping views, with the copies of the input and the phases they need."""
