"""The scheduler: the lowest peak over all orders, the given order when it is good enough, its fallback."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from glowc.errors import InternalError
from glowc.memory import Schedule, Task, schedule


@dataclass
class Case:
    tasks: list[Task]
    sizes: dict[str, int]
    inputs: tuple[str, ...] = ("x",)
    outputs: tuple[str, ...] = ()
    alias_of: dict[str, str] = field(default_factory=dict)
    in_place: tuple[tuple[str, str], ...] = ()

    def run(self, state_cap: int = 30_000) -> Schedule:
        return schedule(
            self.tasks,
            self.sizes,
            alias_of=self.alias_of,
            in_place=self.in_place,
            graph_inputs=self.inputs,
            graph_outputs=self.outputs,
            state_cap=state_cap,
        )

    def root(self, value: str) -> str:
        return self.root(self.alias_of[value]) if value in self.alias_of else value

    def peak(self, order: Sequence[int]) -> int:
        """Peak by lifetimes of storages written out step by step, without the scheduler's masks."""
        touched: dict[str, list[int]] = {}
        for step, t in enumerate(order):
            for v in (*self.tasks[t].inputs, *self.tasks[t].outputs):
                if self.root(v) in self.sizes:
                    touched.setdefault(self.root(v), []).append(step)
        first = {r: steps[0] for r, steps in touched.items()} | {self.root(v): 0 for v in self.inputs}
        last = {r: steps[-1] for r, steps in touched.items()} | {self.root(v): len(order) for v in self.outputs}
        peak = sum(self.sizes[r] for r in {self.root(v) for v in self.inputs})
        for step, t in enumerate(order):
            live = sum(self.sizes[r] for r in first if first[r] <= step <= last.get(r, -1))
            used: set[str] = set()
            for out, source in self.in_place:
                o, s = self.root(out), self.root(source)
                mine = out in self.tasks[t].outputs and source in self.tasks[t].inputs and o != s
                born = mine and first[o] == step and o not in {self.root(v) for v in self.inputs}
                if born and last[s] == step and not {o, s} & used:
                    used |= {o, s}
                    live -= min(self.sizes[o], self.sizes[s])
            peak = max(peak, live + self.tasks[t].scratch_bytes)
        return peak

    def orders(self) -> Iterator[list[int]]:
        """Every legal order."""
        maker = {v: t for t, task in enumerate(self.tasks) for v in task.outputs}
        needs = [{maker[v] for v in task.inputs if v in maker} for task in self.tasks]

        def extend(done: list[int]) -> Iterator[list[int]]:
            if len(done) == len(needs):
                yield done
            for t, need in enumerate(needs):
                if t not in done and need <= set(done):
                    yield from extend([*done, t])

        return extend([])


def random_case(seed: int, count: int, views: bool = False) -> Case:
    """A random DAG; with `views`, some outputs are views of their input or may overwrite it."""
    random = Random(seed)
    case = Case([], {"x": random.randrange(1, 100)})
    values = ["x"]
    in_place = []
    for t in range(count):
        reads = tuple(dict.fromkeys(random.choices(values[-5:], k=random.randrange(1, 3))))
        out = f"v{t}"
        kind = random.random() if views else 1.0
        if kind < 0.2:
            case.alias_of[out] = reads[0]
        else:
            case.sizes[out] = random.randrange(1, 100)
        if 0.2 <= kind < 0.6:
            in_place.append((out, random.choice(reads)))
        case.tasks.append(Task(f"t{t}", (*reads, "weights"), (out,), random.choice([0, 0, 20])))
        values.append(out)
    case.in_place = tuple(in_place)
    case.outputs = (values[-1],)
    return case


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_peak_equals_the_best_of_all_orders(seed: int, views: bool) -> None:
    case = random_case(seed, 7, views)
    found = case.run()
    assert found.exact
    assert found.peak_bytes == case.peak(found.order) == min(case.peak(order) for order in case.orders())


@pytest.mark.parametrize("seed", range(40))
def test_given_order_comes_back_when_it_is_already_optimal(seed: int) -> None:
    case = random_case(seed, 7, views=True)
    best = case.run()
    if case.peak(range(7)) == best.peak_bytes:
        assert best.order == tuple(range(7))
    sorted_case = Case([case.tasks[t] for t in best.order], case.sizes, case.inputs, case.outputs)
    sorted_case.alias_of, sorted_case.in_place = case.alias_of, case.in_place
    assert sorted_case.run().order == tuple(range(7))


def two_branches() -> Case:
    """Finishing the branch with the large inside first leaves only its small result waiting."""
    tasks = [
        Task("small", ("x",), ("a",)),
        Task("large", ("x",), ("b",)),
        Task("shrink", ("b",), ("c",)),
        Task("join", ("a", "c"), ("y",)),
    ]
    return Case(tasks, {"x": 10, "a": 50, "b": 100, "c": 5, "y": 5}, outputs=("y",))


def test_large_branch_runs_first() -> None:
    assert two_branches().run() == Schedule((1, 2, 0, 3), 115, exact=True)


def test_view_keeps_its_root_alive_until_the_views_last_use() -> None:
    tasks = [Task("reshape", ("x",), ("v",)), Task("f", ("x",), ("a",)), Task("g", ("v", "a"), ("y",))]
    case = Case(tasks, {"x": 100, "a": 10, "y": 10}, outputs=("y",), alias_of={"v": "x"})
    assert case.run().peak_bytes == 120


def test_in_place_output_costs_nothing_only_when_the_input_dies() -> None:
    relu = Task("relu", ("x",), ("r",))
    dies = Case([relu], {"x": 100, "r": 100}, outputs=("r",), in_place=(("r", "x"),))
    assert dies.run().peak_bytes == 100
    stays = Case([relu, Task("add", ("x", "r"), ("y",))], {"x": 100, "r": 100, "y": 1}, outputs=("y",))
    stays.in_place = (("r", "x"),)
    assert stays.run().peak_bytes == 201


