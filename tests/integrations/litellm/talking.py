"""How these tests talk to models through LiteLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litellm.llms.custom_llm import CustomLLM
from litellm.router import Router

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from turnstore.testing import ModelServer

Json = dict[str, Any]

OPENAI = "openai/gpt-4o"
CLAUDE = "anthropic/claude-opus-4-5"


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def at(model: ModelServer, name: str = OPENAI) -> Json:
    """The arguments that say which model, and where."""
    url = model.url if name == CLAUDE else model.base_url
    return {"model": name, "api_base": url, "api_key": "none", "max_retries": 0}


def asked(model: ModelServer, *given: Any, name: str = OPENAI, **options: Any) -> Json:
    """The arguments of a call; text is a message of the user."""
    messages = [user(one) if isinstance(one, str) else one for one in given]
    return {**at(model, name), "messages": messages, **options}


def router(*models: Json, **options: Any) -> Router:
    """A Router with a deployment for each of the models, all of them as `m`."""
    deployments = [{"model_name": "m", "litellm_params": one} for one in models]
    made: Router = Router(
        model_list=deployments, **{"num_retries": 0, "disable_cooldowns": True, **options}
    )
    return made


def said(reply: Any) -> str:
    return str(reply.choices[0].message.content)


def text(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


class Scripted(CustomLLM):
    """Streams two words, and then a finish reason if it has one."""

    finish = ""

    def streaming(self, *_: Any, **__: Any) -> Iterator[Any]:
        yield self._piece("Hello")
        yield self._piece(" you")
        if self.finish:
            yield self._piece("", self.finish)

    async def astreaming(  # type: ignore[override]  # declared as what gives one, and used as this
        self, *_: Any, **__: Any
    ) -> AsyncIterator[Any]:
        for piece in self.streaming():
            yield piece

    def _piece(self, content: str, finish: str = "") -> Json:
        return {
            "text": content,
            "is_finished": bool(finish),
            "finish_reason": finish,
            "tool_use": None,
            "usage": None,
            "index": 0,
        }
