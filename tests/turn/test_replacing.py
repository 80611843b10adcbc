"""A turn in the place of another one, which goes when the new one is saved, and not before."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.invariants.raw import look
from tests.servers.facade import inner
from tests.store.talk import KNOWN, assistant, fill, numbered, pttl, raw, texts, user
from turnstore import TurnConflictError, TurnGoneError, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore

pytestmark = pytest.mark.one_setup


async def say(chat: AsyncConversation, text: str, **options: Any) -> Any:
    """Take a turn, and give it."""
    async with chat.turn(text, **options) as turn:
        turn.reply(f"re {text}")
    return turn


async def test_the_newest_turn_is_answered_anew(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    old = (await chat.turns())[-1]
    async with chat.turn("3.1", replaces=old, turn_id="new") as turn:
        assert texts(turn.messages) == ["1.1", "2.1", "3.1"]
        assert texts(turn.history) == ["1.1", "2.1"]
        assert turn.revision == "3-t3", "of the conversation, as it is"
        assert turn.replaced == [old]
        turn.reply("another answer")
        assert texts(await chat.read()) == numbered(1, 2, 3), "nothing goes before the save"
    assert turn.saved is not None
    assert turn.saved.replaced_ids == ("t3",)
    assert (turn.saved.revision, turn.saved.duplicate) == ("3-new", False)
    assert (turn.saved.turns, turn.saved.messages, turn.saved.dropped) == (3, 4, 0)
    turns = await chat.turns()
    assert [one.number for one in turns] == [1, 2, 3]
    assert turns[-1].messages == [user("3.1"), assistant("another answer")]


async def test_an_earlier_turn_takes_all_after_it_along(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 5)
    async with chat.turn("edited", replaces="t2") as turn:
        assert texts(turn.messages) == ["1.1", "edited"]
        assert [one.id for one in turn.replaced] == ["t2", "t3", "t4", "t5"]
        turn.reply("a")
    assert turn.saved is not None
    assert turn.saved.replaced_ids == ("t2", "t3", "t4", "t5")
    assert texts(await chat.read()) == ["1.1", "edited", "a"]
    # What went is not known any more: its ids are free.
    assert not (await chat.append("again", turn_id="t3")).duplicate
    assert (await chat.append("1.1", turn_id="t1")).duplicate


async def test_the_first_turn_can_be_replaced(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    async with chat.turn("new", replaces="t1", turn_id="n") as turn:
        assert turn.history == []
        turn.reply("a")
    held = look(server.raw, chat.key)
    assert [(one.no, one.turn, one.id) for one in held.pieces] == [(1, 1, "n")]
    assert held.head is not None
    assert held.head.ids == ("n",)
    assert turn.saved is not None
    assert turn.saved.revision == "1-n"


@pytest.mark.parametrize("named", ["t2", "p2", "p3", "turn"])
async def test_a_turn_in_pieces_goes_whole(store: AsyncStore, named: str) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    for piece in ("p2", "p3"):
        await chat.append(piece, turn_id=piece, continues=True)
    await fill(chat, 1, start=3)
    old = (await chat.turns())[1]
    assert old.ids == ("t2", "p2", "p3")
    turn = await say(chat, "new", replaces=old if named == "turn" else named)
    assert turn.saved.replaced_ids == ("t2", "p2", "p3", "t3")
    assert texts(await chat.read()) == ["1.1", "new", "re new"]


async def test_a_result_of_a_tool_continues_the_turn_before(store: AsyncStore) -> None:
    chat = store.conversation("c")
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "1", "content": "r"}
    await chat.append([user("q"), calling], turn_id="asks")
    await chat.append("something else", turn_id="between")
    async with chat.turn([result], replaces="between") as turn:
        turn.reply("done")
    (whole,) = await chat.turns()
    assert whole.messages == [user("q"), calling, result, assistant("done")]
    assert turn.saved is not None
    assert (turn.saved.turns, turn.saved.replaced_ids) == (1, ("between",))


@pytest.mark.parametrize("window", [Window(turns=2), Window(messages=3), Window(tokens=30)])
async def test_a_window_ends_before_it(new_store: NewStore, window: Window) -> None:
    chat = new_store(count_tokens=lambda _: 10).conversation("c")
    await fill(chat, 12)
    for _ in range(2):  # the second time, the store has learnt how much turns hold
        async with chat.turn("q", window=window, replaces="t8") as turn:
            shown = texts(turn.history)
            assert shown == numbered(*range(1, 8))[-len(shown) :]
            assert len(shown) == (2 if window.turns else 3)
            assert turn.history.has_older
    async with chat.turn("q", window=Window(), replaces="t8") as turn:
        assert texts(turn.history) == numbered(*range(1, 8))
        assert not turn.history.has_older


@pytest.mark.parametrize("count", [5, 300])
async def test_it_is_found_at_any_distance(store: AsyncStore, count: int) -> None:
    chat = store.conversation("c")
    await fill(chat, count)
    turn = await say(chat, "new", replaces="t2", window=Window(turns=1))
    assert texts(turn.history) == ["1.1"]
    assert len(turn.saved.replaced_ids) == count - 1
    assert texts(await chat.read()) == ["1.1", "new", "re new"]


async def test_what_is_sent_back_with_the_question_is_known(store: AsyncStore) -> None:
    """As from a browser that has the whole conversation, up to the question it asks again."""
    chat = store.conversation("c")
    for number in range(1, 4):
        await say(chat, f"q{number}", turn_id=f"t{number}")
    known = [user("q1"), assistant("re q1"), user("q2"), assistant("re q2")]
    for window in (None, Window(turns=1)):
        async with chat.turn([*known, user("q3")], replaces="t3", window=window) as turn:
            assert turn.new == [user("q3")]
            assert texts(turn.messages)[-3:] == ["q2", "re q2", "q3"]


async def test_ids_are_known_as_before(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, KNOWN + 8)
    await say(chat, "new", replaces=f"t{KNOWN + 4}", turn_id="new")
    held = look(server.raw, chat.key)
    assert held.head is not None
    known = [f"t{number}" for number in range(1, KNOWN + 4)][-KNOWN + 1 :]
    assert list(held.head.ids) == [*known, "new"]


async def test_totals_limits_and_lives_are_those_of_an_append(
    new_store: NewStore, server: Server
) -> None:
    store = new_store(max_messages=4, ttl=timedelta(hours=1), count_tokens=lambda _: 10)
    chat = store.conversation("c")
    await fill(chat, 4)
    await chat.expire(timedelta(minutes=1))
    async with chat.turn("q", replaces="t4") as turn:
        turn.reply(["a", "b"])
    assert turn.saved is not None
    assert (turn.saved.turns, turn.saved.messages, turn.saved.tokens) == (2, 4, 40)
    assert turn.saved.dropped == 2
    assert texts(await chat.read()) == ["3.1", "q", "a", "b"]
    assert pttl(server, chat) > 60_000, "the time to live begins anew"
    # The oldest that is held, after some were dropped: the numbers go on.
    turn = await say(chat, "only", replaces="t3", turn_id="only")
    assert (turn.saved.turns, turn.saved.messages, turn.saved.tokens) == (1, 2, 20)
    held = look(server.raw, chat.key)
    assert [(one.no, one.turn) for one in held.pieces] == [(3, 3)]
    assert turn.saved.revision == "3-only"
    assert (await chat.append("next", turn_id="t4")).revision == "4-t4"


async def test_a_turn_that_is_larger_than_the_limit_stays_alone(new_store: NewStore) -> None:
    chat = new_store(max_messages=2).conversation("c")
    await fill(chat, 2)
    async with chat.turn("q", replaces="t2") as turn:
        turn.reply(["a", "b", "c"])
    assert turn.saved is not None
    assert (turn.saved.turns, turn.saved.messages, turn.saved.dropped) == (1, 4, 1)


async def test_a_store_for_ever(new_store: NewStore, server: Server) -> None:
    chat = new_store(ttl=None).conversation("c")
    await fill(chat, 2)
    await say(chat, "new", replaces="t2")
    assert pttl(server, chat) == -1
    await chat.expire(timedelta(minutes=1))


async def test_what_is_stored_is_redacted(new_store: NewStore) -> None:
    def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one | {"content": one["content"].replace("secret", "***")} for one in messages]

    chat = new_store(redact=redact).conversation("c")
    await fill(chat, 2)
    async with chat.turn("my secret", replaces="t2") as turn:
        assert texts(turn.messages) == ["1.1", "my secret"]
        turn.reply("a secret")
    assert texts(await chat.read()) == ["1.1", "my ***", "a ***"]


async def test_other_formats_and_odd_json(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 1)
    await chat.append({"role": "user", "n": 2**70}, turn_id="big")
    async with chat.turn("é\ud800", replaces="big", meta={"n": 2**70}) as turn:
        turn.reply("a")
    newest = (await chat.turns())[-1]
    assert (newest.messages[0]["content"], newest.meta) == ("é\ud800", {"n": 2**70})


# Nothing goes where nothing is saved


class Stop(BaseException):
    """Not an Exception, like KeyboardInterrupt."""


@pytest.mark.parametrize("error", [ValueError("the model failed"), Stop()], ids=repr)
@pytest.mark.parametrize("policy", ["append", "reject", "serialize"])
async def test_a_model_that_fails_leaves_all_as_it_was(
    store: AsyncStore, server: Server, error: BaseException, policy: Any
) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    before = raw(server, chat)
    turn = await chat.turn("q", replaces="t2", on_conflict=policy).__aenter__()
    turn.reply("half an answer")
    await turn.__aexit__(type(error), error, None)
    assert raw(server, chat) == before
    assert turn.saved is None


async def test_a_turn_without_a_reply_leaves_all_as_it_was(
    store: AsyncStore, server: Server
) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    before = raw(server, chat)
    async with chat.turn("q", replaces="t2") as turn:
        pass
    assert raw(server, chat) == before
    async with turn:  # entered again
        assert texts(turn.history) == ["1.1"]
        turn.reply("a")
    assert texts(await chat.read()) == ["1.1", "q", "a"]


# The turn is not there


async def test_one_that_is_not_held_is_told_before_the_model_is_asked(store: AsyncStore) -> None:
    chat = store.conversation("c")
    with pytest.raises(TurnGoneError, match="is not held any more; the model was not asked"):
        await chat.turn("q", replaces="t1").__aenter__()
    await fill(chat, 5)
    old = await chat.turns()
    await chat.rewind()
    await chat.trim(turns=3)
    for gone in (old[0], "t1", old[4], "t5", "never"):
        with pytest.raises(TurnGoneError, match="nothing was written") as caught:
            await chat.turn("q", replaces=gone, on_load_error="continue").__aenter__()
        again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
        assert str(again) == str(caught.value)
    assert texts(await chat.read()) == numbered(2, 3, 4)
    await chat.clear()
    with pytest.raises(TurnGoneError):
        await chat.turn("q", replaces="t3").__aenter__()
    assert await chat.read() == []


async def test_another_turn_that_has_its_id_now_is_not_the_one_that_was_read(
    store: AsyncStore,
) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    old = (await chat.turns())[1]
    await chat.rewind(2)
    await chat.append("other", turn_id="t2")
    with pytest.raises(TurnGoneError):
        await chat.turn("q", replaces=old).__aenter__()
    await say(chat, "q", replaces="t2")  # an id is any turn that has it


async def test_where_its_number_has_another_turn_no_older_ones_are_read(
    new_store: NewStore, proxy: Proxy
) -> None:
    chat = new_store(at=proxy).conversation("c")
    await fill(chat, 300)
    old = (await chat.turns(1))[0]
    await say(chat, "new", replaces=old)
    reads = []
    for gone in (old, old.id):
        proxy.clear()
        with pytest.raises(TurnGoneError):
            await chat.turn("q", replaces=gone, window=Window(turns=1)).__aenter__()
        reads.append(proxy.count("LRANGE"))
    assert reads[0] < reads[1], "an id may be anywhere"


async def test_a_save_that_was_done_is_found_behind_what_followed(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 5)
    await say(chat, "job", turn_id="job")
    await fill(chat, KNOWN - 3, start=6)
    (old,) = await chat.turns(1)
    await chat.rewind()
    await chat.append("other")
    turn = await say(chat, "job", turn_id="job", replaces=old, window=Window(turns=1))
    assert turn.saved.duplicate


# Something else was written meanwhile


async def _append(chat: AsyncConversation) -> None:
    await chat.append("between", turn_id="between")


async def _rewind(chat: AsyncConversation) -> None:
    await chat.rewind()


async def _replace(chat: AsyncConversation) -> None:
    await say(chat, "other", replaces="t3", turn_id="other")


async def _clear(chat: AsyncConversation) -> None:
    await chat.clear()


async def _renew(chat: AsyncConversation) -> None:
    """End at the same revision with another turn in the place of the one that is meant."""
    await chat.rewind(2)
    await chat.append("other 2", turn_id="other")
    await chat.append("other 3", turn_id="t3")


@pytest.mark.parametrize("policy", ["append", "reject", "serialize"])
@pytest.mark.parametrize("between", [_append, _rewind, _replace, _clear])
async def test_a_change_meanwhile_refuses_it_and_the_reply_is_kept(
    store: AsyncStore, server: Server, between: Any, policy: Any
) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    turn = chat.turn("q", replaces="t2", on_conflict=policy)
    await turn.__aenter__()
    turn.reply("the answer")
    await between(chat)
    left, revision = raw(server, chat), (await chat.stat()).revision
    with pytest.raises(TurnConflictError, match="another turn came first") as caught:
        await turn.__aexit__(None, None, None)
    error = caught.value
    assert (error.reply, error.expected, error.actual) == ("the answer", "3-t3", revision)
    assert inner(error.turn) is inner(turn)
    assert turn.saved is None
    with pytest.raises(TurnConflictError):  # again does not help: what is there has to be read
        await turn.save()
    assert raw(server, chat) == left
    await chat.append(turn.new)  # but the answer can be kept behind it
    assert texts(await chat.read())[-2:] == ["q", "the answer"]


async def test_the_same_revision_again_is_not_the_same_turn(
    store: AsyncStore, server: Server
) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    turn = chat.turn("q", replaces="t2")
    await turn.__aenter__()
    turn.reply("the answer")
    await _renew(chat)
    left = raw(server, chat)
    with pytest.raises(TurnConflictError, match="not held any more") as caught:
        await turn.__aexit__(None, None, None)
    assert isinstance(caught.value.__cause__, TurnGoneError)
    assert caught.value.reply == "the answer"
    assert raw(server, chat) == left


async def test_a_trim_meanwhile(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 4)
    turn = await chat.turn("q", replaces="t3").__aenter__()
    turn.reply("a")
    await chat.trim(turns=2)
    await turn.__aexit__(None, None, None)
    assert texts(await chat.read()) == ["q", "a"]
    assert turn.saved is not None
    assert turn.saved.replaced_ids == ("t3", "t4")
    await fill(chat, 2, start=5)
    turn = await chat.turn("q", replaces="t5").__aenter__()
    turn.reply("a")
    await chat.trim(turns=1)
    left = raw(server, chat)
    with pytest.raises(TurnConflictError, match="not held any more") as caught:
        await turn.__aexit__(None, None, None)
    error = caught.value
    assert (error.reply, error.expected, error.actual) == ("a", None, None)
    with pytest.raises(TurnConflictError, match="not held any more"):  # again does not help
        await error.turn.save()
    assert raw(server, chat) == left


# What is no use


async def test_what_names_no_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    wrong: Any
    for wrong in (1, [], b"t1", ["t1"]):
        with pytest.raises(TypeError, match="replaces is a Turn or the id of one"):
            chat.turn("q", replaces=wrong)
    for wrong in ("", "a b", "x" * 65):
        with pytest.raises(ValueError, match="turn_id"):
            chat.turn("q", replaces=wrong)


async def test_the_new_turn_has_an_id_of_its_own(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    await chat.append("piece", turn_id="piece", continues=True)
    await fill(chat, 1, start=3)
    before = raw(server, chat)
    for replaces in ((await chat.turns())[1], "t2", "piece"):
        for turn_id in ("t2", "piece", "t3"):
            with pytest.raises(ValueError, match="the new one needs another"):
                await chat.turn("q", replaces=replaces, turn_id=turn_id).__aenter__()
    assert raw(server, chat) == before
