"""TLX's commands, ready to run: a process that has imported everything forks for each command of a test.

An interpreter that starts and imports TLX takes longer than what most tests want of it, and the tests start a thousand.
``client.py`` stands for a command on their `PATH`: it hands its arguments, environment, folder and standard streams to
this process, and ends as the command does.

    lit -> client.py --socket--> server.py --fork--> tlx.cli.lower_main()

``start`` runs in lit's own process. The server ends when that process ends: then its standard input does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import marshal
import os
import pkgutil
import secrets
import select
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_STREAMS: Final = 3
_WAITING: Final = 128
"""Commands that may wait for the server to have imported TLX."""


def start(environment: Mapping[str, str]) -> str:
    """Start a server.

    Args:
        environment: The environment that it imports TLX in.

    Returns:
        The name of its socket, which is in no folder: nothing is left behind, whatever ends the server.
    """
    name = f"tlx-lit-{secrets.token_hex(8)}"
    end, _kept = os.pipe()  # the other end stays open until lit's process ends
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen(_WAITING)
        os.set_inheritable(listener.fileno(), True)
        command = [sys.executable, __file__, str(listener.fileno())]
        os.posix_spawn(sys.executable, command, environment, file_actions=[(os.POSIX_SPAWN_DUP2, end, 0)])
    os.close(end)
    return name


def _import_everything() -> None:
    import tlx

    for module in pkgutil.walk_packages(tlx.__path__, "tlx."):
        if module.name != "tlx.llvm.service":  # a program
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("tlx"):
                    raise
                # It needs an optional package that is not installed.


def _serve(listener: socket.socket) -> None:
    """Fork for each command until standard input ends; returns in the forked processes alone."""
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            os._exit(0)
        connection, _ = listener.accept()
        with connection:
            if _user(connection) == os.getuid() and os.fork() == 0:
                listener.close()
                _answer(connection)


def _user(connection: socket.socket) -> int:
    """Who has connected: the name of a socket is for all users."""
    credentials = struct.Struct("3i")
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    return credentials.unpack(peer)[1]


def _answer(connection: socket.socket) -> None:
    """Run the command that a connection asks for, and end this process; a crash answers nothing."""
    head, streams, _, _ = socket.recv_fds(connection, 4, _STREAMS)
    size = int.from_bytes(head, "little")
    with connection.makefile("rb") as request:
        arguments, environment, folder = marshal.loads(request.read(size))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    _open_streams()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.enable()
    sys.argv = arguments
    connection.sendall(bytes([_status(Path(arguments[0]).name) & 0xFF]))
    os._exit(0)


def _open_streams() -> None:
    """Standard streams as an interpreter that starts has them."""
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    output = io.BufferedWriter(io.FileIO(1, "w", closefd=False))
    sys.stdout = io.TextIOWrapper(output, line_buffering=os.isatty(1))
    errors = io.BufferedWriter(io.FileIO(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(errors, errors="backslashreplace", line_buffering=True)


def _status(name: str) -> int:
    """Run a command; its exit status."""
    from tlx import cli

    status: object = 0
    try:
        {"tlx": cli.main, "tlx-lower": cli.lower_main}[name]()
    except SystemExit as end:
        status = end.code
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    del sys.path[0]  # this folder
    _import_everything()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt ends lit, and that ends this
    _serve(socket.socket(fileno=int(sys.argv[1])))
