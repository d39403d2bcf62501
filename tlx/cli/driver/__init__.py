"""`tlx-cc` and `tlx-c++`: clang's command line, with the tensors of C and C++ lowered on the way.

    arguments   the table of clang's options that the driver distinguishes; a command line, parsed by it
    settings    the driver's own options, --tlx-...
    clang       which clang, and running it
    source      one source: does it use tensors, its IR, its dependency file
    lowering    that IR, lowered for the machine that clang compiles for
    locations   errors and remarks at lines of the source
    program     the steps of a command

Everything that clang can do alone is left to it: the process becomes clang's.
"""

from __future__ import annotations
