from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.begun import another, facts_of, meanwhile
from tests.facts.meaning.kit import new, news

if TYPE_CHECKING:
    from tests.facts.meaning.kit import Kit, Scripted
    from tests.servers.running import Server

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]


async def read(kit: Kit, text: str, *answers: Scripted, **options: Any) -> str:
    """Let Ada say something, read it, and give the id of the operation."""
    await kit.say(text)
    kit.model.answers = list(answers)
    await kit.extraction(**options).extract(kit.chat)
    return (await kit.extraction().operations("ada"))[0].id


async def test_the_log_says_what_each_extraction_did(kit: Kit) -> None:
    paris = await kit.facts.add("ada", "Ada lives in Paris.", slot="home")
    sails = await kit.facts.add("ada", "Ada sails to Paris.")
    numbers = {"Ada lives in Paris.": 0, "Ada sails to Paris.": 1}
    if paris.id > sails.id:
        numbers = {"Ada lives in Paris.": 1, "Ada sails to Paris.": 0}
    await kit.say("I moved to Rome, and still sail to Paris. I bake.")
    kit.model.answers = [
        [
            news("supersedes", numbers["Ada lives in Paris."], "Ada lives in Rome.", slot="home"),
            {"verdict": "duplicate", "of": numbers["Ada sails to Paris."], "turns": [1]},
            new("Ada bakes."),
        ]
    ]
    extraction = kit.extraction()
    done = await extraction.extract(kit.chat)
    (operation,) = await extraction.operations("ada")
    assert (operation.name, operation.undone) == ("extract", False)
    assert set(operation.new) == set(done.new)
    assert (operation.seen, operation.closed) == ((sails.id,), (paris.id,))
    rome = await kit.fact("Ada lives in Rome.")
    assert operation.time >= rome.created
    assert await extraction.operations("bob") == []


async def test_an_undo_leaves_all_as_it_was_before(kit: Kit) -> None:
    end = datetime(2090, 1, 1, tzinfo=UTC)
    await kit.facts.add("ada", "Ada lives in Paris.", slot="home", valid_to=end)
    await kit.facts.add("ada", "Ada sails.", sources=["before"])
    before = sorted(await kit.facts.list("ada"), key=lambda fact: fact.text)
    numbers = {one.text: at for at, one in enumerate(sorted(before, key=lambda one: one.id))}
    operation = await read(
        kit,
        "I moved to Rome in a boat.",
        [
            news("supersedes", numbers["Ada lives in Paris."], "Ada lives in Rome.", slot="home"),
            {"verdict": "duplicate", "of": numbers["Ada sails."], "turns": [1]},
            new("Ada has a boat."),
        ],
        candidates=2,
    )
    undone = await kit.extraction().undo("ada", operation)
    assert (undone.changes, undone.kept) == (4, 0)
    after = sorted(await kit.facts.list("ada", include_closed=True), key=lambda fact: fact.text)
    assert after == before
    log = await kit.extraction().operations("ada")
    assert [(one.name, one.undone) for one in log] == [("undo", False), ("extract", True)]
    hits = await kit.facts.search("ada", "Where does Ada live?", min_score=None, top_k=1)
    assert [hit.fact.text for hit in hits] == ["Ada lives in Paris."]


async def test_what_was_undone_is_not_read_again(kit: Kit) -> None:
    operation = await read(kit, "I sail.", [new("Ada sails.")])
    await kit.extraction().undo("ada", operation)
    assert (await kit.extraction().extract(kit.chat)).turns == 0
    await kit.say("I bake.")
    await kit.chat.rewind()
    assert (await kit.extraction().extract(kit.chat)).turns == 0
    assert await kit.texts() == []


