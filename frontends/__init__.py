"""Front ends: each turns something (a C header, a tensor language, Python calls) into TLX IR, and only that.

The folder is installed as ``tlx.frontends``.
"""
