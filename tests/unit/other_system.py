"""Commands of glowc as on another system: `python -X warn_default_encoding other_system.py SYSTEM CODE_PAGE < calls`.

What glowc's own modules import is what SYSTEM has of it: modules, functions and flags that it lacks are not there, and
sys.platform is its name. Python's and other packages' modules stay as they are here. The console has a code page; text
without an encoding is an error, and on Windows paths sort without regard to case. Calls are lists of words, in JSON; so
are the answers: status, what was printed, what was said.
"""

from __future__ import annotations

import builtins
import io
import json
import pathlib
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from types import ModuleType
from typing import Any

WINDOWS = "win32"
MODULES = {WINDOWS: {"fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}}
_ON_LINUX_ALONE = {
    "eventfd", "getrandom", "memfd_create", "pidfd_open", "pipe2", "posix_fadvise", "sched_getaffinity",
    "sched_setaffinity", "splice", "epoll", "O_DIRECT", "O_PATH", "O_TMPFILE", "sched_getparam", "sched_getscheduler",
    "getxattr", "setxattr", "sigtimedwait", "pidfd_send_signal", "AF_NETLINK", "AF_VSOCK", "SOCK_CLOEXEC",
}  # fmt: skip
_ON_POSIX = {
    "chown", "ctermid", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups",
    "getloadavg", "getpgid", "getpgrp", "getpriority", "getsid", "getuid", "killpg", "lchown", "lockf", "mkfifo",
    "mknod", "nice", "openpty", "pathconf", "posix_spawn", "pread", "pwrite", "register_at_fork", "sched_yield",
    "sendfile", "setpgid", "setpriority", "setsid", "setuid", "statvfs", "sync", "sysconf", "uname", "wait", "wait3",
    "wait4", "O_CLOEXEC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "O_DIRECTORY", "SIGKILL", "SIGALRM",
    "SIGHUP", "SIGUSR1", "SIGCHLD", "SIGPIPE", "SIGQUIT", "SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK", "alarm", "pause",
    "pthread_sigmask", "setitimer", "sigwait", "AF_UNIX", "poll", "fromfd", "socketpair",
}  # fmt: skip
LACKS = {"linux": set[str](), "darwin": _ON_LINUX_ALONE, WINDOWS: _ON_LINUX_ALONE | _ON_POSIX}
SHOWN = ("os", "select", "signal", "socket", "sys")


class Seen(ModuleType):
    """A module as it is on another system; what is set is set in the real one."""

    def __init__(self, real: ModuleType, lacks: set[str], **other: object) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, _lacks=lacks, _other=other)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["_lacks"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on this system")
        other = self.__dict__["_other"]
        return other[name] if name in other else getattr(self.__dict__["_real"], name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_real"], name, value)


def _refused(*_: object, **__: object) -> None:
    raise OSError(1314, "A required privilege is not held by the client")


def as_on(system: str) -> None:
    """Show glowc, which is not imported yet, another system from now on."""
    real_import = builtins.__import__
    windows = {"os": {"symlink": _refused, "link": _refused}} if system == WINDOWS else {}
    others: dict[str, dict[str, object]] = {**windows, "sys": {"platform": system}}
    seen = {name: Seen(real_import(name), LACKS[system], **others.get(name, {})) for name in SHOWN}

    def shown(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:
        if globals is not None and str(globals.get("__name__", "")).partition(".")[0] == "glowc" and level == 0:
            if name in MODULES.get(system, ()):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in seen:
                return seen[name]
        return real_import(name, globals, locals, fromlist, level)

    builtins.__import__ = shown  # type: ignore[assignment]
    if system == WINDOWS:
        pathlib.PurePath.__lt__ = _before  # type: ignore[method-assign]


def _before(one: pathlib.PurePath, other: pathlib.PurePath) -> bool:
    return [part.lower() for part in one.parts] < [part.lower() for part in other.parts]


def call(words: list[str], code_page: str) -> tuple[int, str, str]:
    """Return what a command of glowc leaves on a console with this code page."""
    from glowc.app.cli import main

    streams = [io.TextIOWrapper(io.BytesIO(), encoding=code_page) for _ in range(2)]
    sys.argv = ["glowc", *words]
    status = 0
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode(code_page) for stream in streams)  # type: ignore[attr-defined]
    return status, out, err


if __name__ == "__main__":
    warnings.filterwarnings("error", category=EncodingWarning, module=r"glowc(\.|$)")
    as_on(sys.argv[1])
    calls, page = json.load(sys.stdin), sys.argv[2]
    print(json.dumps([call(words, page) for words in calls]))
