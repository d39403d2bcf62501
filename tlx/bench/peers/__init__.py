"""Other libraries, called by ctypes: the `load` functions of each module return a `Peer` or raise `MissingError`."""
