"""Updates on servers: what arrives together changes no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import counters
from dualmx.kvstore.compiled_update import CompiledUpdate, can_compile
from dualmx.kvstore.optimizer_config import to_config, update_settings
from dualmx.kvstore.server_updates import FREQUENT_AFTER, GROUP_SIZE, OptimizerRequests, StoreUpdater
from dualmx.ndarray.replay import ReplayableProgram
from dualmx.optimizer.optimizer import update_counts
from dualmx.ps.sparse_rows import dense
from dualmx.ps.store import PendingRequest, Store
from dualmx.ps.van.frame import REQUEST, Message
from tests.conftest import forget_programs

ROUNDS, CHANGE = FREQUENT_AFTER + 2, 4


@pytest.fixture
def auto_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are compiled after some runs, whatever is forced elsewhere."""
    monkeypatch.setenv("DUALMX_TIER", "auto")
    forget_programs()


@pytest.fixture(autouse=True)
def _change_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are updated by compiled programs from their fourth update on."""
    monkeypatch.setenv("DUALMX_PROMOTE_AT", str(CHANGE))


def failed(who: PendingRequest, reason: str) -> None:
    raise AssertionError(reason)


def trained(
    name: str,
    sizes: dict[str, int],
    workers: int,
    cut: int,
    adds: bool = True,
    dtype: Any = np.float32,
    begins: dict[str, int] | None = None,
    **settings: Any,
) -> dict[Any, bytes]:  # fmt: skip
    """Values after some rounds whose pushes arrive in messages of `cut` keys; with `adds` the program adds them up.

    Keys in `begins` are pushed from that round on.
    """
    store = Store(range(workers), True, lambda who: None, failed)
    updater = StoreUpdater(mx.optimizer.create(name, **settings), store)
    store.apply, store.updater_sums = updater.apply, adds
    draw = np.random.default_rng(3)
    for key, n in sizes.items():
        store.put(key, 0, draw.standard_normal(n).astype(dtype), (n,))
    keys = list(sizes)
    for turn in range(1, ROUNDS + 1):
        pushed = {
            (r, k): (draw.standard_normal(sizes[k]) * 10.0 ** draw.integers(-4, 4)).astype(dtype)
            for r in range(workers)
            for k in keys
        }
        for rank in reversed(range(workers)):
            for at in range(0, len(keys), cut):
                late = begins or {}
                parts: list[Any] = [
                    (k, 0, turn - late.get(k, 1) + 1, pushed[rank, k])
                    for k in keys[at : at + cut]
                    if turn >= late.get(k, 1)
                ]
                store.push(rank, parts, PendingRequest(0, 0, len(parts), "push"))
    return {key: held.value.tobytes() for key, held in store.shards.items()}


def test_what_arrives_together_changes_no_bit() -> None:
    sizes = {**{f"b{i}": 64 for i in range(GROUP_SIZE + 3)}, "w": 9_000, "v": 1_000}
    alone = trained("sgd", sizes, 2, 1, momentum=0.9)
    for cut in (2, 5, len(sizes)):
        assert trained("sgd", sizes, 2, cut, momentum=0.9) == alone


@pytest.mark.usefixtures("auto_tier")
@pytest.mark.parametrize("frequent", [2, 100])
def test_arrays_that_begin_later_change_later(frequent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one program are updated in both ways at once, each as if it were alone."""
    monkeypatch.setattr("dualmx.kvstore.server_updates.FREQUENT_AFTER", frequent)
    sizes, begins = dict.fromkeys("abcdef", 640), {"b": 3, "d": 6, "e": 9}
    alone = trained("adam", sizes, 2, 1, begins=begins)
    assert trained("adam", sizes, 2, len(sizes), begins=begins) == alone
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoreUpdater, "_update_number", lambda self, shard: CHANGE)
        assert trained("adam", sizes, 2, 1, begins=begins) != alone  # the two ways differ


@pytest.mark.usefixtures("auto_tier")
def test_updates_are_compiled_late() -> None:
    compiled: list[int] = []
    look = dict.fromkeys(range(1, ROUNDS), lambda updater, store: compiled.append(counters.compiles))
    stepped(look, mx.optimizer.SGD(learning_rate=0.1))
    built = np.diff(compiled)  # by each update; the thread that compiles may begin with the second one
    assert built[0] == 0 and built[CHANGE:].sum() == 0 and built.sum() == 1


