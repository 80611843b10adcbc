"""The model server with long-term facts: it draws them, makes their vectors, and recalls them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from openai import BadRequestError, OpenAI

from tests.waiting import wait_until
from turnstore.context import SUMMARY_PROMPT, Context
from turnstore.facts import EXTRACTION_PROMPT, Extraction, Facts, Recall
from turnstore.testing import Reply, embed

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import Store
    from turnstore.testing import ModelServer

SECONDS = 60


def ask(client: OpenAI, text: str) -> str:
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    return answer.choices[0].message.content or ""


def facts_of(client: OpenAI, known: str, turns: str) -> list[dict[str, Any]]:
    """Ask as an extraction does."""
    prompt = EXTRACTION_PROMPT.replace("{facts}", known).replace("{transcript}", turns)
    return json.loads(ask(client, prompt))["facts"]  # type: ignore[no-any-return]


def summary_of(client: OpenAI, turns: str) -> str:
    """Ask as a summary does."""
    prompt = SUMMARY_PROMPT.replace("{summary}", "(nothing)").replace("{transcript}", turns)
    return ask(client, prompt)


def near(client: OpenAI, one: str, other: str, **options: Any) -> float:
    """Give the cosine of two texts."""
    answer = client.embeddings.create(model="m", input=[one, other], **options)
    a, b = (item.embedding for item in answer.data)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / (math.hypot(*a) * math.hypot(*b))


def test_it_draws_facts_from_what_the_user_says(client: OpenAI) -> None:
    turns = (
        "Turn 1, Monday 2026-11-30 10:00:\nuser: My name is Ada.\nMy cat is called Tom.\n"
        "assistant: My name is Model.\n\nTurn 2, Monday 2026-11-30 10:01:\nuser: Hello."
    )
    assert facts_of(client, "(nothing)", turns) == [
        {"verdict": "new", "text": "The user's name is Ada.", "slot": "name", "turns": [1]},
        {"verdict": "new", "text": "The user's cat is called Tom.", "slot": "cat", "turns": [1]},
    ]
    assert facts_of(client, "(nothing)", "Turn 1, Monday 2026-11-30 10:00:\n(nothing)") == []


def test_a_known_fact_is_said_again_or_gives_way(client: OpenAI) -> None:
    known = (
        "0. The user's name is Ada. (slot: name; heard 2026-11-01)\n"
        "1. The user's cat is called Tom. (slot: cat; heard 2026-11-01)"
    )
    turns = "Turn 1, Monday 2026-11-30 10:00:\nuser: My name is Ada. My cat is called Tim."
    drawn = [(one["verdict"], one["of"]) for one in facts_of(client, known, turns)]
    assert drawn == [("duplicate", 0), ("supersedes", 1)]


def test_what_a_memory_asks_takes_no_reply_from_the_chat(
    client: OpenAI, model: ModelServer
) -> None:
    model.script(Reply("one"), Reply("two"))
    assert facts_of(client, "(nothing)", "Turn 1, Monday:\nuser: My name is Ada.") != []
    assert ask(client, "Hello") == "one"
    assert summary_of(client, "user: My name is Ada.") == "I will remember that your name is Ada."
    assert ask(client, "Hello") == "two"
    assert ask(client, "Hello") == "I see 1 message; the last one says: Hello"


def test_replies_to_what_a_memory_asks_are_scripted_for_it(
    client: OpenAI, model: ModelServer
) -> None:
    model.script(Reply('{"facts": [{"of": 1}]}'), to="extraction")
    model.script(Reply("They met."), to="summary")
    assert ask(client, "Hello") == "I see 1 message; the last one says: Hello"
    assert summary_of(client, "user: Hello") == "They met."
    assert facts_of(client, "(nothing)", "Turn 1, Monday:\nuser: Hello") == [{"of": 1}]
    assert facts_of(client, "(nothing)", "Turn 1, Monday:\nuser: Hello") == []
    with pytest.raises(ValueError, match="one of chat, extraction, summary"):
        model.script(Reply("x"), to="memory")  # type: ignore[arg-type]


def test_texts_are_near_that_share_words(client: OpenAI, model: ModelServer) -> None:
    assert near(client, "My cat is Tom.", "my CAT is tom") == pytest.approx(1)
    assert near(client, "My cat is Tom.", "What is my cat?") > 0.5
    assert near(client, "My cat is Tom.", "Boats sail.") < 0.2
    assert near(client, "a", "a", dimensions=8) == pytest.approx(1)
    assert model.requests == []


@pytest.mark.parametrize(
    "name, more, dimensions",
    [
        ("text-embedding-3-small", {}, 1536),
        ("text-embedding-3-large", {}, 3072),
        ("text-embedding-3-large", {"dimensions": 256}, 256),
    ],
)
def test_vectors_are_as_long_as_asked_for(
    client: OpenAI, name: str, more: dict[str, Any], dimensions: int
) -> None:
    answer = client.embeddings.create(model=name, input="Hello", **more)
    assert [len(item.embedding) for item in answer.data] == [dimensions]
    tokens = client.embeddings.create(model=name, input=[15339, 11], **more)
    assert [len(item.embedding) for item in tokens.data] == [dimensions]


@pytest.mark.servers("redis-8", "redis-url")
@pytest.mark.one_setup
def test_what_it_drew_is_recalled_in_another_conversation(
    make_store: Callable[..., Store], client: OpenAI
) -> None:
    def asked(texts: list[str]) -> list[list[float]]:
        answer = client.embeddings.create(model="m", input=texts, dimensions=256)
        return [item.embedding for item in answer.data]

    store = make_store()
    facts = Facts(
        store,
        embed=asked,
        dimensions=256,
        embedder="words:1",
        engine="plain",
        ttl=timedelta(hours=1),
    )
    extraction = Extraction(facts, client, model="m")
    context = Context(sources=[Recall(facts, min_score=0.3, deadline=SECONDS)])

    def say(day: str, text: str) -> str | None:
        wrapped = store.conversation(day, owner="ada").wrap(client, context=context)
        answer = wrapped.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text}]
        )
        said: str | None = answer.choices[0].message.content
        return said

    for name in ("Tom", "Tim"):
        say("monday", f"My cat is called {name}.")
        extraction.extract(store.conversation("monday", owner="ada"))
        assert say("friday", "What is my cat called?") == f"Your cat is called {name}."
        store.conversation("friday", owner="ada").clear()
    assert facts.health().dead_letters == 0
    store.erase("ada")


@pytest.mark.servers("redis-8", "redis-url")
@pytest.mark.one_setup
def test_an_extraction_in_the_background_takes_none_of_the_script(
    make_store: Callable[..., Store], client: OpenAI, model: ModelServer
) -> None:
    store = make_store()
    facts = Facts(store, embed=embed, dimensions=256, embedder="words:1", ttl=timedelta(hours=1))
    model.script(Reply("one"), Reply("two"), Reply("three"))
    model.script(Reply("no JSON"), to="extraction")  # it is asked once more, and draws itself
    said: list[str | None] = []
    with Extraction(facts, client, model="m", every=1) as extraction:
        context = Context(after=[extraction])
        wrapped = store.conversation("monday", owner="ada").wrap(client, context=context)
        for text in ("My name is Ada.", "My cat is Tom.", "My boat is Erna."):
            answer = wrapped.chat.completions.create(
                model="m", messages=[{"role": "user", "content": text}]
            )
            said.append(answer.choices[0].message.content)
            extraction.flush()
    assert said == ["one", "two", "three"]
    assert sorted(fact.slot or "" for fact in facts.list("ada")) == ["boat", "cat", "name"]
    assert facts.health().dead_letters == 0
    store.erase("ada")


def test_an_embedder_needs_no_server() -> None:
    one, same, other = embed(["My cat is Tom.", "my CAT is tom!", "Boats sail."])
    assert len(one) == 256
    assert one == same != other
    assert embed([]) == []


class TestTheCommand:
    def test_it_serves_until_ctrl_c(self) -> None:
        command = [sys.executable, "-m", "turnstore.testing"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            lines = [running.stdout.readline() for _ in range(3)]
            url = lines[0].split()[1].removeprefix("OPENAI_BASE_URL=")
            assert f"ANTHROPIC_BASE_URL={url.removesuffix('/v1')} " in lines[1]
            with OpenAI(base_url=url, api_key="none") as client:
                answer = client.responses.create(model="m", input="My name is Ada.")
                assert answer.output_text == "I will remember that your name is Ada."
                port = url.split(":")[2].removesuffix("/v1")
                taken = subprocess.run(
                    [*command, "--port", port],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=SECONDS,
                )
            assert (taken.returncode, taken.stdout) == (1, "")
            assert taken.stderr.startswith(f"port {port}: ")
            running.send_signal(2)
            wait_until(lambda: running.poll() is not None)
        assert running.returncode == 0


def test_an_embedder_fails_or_waits_where_a_test_says_so(
    client: OpenAI, model: ModelServer
) -> None:
    held = threading.Event()
    model.script(Reply.error(400, "too long"), Reply(hold=held), to="embedding")
    assert ask(client, "Hello?").startswith("I see 1 message"), "the model fails, too"
    with pytest.raises(BadRequestError, match="too long"):
        near(client, "a cat", "a dog")
    with ThreadPoolExecutor(1) as pool:
        answered = pool.submit(near, client, "a cat", "a cat")
        with pytest.raises(TimeoutError):
            answered.result(timeout=0.1)
        held.set()
        assert answered.result(SECONDS) == pytest.approx(1)
    assert near(client, "a cat", "a cat") == pytest.approx(1)


@pytest.mark.parametrize("reply", [Reply("Hello"), Reply.tool_call("t"), Reply(ending="cut")])
def test_an_embedder_says_nothing_else(model: ModelServer, reply: Reply) -> None:
    with pytest.raises(ValueError, match=r"Reply\.error"):
        model.script(Reply.error(500), reply, to="embedding")
    assert model._desk.left == 0, "half of it was scripted"
