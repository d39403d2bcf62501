"""Algorithms that are loops over a tensor: sorting, random bits, linear algebra.

sorting         by the keys of one dimension; the greatest elements
random_bits     generators that count: Threefry, Philox
linear_algebra  factors of matrices, triangular systems of equations
"""
