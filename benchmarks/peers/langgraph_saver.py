"""langgraph-checkpoint-redis: RedisSaver under a graph whose state is its messages."""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

from typing import Any

from base import Subject, langchain_messages
from langgraph.checkpoint.redis import RedisSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from redis import Redis

# Each turn is a checkpoint with all messages, so what it holds grows with the square of the length.
LIMITS = {"memory": (100,)}


class Peer(Subject):
    """One graph for all threads."""

    name = "langgraph RedisSaver"

    def __init__(self, url: str, limit: int = 0) -> None:
        super().__init__(url, limit)
        self.client = Redis.from_url(url)
        saver = RedisSaver(redis_client=self.client)
        saver.setup()
        graph: Any = StateGraph(MessagesState)
        graph.add_node("chat", lambda _: {})
        graph.add_edge(START, "chat")
        graph.add_edge("chat", END)
        self.graph: Any = graph.compile(checkpointer=saver)

    def native(self, turn: Any) -> Any:
        return langchain_messages(turn)

    def append(self, key: str, turn: Any) -> None:
        # copies, because the reducer gives each message an id, and would replace it the next time
        new = [message.model_copy(update={"id": None}) for message in turn]
        config = {"configurable": {"thread_id": key}}
        self.graph.update_state(config, {"messages": new}, as_node="chat")

    def fill(self, key: str, turns: list[Any]) -> None:
        self.append(key, [message for turn in turns for message in turn])

    def read(self, key: str, count: int) -> Any:
        config = {"configurable": {"thread_id": key}}
        return self.graph.get_state(config).values["messages"][-count:]

    def texts(self, key: str) -> list[str]:
        return [message.content for message in self.read(key, 10**6)]

    def close(self) -> None:
        self.client.close()
