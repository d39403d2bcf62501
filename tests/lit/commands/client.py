"""A command of TLX on the `PATH` of lit's tests: has the server of ``server.py`` run it, and ends as it does.

Without `TLX_SERVER` in its environment it is the installed command: for tests of how a command starts and ends, or of
what Python itself reads from the environment. This imports nothing that takes time.
"""

import _socket  # the part of `socket` without the import of half the library
import marshal
import os
import struct
import sys


def _ask(name: str) -> int:
    """The exit status of the command that this process stands for."""
    request = marshal.dumps((sys.argv, dict(os.environ), os.getcwd()))  # noqa: PTH109
    connection = _socket.socket(_socket.AF_UNIX)
    connection.connect(f"\0{name}")
    streams = struct.pack("3i", 0, 1, 2)
    head = len(request).to_bytes(4, "little")
    connection.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    connection.sendall(request)
    answer = connection.recv(1)
    if not answer:
        os.abort()  # as the command did
    return answer[0]


if server := os.environ.get("TLX_SERVER"):
    os._exit(_ask(server))
installed = os.path.join(os.path.dirname(sys.executable), os.path.basename(sys.argv[0]))  # noqa: PTH118, PTH119, PTH120
os.execv(installed, sys.argv)