class Uncounted(mx.optimizer.Optimizer):
    """An optimizer that does not count its updates."""

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        weight -= 0.1 * grad


@pytest.mark.usefixtures("auto_tier")
@pytest.mark.parametrize("optimizer", [mx.optimizer.SGD(learning_rate=0.1), Uncounted()])
def test_the_first_compiled_update(optimizer: Any) -> None:
    runs: list[int] = []
    look = dict.fromkeys(range(1, ROUNDS), lambda updater, store: runs.append(counters.numpy_runs))
    stepped(look, optimizer, ROUNDS)
    assert np.diff(runs).tolist() == [1] * (CHANGE - 1) + [0] * (ROUNDS - 1 - CHANGE)


@pytest.mark.usefixtures("auto_tier")
def test_large_arrays_are_compiled_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DUALMX_PROMOTE_AT")
    monkeypatch.setattr("dualmx.kvstore.server_updates.LARGE_BYTES", 100)
    monkeypatch.setattr("dualmx.kvstore.server_updates.COMPILED_AFTER_BYTES", 1400)
    runs: list[int] = []
    look = dict.fromkeys(range(1, ROUNDS), lambda updater, store: runs.append(counters.numpy_runs))
    stepped(look, mx.optimizer.SGD(learning_rate=0.1), ROUNDS)  # of 200 bytes
    assert np.diff(runs).tolist() == [1] * 6 + [0] * (ROUNDS - 8)


def test_few_programs_suffice_for_whatever_arrives_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualmx.kvstore.server_updates.FREQUENT_AFTER", 100)
    sizes = {f"c{i}": 96 for i in range(3 * GROUP_SIZE)}
    trained("sgd", sizes, 2, len(sizes), momentum=0.9)
    trained("sgd", sizes, 2, 1, momentum=0.9)
    with mx.debug.assert_compiles(0):
        for cut in (3, 7, GROUP_SIZE + 1, 2 * GROUP_SIZE + 5):
            trained("sgd", sizes, 2, cut, momentum=0.9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    "name, settings",
    [
        ("sgd", {"momentum": 0.9, "wd": 0.1, "multi_precision": True}),
        ("adam", {"clip_gradient": 0.5, "multi_precision": True}),
    ],
)
def test_who_adds_up_the_pushes_changes_no_bit(name: str, settings: dict[str, Any], dtype: Any) -> None:
    sizes = {"a": 700, "b": 700, "c": 90_000}
    apart = trained(name, sizes, 4, 3, False, dtype, **settings)
    assert trained(name, sizes, 4, 3, True, dtype, **settings) == apart
    assert trained(name, sizes, 4, 1, True, dtype, **settings) == apart


class Falling(mx.lr_scheduler.LRScheduler):
    """A rate that is another one at each update."""

    def __call__(self, num_update: int) -> float:
        return self.base_lr / num_update


REPEATED: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {}),
    ("sgd", {"momentum": 0.9, "wd": 0.01}),
    ("sgd", {"momentum": 0.9, "multi_precision": True}),
    ("nag", {"momentum": 0.9}),
    ("signum", {"momentum": 0.9, "wd_lh": 0.01}),
    ("adagrad", {}),
    ("rmsprop", {"centered": True}),
    ("adadelta", {}),
    ("ftrl", {}),
    ("adam", {"clip_gradient": 0.5, "wd": 0.01}),
    ("adamax", {}),
    ("nadam", {}),
    ("ftml", {}),
    ("lamb", {"wd": 0.1}),
    ("sgd", {"momentum": 0.9, "lr_scheduler": Falling()}),
    ("adam", {"lr_scheduler": Falling()}),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*accumulating in float16")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name, settings", REPEATED)
