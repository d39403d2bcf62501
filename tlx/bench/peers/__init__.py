"""Other libraries, called by ctypes: each module has a `load(places)` that gives a `Peer`, or raises `Missing`."""
