"""Operators as tasks on bitmasks: what a step costs in live bytes, after a given set of steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from glowc.errors import InternalError


@dataclass(frozen=True, slots=True)
class Task:
    """One operator: the values it reads and writes, and bytes that it needs only while it runs."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scratch_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Storage:
    """One alias class. It lives from its first writer until all of `touchers` ran; masks of task indices."""

    size_bytes: int
    writers: int
    touchers: int
    from_start: bool
    to_end: bool


class TaskGraph:
    """Tasks with their dependencies and the live bytes before, during and after each of them."""

    def __init__(
        self,
        tasks: Sequence[Task],
        sizes: Mapping[str, int],
        alias_of: Mapping[str, str],
        in_place: Iterable[tuple[str, str]],
        graph_inputs: Collection[str],
        graph_outputs: Collection[str],
    ) -> None:
        self._tasks = tasks
        self.count = len(tasks)
        self.needs = _dependencies(tasks)
        self._readers = _readers(self.needs)
        self._class_of = _classes(sizes, alias_of)
        self._storage = _storages(tasks, sizes, self._class_of, graph_inputs, graph_outputs)
        self._touched = [
            tuple(dict.fromkeys(self._class_of[v] for v in (*t.inputs, *t.outputs) if v in self._class_of))
            for t in tasks
        ]
        self._reuse = self._reuses(in_place)
        started = [s for s in self._storage.values() if s.from_start]
        self.start_bytes = sum(s.size_bytes for s in started)
        # A graph input that nobody reads is there at the start and may be overwritten at once.
        self.start_live = sum(s.size_bytes for s in started if s.touchers or s.to_end)
        self.least_bytes = max([self.start_bytes, *(self._alone(t) for t in range(self.count))])

    def _reuses(self, in_place: Iterable[tuple[str, str]]) -> list[list[tuple[str, str]]]:
        """Per task the (written class, read class) pairs that may share bytes, largest gain first."""
        pairs = set(in_place)
        reuses = []
        for task in self._tasks:
            mine = [(o, i) for o in task.outputs for i in task.inputs if (o, i) in pairs]
            classes = [(self._class_of[o], self._class_of[i]) for o, i in mine]
            gain = {p: min(self._storage[p[0]].size_bytes, self._storage[p[1]].size_bytes) for p in classes}
            reuses.append(sorted((p for p in gain if p[0] != p[1]), key=lambda p: -gain[p]))
        return reuses

    def step(self, done: int, live: int, task: int) -> tuple[int, int]:
        """(bytes while `task` runs, live bytes after it) when the set `done` ran and left `live` bytes."""
        after = done | 1 << task
        during, left = live + self._tasks[task].scratch_bytes, live
        for name in self._touched[task]:
            s = self._storage[name]
            if not s.from_start and not s.writers & done:
                during += s.size_bytes
                left += s.size_bytes
            if not s.to_end and s.touchers | after == after:
                left -= s.size_bytes
        if self._reuse[task]:
            during -= self._saved(done, after, task)
        return during, left

    def _saved(self, done: int, after: int, task: int) -> int:
        used: set[str] = set()
        saved = 0
        for new, old in self._reuse[task]:
            s, dying = self._storage[new], self._storage[old]
            born = not s.from_start and not s.writers & done
            dies = not dying.to_end and dying.touchers | after == after
            if born and dies and new not in used and old not in used:
                used |= {new, old}
                saved += min(s.size_bytes, dying.size_bytes)
        return saved

    def _alone(self, task: int) -> int:
        """Bytes that `task` needs in any order: what it touches, at best in place."""
        touched = sum(self._storage[name].size_bytes for name in self._touched[task])
        used: set[str] = set()
        for new, old in self._reuse[task]:
            if new not in used:
                used.add(new)
                touched -= min(self._storage[new].size_bytes, self._storage[old].size_bytes)
        return touched + self._tasks[task].scratch_bytes

    def peak(self, order: Iterable[int]) -> int:
        """The most live bytes at any moment of this order."""
        done, live, peak = 0, self.start_live, self.start_bytes
        for task in order:
            during, live = self.step(done, live, task)
            done |= 1 << task
            peak = max(peak, during)
        return peak

    def ready_after(self, ready: tuple[int, ...], done: int, task: int) -> tuple[int, ...]:
        """The tasks that may run once `task` did, in the given order; `done` contains `task`."""
        freed = [t for t in self._readers[task] if self.needs[t] | done == done]
        left = [t for t in ready if t != task]
        return tuple(sorted((*left, *freed))) if freed else tuple(left)


def _dependencies(tasks: Sequence[Task]) -> list[int]:
    """Per task the mask of the tasks whose outputs it reads."""
    producer: dict[str, int] = {}
    wrong = []
    all_outputs = {name for task in tasks for name in task.outputs}
    needs = []
    for t, task in enumerate(tasks):
        mask = 0
        for name in task.inputs:
            if name in producer:
                mask |= 1 << producer[name]
            elif name in all_outputs:
                wrong.append(f"{task.name!r} reads {name!r} before it is written")
        wrong += [f"{name!r} is written twice" for name in task.outputs if name in producer]
        producer.update(dict.fromkeys(task.outputs, t))
        needs.append(mask)
    if wrong:
        raise InternalError("the tasks handed to the scheduler are not in a legal order", details=wrong)
    return needs


def _readers(needs: Sequence[int]) -> list[list[int]]:
    """Per task the later tasks that read what it writes."""
    readers: list[list[int]] = [[] for _ in needs]
    for task, mask in enumerate(needs):
        while mask:
            first = mask.bit_length() - 1
            readers[first].append(task)
            mask ^= 1 << first
    return readers


def _classes(sizes: Mapping[str, int], alias_of: Mapping[str, str]) -> dict[str, str]:
    """The root of every value that occupies memory; views may be views of views."""
    roots = {}
    for name in sizes.keys() | alias_of.keys():
        root, hops = name, 0
        while root in alias_of:
            root, hops = alias_of[root], hops + 1
            if hops > len(alias_of):
                raise InternalError(f"value {name!r} is an alias of itself")
        if root not in sizes:
            raise InternalError(f"value {name!r} is stored in {root!r}, which has no size")
        roots[name] = root
    return roots


def _storages(
    tasks: Sequence[Task],
    sizes: Mapping[str, int],
    class_of: Mapping[str, str],
    graph_inputs: Collection[str],
    graph_outputs: Collection[str],
) -> dict[str, _Storage]:
    written = [name for task in tasks for name in task.outputs]
    missing = [name for name in (*graph_inputs, *graph_outputs, *written) if name not in class_of]
    if missing:
        raise InternalError("values without a size were handed to the scheduler", details=missing)
    writers = dict.fromkeys(class_of.values(), 0)
    touchers = dict(writers)
    for t, task in enumerate(tasks):
        for name in task.outputs:
            writers[class_of[name]] |= 1 << t
        for name in (*task.inputs, *task.outputs):
            if name in class_of:
                touchers[class_of[name]] |= 1 << t
    first, last = {class_of[v] for v in graph_inputs}, {class_of[v] for v in graph_outputs}
    return {root: _Storage(sizes[root], writers[root], touchers[root], root in first, root in last) for root in writers}