def test_programs_that_run_again_change_no_bit(
    name: str, settings: dict[str, Any], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"a": 700, "b": 90, "c": 90_000}
    runs: list[bool] = []
    repeat = CompiledUpdate.run
    monkeypatch.setattr(CompiledUpdate, "run", lambda self, terms: (runs.append(repeat(self, terms)), runs[-1])[1])
    again = {cut: trained(name, sizes, 2, cut, True, dtype, **settings) for cut in (1, 3)}
    assert runs and all(runs)
    monkeypatch.setattr("dualmx.kvstore.server_updates.can_compile", lambda optimizer: False)
    runs.clear()
    for cut, found in again.items():
        assert trained(name, sizes, 2, cut, True, dtype, **settings) == found
    assert not runs


def stepped(changes: dict[int, Any], optimizer: Any, turns: int = 12) -> bytes:
    """The value of a key after `turns` pushes, before some of which something is changed."""
    store = Store(range(1), True, lambda who: None, failed)
    updater = StoreUpdater(optimizer, store)
    store.apply, store.updater_sums = updater.apply, True
    store.put("w", 0, np.ones(50, np.float32), (50,))
    for turn in range(1, turns + 1):
        if turn in changes:
            changes[turn](updater, store)
        store.push(0, [("w", 0, turn, np.full(50, turn, np.float32))], PendingRequest(0, 0, 1, "push"))
    return store.shards["w", 0].value.tobytes()


def new_rate(updater: StoreUpdater, store: Store) -> None:
    update_settings(updater.optimizer, {"lr": 0.5})
    updater.set_factors([])


def new_factors(updater: StoreUpdater, store: Store) -> None:
    updater.set_factors([["w", 3.0, 1.0, "w"]])


def new_value(updater: StoreUpdater, store: Store) -> None:
    store.put("w", 0, np.zeros(50, np.float32), (50,), mode="reset")


def new_key(updater: StoreUpdater, store: Store) -> None:
    store.put("w", 0, np.zeros(50, np.float32), (50,), mode="fresh")
    store.shards["w", 0].completed_round = 6


