"""Front ends: each translates one kind of input (a C header, a tensor language, Python calls) to TLX IR.

The folder is installed as ``tlx.frontends``.
"""