def test_one_dying_input_serves_one_output_only() -> None:
    case = Case([Task("split", ("x",), ("a", "b"))], {"x": 100, "a": 100, "b": 100}, outputs=("a", "b"))
    case.in_place = (("a", "x"), ("b", "x"))
    assert case.run().peak_bytes == 200


def test_graph_input_takes_room_before_its_first_use_and_output_after_its_last() -> None:
    tasks = [Task("f", ("x",), ("a",)), Task("g", ("a", "z"), ("b",)), Task("h", ("b",), ("y",))]
    case = Case(tasks, {"x": 10, "z": 1000, "a": 10, "b": 1, "y": 1}, ("x", "z"), ("a", "y"))
    assert case.run().peak_bytes == 1020


def test_unread_output_lives_only_while_it_is_written_and_unread_input_only_at_the_start() -> None:
    case = Case([Task("f", ("x",), ("y", "unused"))], {"x": 1, "y": 1, "unused": 50, "z": 80}, ("x", "z"), ("y",))
    assert case.run().peak_bytes == 81


def wide_case(seed: int) -> Case:
    """Eight chains of five between one input and one sum: 6**8 sets, far more than a small cap."""
    random = Random(seed)
    case = Case([], {"x": 10, "y": 10}, outputs=("y",))
    ends = [f"c{c}_4" for c in range(8)]
    for step in range(5):
        for c in range(8):
            source = f"c{c}_{step - 1}" if step else "x"
            case.sizes[f"c{c}_{step}"] = random.randrange(10, 100)
            case.tasks.append(Task(f"c{c}_{step}", (source,), (f"c{c}_{step}",)))
    case.tasks.append(Task("sum", tuple(ends), ("y",)))
    return case


@pytest.mark.parametrize("seed", range(3))
def test_state_cap_falls_back_to_an_order_never_worse_than_given(seed: int) -> None:
    case = wide_case(seed)
    given = case.peak(range(len(case.tasks)))
    capped = case.run(state_cap=10)
    assert sorted(capped.order) == list(range(len(case.tasks)))
    assert capped.peak_bytes == case.peak(capped.order) <= given
    best = case.run(state_cap=20_000)
    assert best.peak_bytes <= capped.peak_bytes
    assert not capped.exact or capped.peak_bytes == best.peak_bytes


def test_wide_graph_gives_up_in_time() -> None:
    random = Random(0)
    sizes = {"x": 10, "y": 10} | {f"{k}{b}": random.randrange(10, 100) for k in "abc" for b in range(64)}
    stages = (("a", "x"), ("b", "a"), ("c", "b"))
    tasks = [
        Task(f"{k}{b}", (source if source == "x" else f"{source}{b}",), (f"{k}{b}",))
        for k, source in stages
        for b in range(64)
    ]
    tasks.append(Task("sum", tuple(f"c{b}" for b in range(64)), ("y",)))
    case = Case(tasks, sizes, outputs=("y",))
    start = time.process_time()
    found = case.run(state_cap=20_000)
    assert time.process_time() - start < 5.0
    assert found.peak_bytes == case.peak(found.order) < case.peak(range(len(tasks)))


@pytest.mark.parametrize("scratch_bytes", [0, 64])
def test_chain_of_500_is_answered_at_once(scratch_bytes: int) -> None:
    sizes = {"x": 100} | {f"v{t}": 1 + t * 37 % 100 for t in range(500)}
    names = ["x", *(f"v{t}" for t in range(500))]
    tasks = [Task(f"t{t}", (names[t],), (names[t + 1],), scratch_bytes) for t in range(500)]
    # An output of the first task stays to the end: no single task needs what the peak is.
    case = Case(tasks, sizes, outputs=("v0", "v499"))
    start = time.process_time()
    found = case.run()
    assert time.process_time() - start < 0.2
    assert (found.order, found.exact) == (tuple(range(500)), True)


def test_long_residual_network_is_exact_and_fast() -> None:
    case = Case([], {"x": 50})
    last = "x"
    for b in range(100):
        names = [f"b{b}_{k}" for k in range(4)]
        reads = [(last,), (names[0],), (last,), (names[1], names[2])]
        case.sizes |= dict(zip(names, (90, 50, 50, 50), strict=True))
        case.tasks += [Task(n, r, (n,)) for n, r in zip(names, reads, strict=True)]
        last = names[-1]
    case.outputs = (last,)
    start = time.process_time()
    found = case.run()
    assert time.process_time() - start < 1.0
    assert found.exact


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (
            Case([Task("f", ("b",), ("a",)), Task("g", ("x",), ("b",))], {"x": 1, "a": 1, "b": 1}),
            "before it is written",
        ),
        (Case([Task("f", ("x",), ("a",)), Task("g", ("x",), ("a",))], {"x": 1, "a": 1}), "written twice"),
        (Case([Task("f", ("x",), ("a",))], {"x": 1}), "without a size"),
        (Case([Task("f", ("x",), ("a",))], {"x": 1}, alias_of={"a": "q"}), "has no size"),
        (Case([Task("f", ("x",), ("a",))], {"x": 1}, alias_of={"a": "b", "b": "a"}), "alias of itself"),
    ],
)
def test_contradicting_tasks_are_refused(case: Case, said: str) -> None:
    with pytest.raises(InternalError, match=said):
        case.run()


def test_no_tasks_is_an_empty_order() -> None:
    assert Case([], {"x": 8}).run() == Schedule((), 8, exact=True)
