"""Any message, cut into any chunks, in any of the dialects, folds into the same message."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from turnstore.clients._folding import ChatFolding

if TYPE_CHECKING:
    from tests.clients.streams import Json

TEXTS = st.text(max_size=30)
NAMES = st.from_regex(r"[a-z_]{1,20}", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=3).map(json.dumps)
PARTS = st.fixed_dictionaries({"type": st.just("url_citation"), "url": TEXTS, "n": st.integers()})


def tool_call(number: int, name: str, arguments: str) -> Json:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


@st.composite
def messages(draw: st.DrawFn) -> Json:
    message: Json = {"role": "assistant", "content": draw(st.none() | TEXTS)}
    for field in ("refusal", "reasoning_content", "thoughts_of_2031"):
        if draw(st.booleans()):
            message[field] = draw(st.none() | TEXTS)
    if draw(st.booleans()):
        message["annotations"] = draw(st.lists(PARTS, min_size=1, max_size=3))
    wanted = draw(st.lists(st.tuples(NAMES, ARGUMENTS), max_size=3))
    if wanted:
        message["tool_calls"] = [tool_call(n, *one) for n, one in enumerate(wanted)]
    return message


@st.composite
def cuts(draw: st.DrawFn, text: str) -> list[str]:
    """Cut between any two UTF-16 units, so also inside a character beyond the 16 bits."""
    units = text.encode("utf-16-le", "surrogatepass")
    places = draw(st.lists(st.integers(0, len(units) // 2), max_size=4).map(sorted))
    ends = [0, *(place * 2 for place in places), len(units)]
    return [
        units[start:end].decode("utf-16-le", "surrogatepass")
        for start, end in itertools.pairwise(ends)
    ]


@st.composite
def streams(draw: st.DrawFn, message: Json) -> list[Json]:
    """The deltas of each field in their order, the fields mixed at random."""
    queues: list[list[Json]] = []
    for field, value in message.items():
        if isinstance(value, str) and field != "role":
            queues.append([{field: piece} for piece in draw(cuts(value))])
        elif field == "annotations":
            queues.append([{field: [part]} for part in value])
        elif field != "tool_calls":
            queues.append([{field: value}])
    queues.extend(call_deltas(draw, message.get("tool_calls", [])))
    queues = [queue for queue in queues if queue]
    deltas = []
    while queues:
        queue = draw(st.sampled_from(queues))
        deltas.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    if draw(st.booleans()):
        deltas = [{"role": "assistant", **delta} for delta in deltas]
    return deltas


def call_deltas(draw: st.DrawFn, calls: list[Json]) -> list[list[Json]]:
    numbered, repeated, growing = (draw(st.booleans()) for _ in range(3))
    queues = []
    for number, call in enumerate(calls):
        pieces = draw(cuts(call["function"]["arguments"]))
        if growing:
            pieces = ["".join(pieces[: n + 1]) for n in range(len(pieces))]
        queue = []
        for n, piece in enumerate(pieces):
            delta: Json = {"index": number} if numbered else {"id": call["id"]}
            function: Json = {"arguments": piece}
            if n == 0 or repeated:
                delta |= {"id": call["id"], "type": "function"}
                function["name"] = call["function"]["name"]
            queue.append({"tool_calls": [{**delta, "function": function}]})
        queues.append(queue)
    # without numbers their order is that of their beginnings, so they come one after the other
    return queues if numbered else [[delta for queue in queues for delta in queue]]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_cut_folds_into_the_same_message(data: st.DataObject) -> None:
    message = data.draw(messages())
    deltas = data.draw(streams(message))
    folding = ChatFolding()
    for delta in deltas:
        folding.add({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        assert not folding.complete
    folding.add({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    assert folding.complete
    assert folding.reply()["choices"][0]["message"] == message


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "index",
                    "id",
                    "type",
                    "text",
                    "function",
                    "name",
                    "arguments",
                    "content",
                    "tool_calls",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.fixed_dictionaries({"delta": ANYTHING, "index": st.integers(0, 1)}), max_size=4))
def test_no_chunk_can_break_it(choices: list[Json]) -> None:
    folding = ChatFolding()
    for choice in choices:
        folding.add({"choices": [choice]})
    json.dumps(folding.reply())
