"""A plugin of pytest that says how many CPU seconds tests took, of their worker and of the programs they started.

    make test-cpu ARGS=tests/e2e

Other programs on the same cores change these numbers little, so two runs can be compared.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator

import pytest

_USED = "cpu"
_MOST = 40  # functions of tests that are printed
_own, _started = Counter[str](), Counter[str]()
_at = pytest.StashKey[tuple[float, float]]()


def _cpu() -> tuple[float, float]:
    usage = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own, started = (use.ru_utime + use.ru_stime for use in usage)
    return own, started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note where a test begins."""
    item.stash[_at] = _cpu()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Send what a test took along with its last report."""
    report: pytest.TestReport = yield
    if call.when == "teardown":
        took = [now - at for now, at in zip(_cpu(), item.stash[_at], strict=True)]
        report.user_properties.append((_USED, took))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what tests took, by folder and by function."""
    for name, used in report.user_properties:
        if name == _USED:
            path, _, test = report.location
            for place in (path.rpartition("/")[0], f"{path}::{test.partition('[')[0]}"):
                _own[place] += used[0]
                _started[place] += used[1]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums: of the functions that took most, of folders."""
    terminalreporter.section("CPU seconds: of workers, of programs that they started, tests")
    total = _own + _started
    folders = [place for place, _ in total.most_common() if "::" not in place]
    tests = [place for place, _ in total.most_common() if "::" in place]
    for place in (*tests[:_MOST], *folders):
        terminalreporter.write_line(f"{_own[place]:8.0f} {_started[place]:8.0f}  {place}")
    own, started = (sum(count[folder] for folder in folders) for count in (_own, _started))
    terminalreporter.write_line(f"{own:8.0f} {started:8.0f}  in all")
