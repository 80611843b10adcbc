"""agno: RedisDb. A turn is a run; like its agent, an append reads the session, then saves both."""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

import uuid
from typing import Any

from agno.db.base import SessionType
from agno.db.redis import RedisDb
from agno.models.message import Message
from agno.run.agent import RunOutput
from agno.session import AgentSession
from base import Subject

_AGENT = "bench"


class Peer(Subject):
    """One database object for all sessions."""

    name = "agno"

    def __init__(self, url: str, limit: int = 0) -> None:
        super().__init__(url, limit)
        self.db = RedisDb(db_url=url, expire=86_400)

    def native(self, turn: Any) -> Any:
        return [Message.from_dict(message) for message in turn]

    def _save(self, key: str, turn: Any, index: int) -> None:
        run = RunOutput(
            run_id=uuid.uuid4().hex, agent_id=_AGENT, session_id=key, messages=list(turn)
        )
        self.db.upsert_run(run, key, run_index=index)

    def fill(self, key: str, turns: list[Any]) -> None:
        self.db.upsert_session(AgentSession(session_id=key, agent_id=_AGENT))
        for index, turn in enumerate(turns):
            self._save(key, turn, index)

    def append(self, key: str, turn: Any) -> None:
        session: Any = self.db.get_session(key, SessionType.AGENT)
        session = session or AgentSession(session_id=key, agent_id=_AGENT)
        self.db.upsert_session(session)
        self._save(key, turn, len(session.runs or ()))

    def _messages(self, key: str) -> Any:
        session: Any = self.db.get_session(key, SessionType.AGENT)
        return session.get_messages(skip_statuses=[])

    def read(self, key: str, count: int) -> Any:
        return self._messages(key)[-count:]

    def texts(self, key: str) -> list[str]:
        return [message.content for message in self._messages(key)]
