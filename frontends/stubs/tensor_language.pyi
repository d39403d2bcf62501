from tlx.frontends.tensor_language import *
