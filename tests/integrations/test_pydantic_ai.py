"""What is particular to pydantic-ai: its capability, and its conversation store."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    Conversation,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RunContext,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import SystemPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from tests.servers.found import servers
from turnstore import AsyncStore, Store
from turnstore.integrations.pydantic_ai import ConversationStore, Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage

    from turnstore import AsyncConversation

pytestmark = [pytest.mark.servers(servers()[0].name), pytest.mark.one_setup]


@pytest.fixture
def store(make_async_store: Callable[..., AsyncStore]) -> AsyncStore:
    return make_async_store()


@pytest.fixture
def chat(store: AsyncStore) -> AsyncConversation:
    return store.conversation("ada")


def model(*replies: Any, seen: list[list[ModelMessage]] | None = None) -> FunctionModel:
    """Give a model that answers with these parts, one after the other."""
    left = list(replies)

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        if seen is not None:
            seen.append(messages)
        said = left.pop(0) if left else "Yes."
        if isinstance(said, ModelResponse):
            return said
        return ModelResponse(parts=[TextPart(said)] if isinstance(said, str) else [said])

    return FunctionModel(answer)


def prompts(messages: list[ModelMessage], kind: str) -> list[Any]:
    return [p.content for m in messages for p in m.parts if p.part_kind == kind]  # type: ignore[union-attr]


class TestMemory:
    async def test_parts_come_back_as_they_were(self, chat: AsyncConversation) -> None:
        odd = ModelResponse(
            parts=[
                ThinkingPart("hm", signature="s/+=", id="i", provider_name="anthropic"),
                TextPart("\x00 \u2028 é", provider_details={"zz": [1.0, 2**70, None]}),
            ],
            provider_details={"x": {"y": None}},
        )
        seen: list[list[ModelMessage]] = []
        agent = Agent(model(odd, seen=seen), capabilities=[Memory(chat)])
        picture = BinaryContent(b"\xff\x00", media_type="application/x-odd")
        first = await agent.run(["Look", picture])
        stored = await chat.read()
        assert ModelMessagesTypeAdapter.validate_python(stored) == first.new_messages()
        await agent.run("And?")
        assert seen[-1][:2] == first.new_messages()

    async def test_the_system_prompt_is_the_agents_of_today(self, chat: AsyncConversation) -> None:
        seen: list[list[ModelMessage]] = []
        for version in ("one", "two", "three"):
            agent = Agent(
                model(seen=seen), system_prompt=f"S {version}", instructions=f"I {version}"
            )
            await agent.run("Hello", capabilities=[Memory(chat)])
            assert prompts(seen[-1], "system-prompt") == [f"S {version}"]
            assert isinstance(seen[-1][0].parts[0], SystemPromptPart)
            told = [one.instructions for one in seen[-1] if isinstance(one, ModelRequest)]
            assert [one for one in told if one] == [f"I {version}"]
        assert "S one" not in str(await chat.read())
        assert "I one" not in str(await chat.read())

    async def test_one_agent_for_all_conversations(self, store: AsyncStore) -> None:
        @dataclass
        class Deps:
            user: str

        def of(ctx: RunContext[Deps]) -> AsyncConversation:
            return store.conversation(ctx.deps.user)

        agent = Agent(TestModel(), deps_type=Deps, capabilities=[Memory[Deps](of)])
        await asyncio.gather(*(agent.run("Hi", deps=Deps(name)) for name in ("ada", "bob")))
        for name in ("ada", "bob"):
            assert len(await store.conversation(name).turns()) == 1

    async def test_structured_output_is_a_whole_turn(self, chat: AsyncConversation) -> None:
        class City(BaseModel):
            name: str

        call = ToolCallPart("final_result", {"name": "Rome"}, tool_call_id="c")
        agent = Agent(model(call, call), output_type=City, capabilities=[Memory(chat)])
        for _ in range(2):
            result = await agent.run("Which city?")
            assert result.output == City(name="Rome")
        assert [len(turn.messages) for turn in await chat.turns()] == [3, 3]

    async def test_deferred_tools_continue_their_turn(self, chat: AsyncConversation) -> None:
        call = ToolCallPart("delete", {"name": "x"}, tool_call_id="c")
        seen: list[list[ModelMessage]] = []
        agent = Agent(
            model(call, "Deleted.", seen=seen),
            output_type=[str, DeferredToolRequests],
            capabilities=[Memory(chat)],
        )

        @agent.tool_plain(requires_approval=True)
        def delete(name: str) -> str:
            return f"{name} is gone"

        asked = await agent.run("Delete x")
        assert isinstance(asked.output, DeferredToolRequests)
        assert len(await chat.turns()) == 1
        done = await agent.run(deferred_tool_results=DeferredToolResults(approvals={"c": True}))
        assert done.output == "Deleted."
        assert prompts(seen[-1], "tool-return") == ["x is gone"]
        (turn,) = await chat.turns()
        assert [message["kind"] for message in turn.messages] == ["request", "response"] * 2
        await agent.run("Thanks")
        assert prompts(seen[-1], "user-prompt") == ["Delete x", "Thanks"]
        assert prompts(seen[-1], "tool-return") == ["x is gone"]

    async def test_what_was_interrupted_is_not_saved(self, chat: AsyncConversation) -> None:
        for reply in (
            ModelResponse(parts=[TextPart("Hel")], finish_reason="error"),
            ModelResponse(parts=[TextPart("Hel")], finish_reason="stop", provider_response_id="r"),
        ):
            agent = Agent(model(reply), capabilities=[Memory(chat)])
            await agent.run("Hello")
            assert await chat.read() == []

    def test_a_sync_conversation_is_refused(self, store: AsyncStore) -> None:
        del store
        with Store.from_url("redis://localhost:1", name="test") as sync:
            chat: Any = sync.conversation("ada")
            with pytest.raises(TypeError, match="AsyncStore"):
                Agent(TestModel(), capabilities=[Memory(chat)]).run_sync("Hi")

    async def test_no_prompt_and_no_open_call(self, chat: AsyncConversation) -> None:
        agent = Agent(model("Yes."), instructions="Say yes.", capabilities=[Memory(chat)])
        assert (await agent.run()).output == "Yes."


class TestConversationStore:
    @pytest.fixture
    def conversations(self, store: AsyncStore) -> ConversationStore:
        return ConversationStore(store)

    async def test_saved_loaded_and_continued(self, conversations: ConversationStore) -> None:
        agent = Agent(TestModel())
        result = await agent.run("One")
        entries = await conversations.save(result, scope="ada")
        assert len(entries) == 2
        name = result.conversation.conversation_id
        loaded = await conversations.load(name, scope="ada")
        assert loaded is not None
        assert loaded == result.conversation
        again = await agent.run("Two", conversation=loaded)
        assert len(await conversations.save(again)) == 2
        known = await conversations.load_entries(name)
        assert known is not None
        assert [entry.message for entry in known] == again.all_messages()
        assert [entry.id for entry in known[:2]] == [entry.id for entry in entries]
        assert [entry.parent_id for entry in known] == [None, *(e.id for e in known[:-1])]
        assert await conversations.read_entry(known[0].id) == known[0]
        for limit in (0, 1, 3, 9):
            part = await conversations.load(name, limit=limit)
            assert part is not None
            assert part.messages == again.all_messages()[max(0, 4 - limit) :]
        assert await conversations.load(name, scope="bob") is None
        assert await conversations.load("nobody") is None

    async def test_many_are_listed_with_few_connections(self, store: AsyncStore) -> None:
        client: Any = store._client
        client.connection_pool.max_connections = 40
        conversations = ConversationStore(store)
        agent = Agent(TestModel())
        saved = [await agent.run(str(number)) for number in range(60)]
        for result in saved:
            await conversations.save(result, scope="ada")
        names = [result.conversation.conversation_id for result in reversed(saved)]
        found = await conversations.list_conversations(scope="ada")
        assert [one.conversation_id for one in found] == names
        some = await conversations.list_conversations(scope="ada", limit=25)
        assert [one.conversation_id for one in some] == names[:25]

    async def test_one_writer_wins(self, conversations: ConversationStore) -> None:
        agent = Agent(TestModel())
        first = await agent.run("One")
        await conversations.save(first)
        name = first.conversation.conversation_id
        loaded = [await conversations.load(name) for _ in range(4)]
        runs = [await agent.run("Two", conversation=one) for one in loaded]
        done = await asyncio.gather(*map(conversations.save, runs), return_exceptions=True)
        assert sorted(isinstance(one, ConversationConflict) for one in done) == [False] + [True] * 3
        after = await conversations.load(name)
        assert after is not None
        assert len(after.messages) == 4
        with pytest.raises(ConversationConflict):
            await conversations.save(Conversation(conversation_id=name))

    async def test_branches(self, conversations: ConversationStore) -> None:
        agent = Agent(TestModel())
        one = await agent.run("One")
        await conversations.save(one)
        two = await agent.run("Two", conversation=one.conversation)
        await conversations.save(two)
        name = one.conversation.conversation_id
        tip = (await conversations.load_entries(name) or [])[-1].id
        back = await conversations.branch(name, at=2, expected_revision=two.conversation.revision)
        assert back.messages == one.all_messages()
        other = await agent.run("Other", conversation=back)
        await conversations.save(other)
        record = await conversations.read_record(name)
        assert record is not None
        assert record.branches == [tip]
        again = await conversations.branch(
            name, from_entry=tip, expected_revision=other.conversation.revision
        )
        assert again.messages == two.all_messages()
        with pytest.raises(ConversationConflict):
            await conversations.branch(name, at=0, expected_revision="old")

    async def test_forks_have_their_own_life(self, conversations: ConversationStore) -> None:
        agent = Agent(TestModel())
        one = await agent.run("One")
        await conversations.save(one, scope="ada")
        two = await agent.run("Two", conversation=one.conversation)
        await conversations.save(two)
        name = one.conversation.conversation_id
        fork = await conversations.fork(name, at=2, new_conversation_id="fork")
        assert fork.messages == one.all_messages()
        nothing = await conversations.fork(name, at=0, new_conversation_id="empty")
        assert nothing.messages == []
        with pytest.raises(ConversationConflict):
            await conversations.fork(name, new_conversation_id="fork")
        await conversations.delete(name)
        assert await conversations.load(name) is None
        kept = await conversations.load("fork", scope="ada")
        assert kept is not None
        assert kept.messages == one.all_messages()
        more = await agent.run("Three", conversation=kept)
        await conversations.save(more)
        record = await conversations.read_record("fork")
        assert record is not None
        assert (record.forked_from, len(await conversations.load_entries("fork") or [])) == (
            name,
            4,
        )
        of_fork = await conversations.fork("fork", at=1, new_conversation_id="second")
        assert of_fork.messages == one.all_messages()[:1]

    async def test_a_fork_that_was_not_finished_is_no_conversation(
        self, conversations: ConversationStore, store: AsyncStore
    ) -> None:
        one = await Agent(TestModel()).run("One")
        await conversations.save(one)
        name = one.conversation.conversation_id
        await store.conversation(f"pydantic_ai.log:{name}").fork("pydantic_ai.log:fork")
        assert await conversations.load("fork") is None
        fork = await conversations.fork(name, new_conversation_id="fork")
        assert fork.messages == one.all_messages()

    async def test_deleted_and_made_again(self, conversations: ConversationStore) -> None:
        agent = Agent(TestModel())
        one = await agent.run("One")
        name = one.conversation.conversation_id
        await conversations.save(one)
        old = await conversations.load(name)
        assert old is not None
        await conversations.delete(name, scope="bob")
        assert await conversations.load(name) is not None
        await conversations.delete(name)
        await conversations.delete(name)
        assert await conversations.list_conversations() == []
        with pytest.raises(ConversationConflict):
            await conversations.save(old)
        await conversations.save(Conversation(messages=one.all_messages(), conversation_id=name))
        again = await conversations.load(name)
        assert again is not None
        assert again.revision != old.revision

    async def test_listed_by_scope_newest_first(self, conversations: ConversationStore) -> None:
        for name, scope in (("a", "ada"), ("b", "ada"), ("c", None), ("a", "ada"), ("d", "bob")):
            known = await conversations.load(name) or Conversation(conversation_id=name)
            await conversations.save(known, scope=scope)

        async def listed(**options: Any) -> list[str]:
            records = await conversations.list_conversations(**options)
            return [record.conversation_id for record in records]

        assert await listed() == ["d", "a", "c", "b"]
        assert await listed(scope="ada") == ["a", "b"]
        assert await listed(scope="ada", limit=1) == ["a"]
        assert await listed(limit=0) == []
        await conversations.delete("a")
        assert await listed(scope="ada", limit=1) == ["b"]
        with pytest.raises(UserError):
            await listed(limit=-1)

    async def test_limits_of_the_store_cut_the_beginning(
        self, make_async_store: Callable[..., AsyncStore]
    ) -> None:
        store = make_async_store(max_messages=9, ttl=timedelta(hours=1))
        conversations, agent = ConversationStore(store), Agent(TestModel())
        conversation: Conversation | None = None
        for n in range(5):
            result = await agent.run(f"number {n}", conversation=conversation)
            conversation = result.conversation
            await conversations.save(conversation)
        assert conversation is not None
        loaded = await conversations.load(conversation.conversation_id)
        assert loaded is not None
        assert prompts(loaded.messages, "user-prompt") == ["number 2", "number 3", "number 4"]
        await conversations.delete(conversation.conversation_id)
        assert await conversations.load(conversation.conversation_id) is None

    async def test_what_is_not_ours_is_not_read(self, conversations: ConversationStore) -> None:
        with pytest.raises(LookupError, match="load_entries"):
            await conversations.read_entry("01a2")
        with pytest.raises(TypeError, match="AsyncStore"):
            ConversationStore(object())  # type: ignore[arg-type]
