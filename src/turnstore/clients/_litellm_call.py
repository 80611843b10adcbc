"""One call of LiteLLM with a memory, from the caller's arguments to what is kept of the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from litellm import ModelResponse

from turnstore import _json
from turnstore.clients import _anthropic_messages, _calling, _google_contents
from turnstore.clients._calling import Answer, sendable, unstorable
from turnstore.clients._deltas import Json, as_dict, dicts
from turnstore.clients._litellm_folding import ChunkFolding, EventFolding
from turnstore.formats.openai import without_additions

if TYPE_CHECKING:
    from turnstore.clients._endpoints import Endpoint
    from turnstore.turn import AsyncPendingTurn, PendingTurn

# What Google calls the contents that it keeps.
_CACHED: Final = ("cached_content", "cachedContent")

# Words of providers for a reply that failed, which LiteLLM turns into "stop". For others of that
# kind there are the rules of OpenAI's endpoint.
_FAILED: Final = frozenset(
    {
        "finish_reason_unspecified",
        "malformed_function_call",
        "malformed_response",
        "missing_thought_signature",
        "network_error",
        "too_many_tool_calls",
        "unexpected_tool_call",
    }
)

# What is no content of a message.
_BESIDE: Final = ("role", "provider_specific_fields")


class Call(_calling.Call):
    """One call.

    Args:
        endpoint: The rules of what is called.
        arguments: All of the caller's arguments, by name.

    Raises:
        ValueError: An option does not go with a memory.
    """

    def __init__(self, endpoint: Endpoint, arguments: Json) -> None:
        self._endpoint = endpoint
        self._arguments = arguments
        extra: object = arguments.get("extra_body")
        self._extra: Json = dict(cast("Json", extra)) if isinstance(extra, Mapping) else {}
        body = {**arguments, **self._extra}
        self._is_chat = endpoint.format == "openai.chat"
        if self._is_chat:  # LiteLLM hands options of Anthropic's and of Google's on
            _anthropic_messages.refuse(body)
            _google_contents.refuse({name: body[name] for name in _CACHED if name in body})
        self._chunks = ChunkFolding() if self._is_chat else EventFolding()
        super().__init__(
            endpoint.given(body),
            format=endpoint.format,
            read=self._read_chat if self._is_chat else endpoint.read,
            folding=self._chunks,
            model=self._streamed,
            raw="",
        )

    def sending(self, messages: list[Json]) -> Json:
        """Give the arguments for LiteLLM, with these messages in place of the caller's."""
        field = self._endpoint.field
        sent = {**self._arguments, field: sendable(messages)}
        if field in self._extra:
            sent["extra_body"] = {n: value for n, value in self._extra.items() if n != field}
        return sent

    def take(self, chunk: object, stream: object) -> None:
        """Take the next chunk of a stream."""
        try:
            self._chunks.take(chunk, stream)
        except Exception as error:  # noqa: BLE001 - the caller's stream goes on, whatever was sent
            self._fault = error

    def keep_answer(self, turn: PendingTurn | AsyncPendingTurn, answer: Any) -> None:
        """Give a turn the reply in what LiteLLM answered."""
        try:
            reply = as_dict(
                answer.model_dump(exclude_unset=True, serialize_as_any=True, warnings=False)
            )
            if not self._is_chat:
                reply["output"] = _json.plain(answer.output)
        except Exception as error:  # whatever it is, the answer must not be lost
            raise unstorable(error, answer, turn) from error
        self._keep(turn, reply, answer)

    def _streamed(self, **reply: Any) -> object:
        """An object of LiteLLM for a reply that was streamed."""
        if isinstance(self._chunks, EventFolding):
            return self._chunks.response
        try:
            return ModelResponse(**reply)
        except Exception:  # noqa: BLE001 - of a shape that it does not know
            return ModelResponse.model_construct(**reply)

    def _read_chat(self, reply: Json) -> Answer:
        """Read the first choice, by the provider's own word where LiteLLM has another for it."""
        choice = (dicts(reply.get("choices")) or [Json()])[0]
        message = without_additions(as_dict(choice.get("message")), but=("role", "content"))
        choice["message"] = message
        answer = self._endpoint.read({**reply, "choices": [choice]})
        word = as_dict(choice.get("provider_specific_fields")).get("native_finish_reason")
        reason = str(word or choice.get("finish_reason")).lower()
        # Where it knows no better, it puts a refusal there, too.
        parked = as_dict(message.get("provider_specific_fields")).get("refusal")
        unfit = answer.unfit or ("the model refused" if parked else "")
        if not unfit and word:
            unfit = self._endpoint.read({"choices": [{**choice, "finish_reason": reason}]}).unfit
        if not unfit and reason in _FAILED:
            unfit = f"the finish reason is {word}"
        # Of a refusal that was streamed, LiteLLM passes nothing on.
        if not unfit and not any(value for name, value in message.items() if name not in _BESIDE):
            unfit = "the reply is empty"
        if not unfit and choice.get("finish_reason") == "length" and _is_cut(message):
            unfit = "the model was cut off while it thought"
        return answer._replace(unfit=unfit)


def _is_cut(message: Json) -> bool:
    """Whether a message ends in a thought that the provider has not signed."""
    blocks = dicts(message.get("thinking_blocks"))
    signed = not blocks or blocks[-1].get("signature") or blocks[-1].get("data")
    return not signed and not message.get("content") and not message.get("tool_calls")
