"""The tree of errors, what they carry, and that they survive a process boundary."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest
import redis

import turnstore
from turnstore import errors

ALL = [getattr(errors, name) for name in errors.__all__]


def test_every_error_is_listed() -> None:
    made_here = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert made_here == set(errors.__all__)


def test_every_error_can_be_imported_from_the_package() -> None:
    assert {name for name in turnstore.__all__ if name.endswith("Error")} == set(errors.__all__)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    lines = re.findall(r"^    ([│ ]*)(?:[├└]── )?(\w+)", errors.__doc__ or "", re.MULTILINE)
    drawn: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for indent, name in lines:
        depth = len(indent) if name != "TurnstoreError" else -1
        above = [(d, n) for d, n in above if d < depth]
        drawn[name] = above[-1][1] if above else "Exception"
        above.append((depth, name))
    assert drawn == {kind.__name__: kind.__mro__[1].__name__ for kind in ALL}


@pytest.mark.parametrize("kind", ALL)
def test_each_is_caught_as_a_turnstore_error(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.TurnstoreError)
    assert kind.__doc__


def test_the_ones_with_two_parents() -> None:
    assert issubclass(errors.LimitError, ValueError)
    assert issubclass(errors.TurnConflictError, errors.SaveError)
    assert issubclass(errors.TurnConflictError, errors.ConflictError)


EXAMPLES = [
    errors.ConflictError("m", expected="1-a", actual="2-b"),
    errors.SaveError("m", reply={"role": "assistant"}, turn=lambda: None),
    errors.TurnConflictError("m", expected="1-a", actual="2-b", reply="r", turn=lambda: None),
    errors.UnavailableError("m", outcome_unknown=True),
    errors.ScriptError("m", file="append.lua", line=3),
    *(kind("m") for kind in ALL),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_each_survives_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is type(error)
    assert str(again) == str(error) == "m"
    # A turn holds a connection and stays at home.
    assert vars(again) == {**vars(error), **({"turn": None} if "turn" in vars(error) else {})}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_each_can_be_copied(error: Exception) -> None:
    assert str(copy.copy(error)) == "m"


def test_a_conflict_of_a_turn_has_both_sides() -> None:
    error = errors.TurnConflictError("m", expected="1-a", actual="2-b", reply="r")
    assert (error.expected, error.actual, error.reply, error.turn) == ("1-a", "2-b", "r", None)


def test_a_cluster_that_learns_its_nodes_anew_is_an_error_of_ours() -> None:
    """Two threads that look at them at once meet a RuntimeError of redis-py's."""

    class Cluster(redis.RedisCluster):
        def __init__(self) -> None:
            pass

        def execute_command(self, *_command: object, **_options: object) -> object:
            raise RuntimeError("dictionary keys changed during iteration")

        def __del__(self) -> None:
            pass

    chat = turnstore.Store(Cluster(), name="test").conversation("ada")
    with pytest.raises(turnstore.UnavailableError, match="keys changed") as caught:
        chat.append("hi")
    assert caught.value.outcome_unknown
    assert isinstance(caught.value.__cause__, RuntimeError)
