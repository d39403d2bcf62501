"""Programs that fork, for `test_process`: each runs in its own interpreter and prints its result.

python -m tests.unit.llvm.forks NAME
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import fcntl
import importlib
import multiprocessing
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

import tlx
import tlx.llvm.process
from tlx.diagnostics import TlxError
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse
from tlx.llvm.codegen import emit_objects
from tlx.llvm.process import llvm
from tlx.llvm.verification import DeferredVerification
from tlx.lower.options import Options

ADD = "define i32 @f(i32 %x) {{\n  %r = add i32 %x, {}\n  ret i32 %r\n}}\n"
SQUARE = """
define void @f(ptr noalias %x, ptr noalias %z) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <4096 x float> @llvm.tensor.matmul(token %a, token %a)
  store <4096 x float> %p, ptr %z
  ret void
}
"""


suppress_interrupt = contextlib.suppress(KeyboardInterrupt)


def ask(number: int) -> None:
    """Have LLVM print a module that no other request contains."""
    size = 1 + number % 7 * 3000  # some answers are larger than others
    text = f'@g = global i32 {number}\n@s = global [{size} x i8] c"{"x" * size}"\n'
    answer = llvm().ask("emit", text, kind="ll", level=None, cpu="", features="", triple="", jit=False).decode()
    assert f"@g = global i32 {number}\n" in answer
    assert f'"{"x" * size}"' in answer


def llvm_child() -> int:
    """The process of LLVM that this process runs."""
    (service,) = llvm_children()
    return service


def llvm_children() -> list[int]:
    """Processes of LLVM that this process runs: children with a command line of LLVM's service."""
    tasks = Path("/proc/self/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    return [child for child in children if b"service.py" in Path(f"/proc/{child}/cmdline").read_bytes()]


def requests_pipe(child: int) -> int:
    """This process's end of the pipe that is a child's standard input."""
    pipe = Path(f"/proc/{child}/fd/0").readlink()
    (descriptor,) = [
        int(entry.name)
        for entry in Path("/proc/self/fd").iterdir()
        if entry.is_symlink() and entry.readlink() == pipe and is_writable(int(entry.name))
    ]
    return descriptor


def is_writable(descriptor: int) -> bool:
    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY


def stop(process: int) -> None:
    """Stop a process, and wait until it has stopped: before, it may still read a request."""
    os.kill(process, signal.SIGSTOP)
    while Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "T":
        time.sleep(0.001)


def wait_for_request(child: int) -> None:
    """Wait until a request that a stopped child has not read is in its pipe."""
    descriptor = requests_pipe(child)
    while not any(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4))):
        time.sleep(0.001)


def compile_and_call(number: int) -> int:
    """The result of a compiled function that returns the number."""
    return tlx.compile(ADD.format(number)).f(0)


def say(*words: object) -> None:
    """Print a line at once: a process that is forked off must not print it again."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def in_child(run: Callable[[], object]) -> int:
    """Fork; what the child's process is."""
    child = os.fork()
    if child:
        return child
    try:
        run()
    except BaseException as error:  # noqa: BLE001
        say(type(error).__name__, error)
        os._exit(1)
    os._exit(0)


def all_right(children: list[int]) -> bool:
    """Wait for children to end; whether all were successful."""
    states = [os.waitpid(child, 0)[1] for child in children]
    return not any(states)


def in_threads(count: int, run: Callable[[int], object]) -> bool:
    """Run something in threads; whether none raised anything."""
    failed: list[BaseException] = []

    def work(k: int) -> None:
        try:
            run(k)
        except BaseException as error:  # noqa: BLE001
            say(type(error).__name__, error)
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return not failed


def rounds() -> None:
    """A thousand requests, from this process's threads and, at the same time, from children and their threads."""

    def asked(first: int, count: int) -> None:
        for number in range(first, first + count):
            ask(number)

    def child(first: int) -> None:
        def grandchild() -> None:
            asked(first + 400, 20)

        mine = in_child(grandchild)
        assert in_threads(4, lambda k: asked(first + 100 * k, 40))
        assert all_right([mine])

    asked(0, 20)
    process = llvm_child()
    right = True

    def work(k: int) -> None:
        if k == 0:
            nonlocal right
            right = all_right([in_child(partial(child, 1000 * n)) for n in range(1, 5)])
        else:
            asked(10_000 * k, 65)

    right = in_threads(5, work) and right
    say("right", right, "same process", llvm_child() == process)