async def test_an_operation_is_undone_once(kit: Kit) -> None:
    operation = await read(kit, "I sail.", [new("Ada sails.")])
    extraction = kit.extraction()
    await extraction.undo("ada", operation)
    (undo, _) = await extraction.operations("ada")
    for identifier in (operation, undo.id):
        with pytest.raises(ValueError, match="undo"):
            await extraction.undo("ada", identifier)
    for odd in ("", "0-1", "x"):
        with pytest.raises(LookupError):
            await extraction.undo("ada", odd)
    with pytest.raises(TypeError):
        await extraction.undo("ada", None)  # type: ignore[arg-type]  # as said
    with pytest.raises(LookupError):
        await extraction.undo("bob", operation)


async def test_what_was_changed_since_stays(kit: Kit) -> None:
    old = await kit.facts.add("ada", "Ada lives in Paris.", slot="home")
    operation = await read(
        kit,
        "I moved to Rome, and bake and paint.",
        [
            news("supersedes", 0, "Ada lives in Rome.", slot="home"),
            new("Ada bakes."),
            new("Ada paints."),
        ],
    )
    ended = datetime(2020, 1, 1, tzinfo=UTC)
    await kit.facts.end("ada", old.id, valid_to=ended)  # by hand, and later
    await kit.facts.update("ada", (await kit.fact("Ada bakes.")).id, pinned=True)
    await kit.facts.forget("ada", (await kit.fact("Ada paints.")).id)
    undone = await kit.extraction().undo("ada", operation)
    assert (undone.changes, undone.kept) == (1, 3)
    assert await kit.texts(include_closed=True) == ["Ada bakes.", "Ada lives in Paris."]
    assert (await kit.fact("Ada lives in Paris.")).valid_to == ended


@pytest.mark.parametrize("how", ["pinned", "heard"])
async def test_what_is_changed_while_an_undo_reads_it_stays(
    kit: Kit, server: Server, prefix: str, engine: str, how: str
) -> None:
    operation = await read(kit, "I sail.", [new("Ada sails.")])
    id_ = (await kit.fact("Ada sails.")).id
    extraction = kit.extraction()
    with another(server, prefix) as store:
        facts = facts_of(store, engine)

        def change() -> None:
            if how == "pinned":
                facts.update("ada", id_, pinned=True)
            else:
                assert facts.add("ada", "Ada sails.", sources=["another-turn"]).duplicate

        # It begins, reads the log, and reads the facts; then it commits.
        await meanwhile(lambda: extraction.undo("ada", operation), extraction, change, 3)
    assert await kit.texts() == ["Ada sails."]


async def test_of_two_changes_only_the_later_one_can_open_a_fact_again(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada lives in Paris.", slot="home")
    first = await read(kit, "Rome.", [news("supersedes", 0, "Ada lives in Rome.", slot="home")])
    second = await read(kit, "Oslo.", [news("supersedes", 0, "Ada lives in Oslo.", slot="home")])
    await kit.extraction().undo("ada", first)
    assert await kit.texts() == ["Ada lives in Oslo.", "Ada lives in Paris."]
    await kit.extraction().undo("ada", second)
    assert await kit.texts() == ["Ada lives in Paris."]


async def test_the_log_goes_with_its_owner(kit: Kit) -> None:
    await read(kit, "I sail.", [new("Ada sails.")])
    await kit.store.erase("ada")
    assert await kit.extraction().operations("ada") == []


async def test_no_text_is_in_the_log(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada lives in Paris.", slot="home")
    await read(kit, "Rome.", [news("supersedes", 0, "Ada lives in Rome.", slot="home")])
    from tests.servers.facade import inner  # noqa: PLC0415 - beside its use
    from turnstore._calls import Call  # noqa: PLC0415 - as above

    keys = inner(kit.facts)._base.ground.owner("ada").keys

    def flow() -> Any:
        return (yield Call("test", (keys.ops,), "xrange", ("-", "+"), writes=False, read=str))

    given = inner(kit.facts)._run(flow())
    log = given if isinstance(given, str) else await given
    assert "closed" in log
    for word in ("Ada", "Paris", "Rome", "home"):
        assert word not in log