@pytest.mark.parametrize("what", [new_rate, new_factors, new_value, new_key])
@pytest.mark.parametrize("name", ["sgd", "adam", "lars", "dcasgd"])
def test_changes_reach_programs_that_run_again(what: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {7: what}
    again = stepped(changes, mx.optimizer.create(name, learning_rate=0.1))
    monkeypatch.setattr("dualmx.kvstore.server_updates.can_compile", lambda optimizer: False)
    assert stepped(changes, mx.optimizer.create(name, learning_rate=0.1)) == again
    assert stepped({}, mx.optimizer.create(name, learning_rate=0.1)) != again


class Warming(mx.optimizer.Adam):
    """Its formula changes once, by itself."""

    def _update_count(self, index: Any) -> None:
        super()._update_count(index)
        self.epsilon = 1e-8 if self.num_update < 8 else 1e-2


class Guessing(mx.optimizer.Adam):
    """Tells other numbers than it takes."""

    def next_updates(self, *args: Any) -> Any:
        return [one._replace(scalars=tuple(n + 1 for n in one.scalars)) for one in super().next_updates(*args)]


@pytest.mark.parametrize("kind", [Warming, Guessing])
def test_formulas_that_change_are_recorded_anew(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = kind(learning_rate=0.1)
    again = stepped({}, optimizer)
    assert optimizer.num_update == 12 and list(update_counts(optimizer).values()) == [12]
    monkeypatch.setattr("dualmx.kvstore.server_updates.can_compile", lambda optimizer: False)
    assert stepped({}, kind(learning_rate=0.1)) == again


def test_schedules_and_counts_are_followed() -> None:
    steps = mx.lr_scheduler.FactorScheduler(step=3, factor=0.5, base_lr=0.1)
    scheduled = stepped({}, mx.optimizer.SGD(learning_rate=0.1, lr_scheduler=steps))
    w, rate = np.ones(50, np.float32), mx.lr_scheduler.FactorScheduler(step=3, factor=0.5, base_lr=0.1)
    for turn in range(1, 13):
        w = w - np.float32(rate(turn)) * np.full(50, turn, np.float32)
    np.testing.assert_allclose(np.frombuffer(scheduled, np.float32), w, rtol=1e-6)
    assert all(map(can_compile, (mx.optimizer.SGD(), mx.optimizer.SGD(lr_scheduler=steps), mx.optimizer.Adam())))
    assert not any(
        map(can_compile, (mx.optimizer.LBSGD(), mx.optimizer.SGLD(), mx.optimizer.Adam(multi_precision=True)))
    )


def test_updates_of_a_users_subclass_are_made_each_time() -> None:
    class Growing(mx.optimizer.SGD):
        def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
            turn = self._index_update_count.get(index, 0) + 1
            super().update(index, weight, grad * (2 if turn > 3 else 1), state)

    assert not can_compile(Growing())
    w = np.ones(50, np.float32)
    for turn in range(1, 13):
        w = w - np.float32(0.1) * np.full(50, turn * (2 if turn > 3 else 1), np.float32)
    grown = stepped({}, Growing(learning_rate=0.1))
    np.testing.assert_allclose(np.frombuffer(grown, np.float32), w, rtol=1e-5)


def test_a_learned_update_is_of_one_plain_program() -> None:
    w, g = mx.nd.ones((3,)), mx.nd.ones((3,))
    w.asnumpy(), g.asnumpy()
    entered = [w.as_jax()]
    w -= g
    with pytest.raises(ValueError, match="reads something else"):
        ReplayableProgram(entered, [w])
    assert w.asnumpy().tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="not pending"):
        ReplayableProgram([], [w])
    w += mx.nd.random.normal(shape=(3,))
    with pytest.raises(ValueError, match="plain"):
        ReplayableProgram([], [w])


@pytest.mark.parametrize("name, arrays", [("adam", 3), ("sgd", 1)])
def test_updates_take_over_the_memory_of_weights_and_states(name: str, arrays: int) -> None:
    before = counters.kept_copies
    stepped({}, mx.optimizer.create(name, learning_rate=0.1))
    assert counters.kept_copies - before <= arrays  # while it is learned


@pytest.mark.usefixtures("xla_tier")  # buffers are taken over
def test_values_that_somebody_looks_at_stay_as_they_were() -> None:
    store = Store(range(1), True, lambda who: None, failed)
    updater = StoreUpdater(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5), store)
    store.apply, store.updater_sums = updater.apply, True
    store.put("w", 0, np.zeros(5000, np.float32), (5000,))
    seen, lies = [], []
    for turn in range(1, 9):
        store.push(0, [("w", 0, turn, np.full(5000, -1, np.float32))], PendingRequest(0, 0, 1, "push"))
        value = dense(store.shards["w", 0].value)
        lies.append(value.ctypes.data)
        if turn % 2:
            seen.append((turn, value, value.copy()))
        del value
    assert all((value == copy).all() for _, value, copy in seen)
    expected = np.cumsum(2 - 0.5 ** np.arange(8))
    assert [value[0] for _, value, _ in seen] == expected[::2].tolist()
    assert all(lies[turn] == lies[turn - 1] for turn in (2, 4, 6))  # nobody looked: in place


@pytest.mark.parametrize("told", [True, False])
def test_nadam_is_the_same_after_a_restart_and_in_any_order_of_keys(told: bool) -> None:
    """Its running product follows from what was counted and told; the control: by the order in which rounds end."""

    def values(restarted: bool, keys: list[str]) -> dict[Any, bytes]:
        store, control = Store(range(1), True, lambda who: None, failed), OptimizerRequests()
        for key in "abc":
            store.put(key, 0, np.linspace(-1, 1, 8, dtype="f"), (8,))
        optimizer = mx.optimizer.create("nadam")
        meta = {"op": "optimizer", "store": 1, "config": to_config(optimizer), "factors": [], "order": list("abc")}
        control("optimizer", store, 1, Message(REQUEST, 0, meta))
        for turn in range(1, 6):
            if not told:
                control._updaters[1].optimizer._update_positions = None  # type: ignore[attr-defined]
            if restarted and turn == 3:
                records, control = list(control.records(1)), OptimizerRequests()
                for meta, payload in records:
                    control(meta["op"], store, 1, Message(REQUEST, 0, meta, [p.tobytes() for p in payload]))
            for key in keys:
                gradient = np.full(8, turn * ord(key) / 100, "f")
                store.push(0, [(key, 0, turn, gradient)], PendingRequest(0, 0, 1, "push"))
        return {key: held.value.tobytes() for key, held in store.shards.items()}

    expected = values(False, list("abc"))
    assert (values(True, list("cab")) == expected) == told