def compilations() -> None:
    """Forks while another thread compiles, which has LLVM's locks in this process and in its own."""
    done = threading.Event()

    def work(k: int) -> None:
        if k == 0:
            try:
                for n in range(1, 9):
                    assert all_right([in_child(partial(check, 100 * n))])
            finally:
                done.set()
        while not done.is_set():
            check(k)

    def check(number: int) -> None:
        assert compile_and_call(number) == number

    check(1)
    say("right", in_threads(3, work))


def pools() -> None:
    """The ways of `multiprocessing`."""
    assert compile_and_call(1) == 1
    for way, count in (("fork", 3), ("spawn", 1), ("forkserver", 1)):
        with multiprocessing.get_context(way).Pool(count) as pool:
            say(way, pool.map(compile_and_call, range(6), chunksize=1))


def ends() -> None:
    """What the end of one process does to the LLVM of another."""
    ask(1)
    running = llvm_child()

    def child() -> None:
        ask(2)
        with contextlib.suppress(SystemExit):
            sys.exit(0)
        import atexit

        atexit._run_exitfuncs()

    say("child", all_right([in_child(child)]), "alive", llvm_child() == running)
    ask(3)
    say("same process", llvm_child() == running)

    idle = in_child(lambda: time.sleep(60))
    os.close(requests_pipe(running))
    say("ends with its owner", os.waitpid(running, 0)[1] == 0)
    os.kill(idle, signal.SIGKILL)
    os.waitpid(idle, 0)


def kills() -> None:
    """LLVM's process is killed: between requests, and during one."""
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        ask(1)
        os.kill(llvm_child(), number)
        ask(2)
        ask(3)
    running = llvm_child()
    stop(running)
    threading.Timer(0.3, os.kill, (running, signal.SIGKILL)).start()
    ask(4)
    say("right")


def interrupts() -> None:
    """An interrupt while LLVM, which is stopped, verifies for another thread; then a close while it does."""
    ask(1)
    main = threading.main_thread()
    square = SQUARE + "".join(SQUARE.replace("@f", f"@f{n}") for n in range(200))
    verifier = llvm_child()
    stop(verifier)

    def interrupt() -> None:
        wait_for_request(verifier)
        time.sleep(0.5)
        signal.pthread_kill(main.ident or 0, signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        tlx.compile(square, "generic")
    except KeyboardInterrupt:
        say("interrupted")
    watcher.join()
    ask(2)
    running = llvm_child()
    stop(running)

    def closed() -> None:
        with contextlib.suppress(Exception):
            ask(3)

    asking = threading.Thread(target=closed)
    asking.start()
    wait_for_request(running)
    llvm().close()
    asking.join()
    say("restarted", bool(llvm_children()))
    ask(4)
    say("right")


def interrupts_anywhere() -> None:
    """Up to three interrupts in a row, anywhere in requests; then a request that is not interrupted."""
    left = interrupted = 0

    def interrupt(*_: object) -> None:
        nonlocal left, interrupted
        if left:
            left -= 1
            interrupted += 1
            if not left:
                signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    def ask_until_interrupted(number: int, times: int) -> None:
        if times:
            with suppress_interrupt:
                ask_until_interrupted(number, times - 1)
        else:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 5e-3), random.choice((2e-5, 1e-4, 1e-3)))
        while left:
            ask(number)

    signal.signal(signal.SIGALRM, interrupt)
    random = Random(1)
    for number in range(0, 120, 2):
        left = random.randint(1, 3)
        ask_until_interrupted(number, left)
        ask(number + 1)
    deadline = time.monotonic() + 60
    while len(llvm_children()) > 1 and time.monotonic() < deadline:  # processes that nobody uses end
        time.sleep(0.01)
    say("interrupted", interrupted > 60, "processes", len(llvm_children()))


