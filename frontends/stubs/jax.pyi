from tlx.frontends.jax import *
