"""Whatever is stored and asked: what Gemini is sent is in an order that it takes."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.unit.histories import history
from tests.unit.test_google import call, model, result, user
from turnstore._compose import compose, with_context
from turnstore.clients import _google_contents as contents_api
from turnstore.formats import FORMATS
from turnstore.testing._gemini import complaint

Json = dict[str, Any]
RULES = FORMATS["google.contents"]
NAMES = st.lists(st.sampled_from(["f", "g"]), min_size=1, max_size=3)
IDS = st.sampled_from([{}, {"id": "x"}])


@st.composite
def loops(draw: st.DrawFn) -> list[Json]:
    """Make a turn with any number of rounds of calls, with and without ids."""
    messages: list[Json] = [user("q")]
    for names in draw(st.lists(NAMES, max_size=3)):
        messages.append(model(*[call(name, **draw(IDS)) for name in names]))
        messages.append(user(*[result(name) for name in draw(st.permutations(names))]))
    return [*messages, model("a")]


@st.composite
def turns(draw: st.DrawFn) -> list[list[Json]]:
    """Make a turn: whole, broken off anywhere, in pieces, or of the user alone."""
    messages = draw(loops())
    if draw(st.booleans()):
        messages = messages[: draw(st.integers(1, len(messages)))]
    cut = draw(st.integers(0, len(messages)))
    return [piece for piece in (messages[:cut], messages[cut:]) if piece]


def waiting(messages: list[Json]) -> list[str]:
    """Name the functions that the last of the messages calls."""
    last = messages[-1] if messages else {"parts": []}
    return [part["functionCall"]["name"] for part in last["parts"] if "functionCall" in part]


@given(stored=st.lists(turns(), max_size=6), answers=st.booleans(), policy=st.booleans())
def test_the_order_is_one_that_gemini_takes(
    stored: list[list[list[Json]]], *, answers: bool, policy: bool
) -> None:
    names = waiting(stored[-1][-1]) if stored and answers else []
    request = [user(*map(result, names))] if names else [user("new")]
    own: Json = {"systemInstruction": {"parts": [{"text": "policy"}]}} if policy else {}
    body = {"contents": request, **own}
    given = contents_api.given(body)
    bare = compose(history(*stored, format_="google.contents"), given, RULES, "raise")
    plan = with_context(bare, given, RULES, "facts\n\nsummary")
    sent = contents_api.sending(body, plan.send)
    event("goes on" if plan.continued else "begins")
    contents = sent["contents"]
    roles = [content["role"] for content in contents]
    assert roles == ["user", "model"] * (len(roles) // 2) + ["user"]
    assert complaint(contents) is None
    assert contents[-1]["parts"][-len(request[0]["parts"]) :] == request[0]["parts"]
    texts = [part["text"] for part in sent["systemInstruction"]["parts"]]
    assert texts == ["policy"] * policy + ["facts\n\nsummary"]


@given(st.lists(loops(), min_size=1, max_size=4))
def test_sending_everything_back_changes_nothing(stored: list[list[Json]]) -> None:
    """A caller that keeps the whole transcript, and has no ids in its copy."""
    past = history(*stored, format_="google.contents")
    transcript = [
        {**message, "parts": [without_id(part) for part in message["parts"]]}
        for turn in stored
        for message in turn
    ]
    plan = compose(past, [*transcript, user("new")], RULES, "raise")
    assert plan.new == [user("new")]
    assert plan.send == compose(past, [user("new")], RULES, "raise").send


def without_id(part: Json) -> Json:
    return {
        kind: {name: item for name, item in said.items() if name != "id"}
        if isinstance(said, dict)
        else said
        for kind, said in part.items()
    }
