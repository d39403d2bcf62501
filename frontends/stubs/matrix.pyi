from tlx.frontends.matrix import *
