from tlx.frontends.c_header import *