def interrupted_verifications() -> None:
    """Many interrupts while the caller waits for a verification in a thread: no other error, and no early answer."""

    def wait(verification: DeferredVerification, times: int) -> None:
        """Wait, again while an interrupt is handled."""
        with suppress_interrupt:
            try:
                verification.is_accepted()
            finally:
                if times:
                    wait(verification, times - 1)

    def set_timer(first: float, interval: float) -> None:
        while True:
            with suppress_interrupt:
                signal.setitimer(signal.ITIMER_REAL, first, interval)
                return

    ask(1)
    verifier = llvm_child()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    accepted = 0
    for _ in range(10):
        verification = DeferredVerification(parse(ADD.format(1)))
        stop(verifier)
        verification.start()
        set_timer(0.02, 1e-4)
        with suppress_interrupt:
            wait(verification, 30)
        set_timer(0, 0)
        os.kill(verifier, signal.SIGCONT)
        accepted += verification.is_accepted()
    say("accepted", accepted)


def interrupted_forks() -> None:
    """An interrupt at the end of a fork, where locks are released: later, other threads can start LLVM."""
    os.register_at_fork(after_in_parent=_thread.interrupt_main)
    importlib.reload(tlx.llvm.process)  # its handlers run after that one
    with suppress_interrupt:
        assert all_right([in_child(lambda: None)])
    process = tlx.llvm.process.LLVMProcess()
    say("right", in_threads(2, lambda _: process.start()))
    process.close()


def interrupted_parts() -> None:
    """An interrupt while LLVM compiles the parts of a large module in several processes, one of which is stopped."""
    line = "  %r{0} = load volatile i32, ptr %p\n"
    body = "".join(map(line.format, range(30_000)))
    kernels = [f"define internal void @tlx.k{n}(ptr %p) {{\n{body}  ret void\n}}\n" for n in range(3)]
    calls = "".join(f"  call void @tlx.k{n}(ptr %p)\n" for n in range(3))
    text = f"define void @f(ptr %p) {{\n{calls}  ret void\n}}\n" + "".join(kernels)
    main = threading.main_thread()

    def interrupt() -> None:
        while not llvm_children():
            time.sleep(0.001)
        stop(llvm_children()[0])
        time.sleep(0.5)
        signal.pthread_kill(main.ident or 0, signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        emit_objects(text, 1)
    except KeyboardInterrupt:
        say("interrupted")
    watcher.join()
    ask(1)
    say("processes", len(llvm_children()))


def strangers() -> None:
    """Forks that Python does not know of, and a process that meddles."""
    ask(1)
    if (child := ctypes.PyDLL(None).fork()) == 0:
        ask(2)
        os._exit(0)
    say("child", all_right([child]))
    os.write(requests_pipe(llvm_child()), b'{"do": "check", "number": 0, "size": 0, "seconds": 0}\n')
    time.sleep(0.3)
    try:
        ask(3)
    except TlxError as error:
        say(error)
    ask(4)
    say("right")


def teams() -> None:
    """Kernels on several threads, before and after a fork."""
    x = np.arange(4096, dtype=np.float32).reshape(64, 64) % 13
    compiled = tlx.compile(SQUARE, "generic", options=Options(threads="openmp", thread_cycles=0))

    def check() -> None:
        z = np.zeros((64, 64), np.float32)
        compiled.f(x, z)
        assert np.array_equal(z, x @ x)

    def child() -> None:
        check()
        assert in_threads(2, lambda _: check())
        assert all_right([in_child(check)])

    check()
    say("right", all_right([in_child(child), in_child(child)]))
    check()


def evaluators() -> None:
    """Evaluators in threads: the limit of recursion is one for all."""
    text = """
define i32 @f(i32 %n) {
  %end = icmp eq i32 %n, 0
  br i1 %end, label %last, label %more
more:
  %m = sub i32 %n, 1
  %r = call i32 @f(i32 %m)
  %s = add i32 %r, 1
  ret i32 %s
last:
  ret i32 0
}
"""
    limit = sys.getrecursionlimit()

    def check(k: int) -> None:
        for n in (900, 3) * 3:
            assert Machine(parse(text)).call("f", n + k) == n + k

    say("right", in_threads(4, check), "limit", sys.getrecursionlimit() == limit)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore interrupts
    globals()[sys.argv[1]]()
