from tlx.frontends.numba import *
