"""The rules of Gemini's contents, and what requests and replies become under them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.histories import history, system
from turnstore._compose import compose
from turnstore.clients._google_contents import (
    ReplyFolding,
    given,
    is_continued,
    read,
    results,
    sending,
    together,
)
from turnstore.formats.replies import added
from turnstore.messages import FORMATS, plain_messages

Json = dict[str, Any]
RULES = FORMATS["google.contents"]


def user(*parts: Any) -> Json:
    return {"role": "user", "parts": [_part(part) for part in parts]}


def model(*parts: Any) -> Json:
    return {"role": "model", "parts": [_part(part) for part in parts]}


def _part(part: Any) -> Any:
    return {"text": part} if isinstance(part, str) else part


def call(name: str, **more: Any) -> Json:
    return {"functionCall": {"name": name, "args": {}, **more}}


def result(name: str, **more: Any) -> Json:
    return {"functionResponse": {"name": name, "response": {"result": "1"}, **more}}


def composed(past: list[list[list[Json]]], request: list[Json]) -> Any:
    stored = history(*past, format_="google.contents") if past else history()
    return compose(stored, request, RULES, "raise")


class TestTheFormat:
    def test_texts(self) -> None:
        assert RULES.user("a") == user("a")
        assert RULES.assistant("a") == model("a")
        assert RULES.context("a") == {"role": "system", "parts": [{"text": "a"}]}
        assert RULES.is_instruction(RULES.context("a"))
        assert RULES.is_reply(model("a"))
        assert not RULES.is_reply(user("a"))

    def test_the_text_view_leaves_out_thoughts(self) -> None:
        said = model({"text": "hm", "thought": True}, "a", call("f"), {"text": "b", "x": 1}, "c")
        assert RULES.text(said) == "abc"
        assert RULES.text(user({"inlineData": {"data": "AA=="}})) == ""
        assert RULES.text({"role": "user", "parts": None}) == ""

    def test_calls_and_results_are_known_by_name_and_number(self) -> None:
        """The SDK's own results have no id, also where the calls have one."""
        calls = model(call("f", id="x"), "and", call("g"), call("f"))
        assert RULES.calls(calls) == ["f#1", "g#1", "f#2"]
        assert RULES.results(user(result("f"), result("f", id="y"), result("g"))) == [
            "f#1",
            "f#2",
            "g#1",
        ]
        snake = {"role": "user", "parts": [{"function_response": {"name": "f", "response": {}}}]}
        assert RULES.results(snake) == ["f#1"]
        assert RULES.calls({"role": "model", "parts": [{"function_call": {"name": "f"}}]}) == [
            "f#1"
        ]
        assert RULES.calls(user(call("f"))) == RULES.results(model(result("f"))) == []
        ran = {"executableCode": {"code": "1"}}, {"toolCall": {"id": "1"}}, {"functionCall": None}
        assert RULES.calls(model(*ran)) == []

    def test_what_is_no_message(self) -> None:
        wrongs: list[Json] = [{"role": "user"}, {"parts": []}, {"role": 1, "parts": []}]
        for wrong in [*wrongs, {"role": "user", "parts": "a"}]:
            with pytest.raises(ValueError, match="a role and a list of parts"):
                plain_messages(wrong, RULES)

    def test_an_empty_text_is_not_sent_back(self) -> None:
        signed = {"text": "", "thoughtSignature": "s"}
        assert RULES.outgoing(model("a", "", {}, signed)) == model("a", signed)
        for kept in (model("a", signed), model("")):
            assert RULES.outgoing(kept) is kept

    def test_objects_of_the_sdk(self) -> None:
        dumped = {"role": "model", "parts": [{"text": "a", "thoughtSignature": b"\xff\xfe"}]}
        content: Any = SimpleNamespace(parts=[], model_dump=lambda **_: dumped)
        stored = model({"text": "a", "thoughtSignature": "//4="})
        assert plain_messages([content], RULES) == [stored]
        reply: Any = SimpleNamespace(candidates=[SimpleNamespace(content=content)])
        assert plain_messages(RULES.answer(reply), RULES) == [stored]
        assert RULES.answer(SimpleNamespace(candidates=None)).candidates is None


class TestWhatIsRecognised:
    SAID = model(
        {"text": "hm", "thought": True},
        {"text": "a", "thoughtSignature": "s+/=", "newField": 1},
        "b",
        {"inlineData": {"mimeType": "image/png", "data": "a+/b=="}},
    )
    PAST = (((user("q"), SAID),),)

    @pytest.mark.parametrize(
        "again",
        [
            pytest.param(SAID, id="itself"),
            pytest.param(
                model("ab", {"inline_data": {"mime_type": "image/png", "data": "a-_b"}}),
                id="as an SDK or a caller rebuilds it",
            ),
        ],
    )
    def test_a_message_that_was_rebuilt(self, again: Json) -> None:
        past = [[list(piece) for piece in turn] for turn in self.PAST]
        send, new, continued = composed(past, [user("q"), again, user("r")])
        assert new == [user("r")]
        assert send == [user("q"), self.SAID, user("r")]
        assert continued is None

    def test_one_that_says_something_else_is_new(self) -> None:
        past = [[[user("q"), model("a")]]]
        request = [user("q"), model("b"), user("r")]
        assert composed(past, request).new == request

    def test_results_continue_the_turn_of_their_calls(self) -> None:
        past = [[[user("q"), model(call("f", id="1"), call("f", id="2"))]]]
        request = [user(result("f"), result("f"))]
        send, new, continued = composed(past, request)
        assert (send, new, continued) == ([*past[0][0], *request], request, past[0][0])
        with pytest.raises(ValueError, match="no stored turn waits for it"):
            composed(past, [user(result("g"))])

    def test_an_open_turn_is_left_out(self) -> None:
        past = [[[user("q"), model("a")]], [[user("r"), model(call("f"))]]]
        assert composed(past, [user("s")]).send == [*past[0][0], user("s")]


class TestGiven:
    def test_contents_have_a_role_and_the_names_of_the_api(self) -> None:
        image = {"inlineData": {"mime_type": "image/png", "data": "AA=="}}
        metadata = {"part_metadata": {"my_key": 1}}
        args = {"function_response": {"name": "f", "response": {"my_key": 1}}}
        body = {"contents": [{"parts": [image, metadata, args]}]}
        assert given(body) == [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                    {"partMetadata": {"my_key": 1}},
                    {"functionResponse": {"name": "f", "response": {"my_key": 1}}},
                ],
            }
        ]

    def test_what_belongs_together_is_one_content(self) -> None:
        chunks = [model("a"), model("b", ""), model(call("f"))]
        asked = [user("q"), *chunks, user(result("f")), user(result("g")), user("r"), user("s")]
        assert given({"contents": asked}) == [
            user("q"),
            model("ab", call("f")),
            user(result("f"), result("g")),
            user("r"),
            user("s"),
        ]

    def test_results_of_a_later_request(self) -> None:
        body = {"contents": [user("q"), model(call("f")), user({"function_response": {}})]}
        assert results(body, 1) == [user({"functionResponse": {}})]

    @pytest.mark.parametrize(
        "option",
        [
            {"cachedContent": "cachedContents/1"},
            {"previousInteractionId": "x"},
            {"previous_interaction_id": "x"},
            {"continuationToken": "eA=="},
            {"generationConfig": {"candidateCount": 2}},
            {"generationConfig": {"candidate_count": 0}},
            {"toolConfig": {"function_calling_config": {"stream_function_call_arguments": True}}},
            {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}},
        ],
        ids=str,
    )
    def test_what_does_not_go_together(self, option: Json) -> None:
        with pytest.raises(ValueError, match="Nothing was sent"):
            given({"contents": [user("q")], **option})

    def test_what_does(self) -> None:
        options: Json = {"store": True, "cachedContent": None, "generationConfig": {"topK": 3}}
        options |= {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}
        assert given({"contents": [user("q")], **options}) == [user("q")]
        assert given({"contents": [], "generationConfig": {"candidateCount": 1}}) == []
        assert is_continued({"continuationToken": "x"})

    def test_contents_that_are_no_list(self) -> None:
        wrongs: list[Any] = [None, "text", {"parts": []}]
        for contents in wrongs:
            with pytest.raises(TypeError, match="a list"):
                given({"contents": contents})


class TestSending:
    def test_instructions_go_behind_the_callers_own(self) -> None:
        context = RULES.context("c")
        body = {"contents": [], "systemInstruction": {"role": "user", "parts": [{"text": "own"}]}}
        assert sending(body, [context, user("q")]) == {
            "contents": [user("q")],
            "systemInstruction": {"role": "user", "parts": [{"text": "own"}, {"text": "c"}]},
        }
        assert sending({}, [context, user("q"), context])["systemInstruction"] == {
            "parts": [{"text": "c"}, {"text": "c"}]
        }
        assert sending({"x": 1}, [user("q")]) == {"x": 1, "contents": [user("q")]}

    def test_the_roles_take_turns(self) -> None:
        messages = [user("a"), user("b"), model("c"), model(call("f")), user(result("f"))]
        before = [dict(message) for message in messages]
        assert sending({}, [*messages, user("d")])["contents"] == [
            user("a", "b"),
            model("c", call("f")),
            user(result("f"), "d"),
        ]
        assert messages == before


class TestRead:
    @pytest.mark.parametrize(
        "candidate, why",
        [
            ({"content": model("a"), "finishReason": "STOP"}, ""),
            ({"content": model("a"), "finishReason": "MAX_TOKENS"}, ""),
            ({"content": model(call("f")), "finishReason": "STOP"}, ""),
            ({"content": model(call("f")), "finishReason": "MAX_TOKENS"}, "MAX_TOKENS"),
            ({"content": model(call("f"), "a"), "finishReason": "MAX_TOKENS"}, "MAX_TOKENS"),
            ({"content": model("a", {"executableCode": {}}), "finishReason": "MAX_TOKENS"}, "MAX"),
            ({"content": model({"text": "hm", "thought": True}), "finishReason": "STOP"}, "empty"),
            ({"content": model("", {}), "finishReason": "STOP"}, "empty"),
            ({"content": {"role": "model"}, "finishReason": "STOP"}, "empty"),
            ({"content": None, "finishReason": "STOP"}, "empty"),
            ({"finishReason": "SAFETY"}, "SAFETY"),
            ({"content": model("a"), "finishReason": "RECITATION"}, "RECITATION"),
            ({"content": model("a"), "finishReason": "CONTINUATION"}, "CONTINUATION"),
            ({"content": model("a"), "finishReason": "FINISH_REASON_UNSPECIFIED"}, "UNSPECIFIED"),
            ({"content": model("a"), "finishReason": "THING_OF_2031"}, "2031"),
            ({"content": model("a")}, "finished"),
            ({}, "finished"),
        ],
    )
    def test_which_replies_are_kept(self, candidate: Json, why: str) -> None:
        answer = read({"candidates": [candidate]})
        assert why in answer.unfit
        assert bool(answer.unfit) is bool(why)

    def test_replies_without_a_candidate(self) -> None:
        replies: list[Json] = [{}, *({"candidates": wrong} for wrong in (None, [], ["a"]))]
        for reply in replies:
            assert "finished" in read(reply).unfit
        blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
        assert read(blocked).unfit == "the prompt was blocked: SAFETY"

    def test_what_is_known_of_it(self) -> None:
        reply = {
            "candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1},
            "modelVersion": "m",
            "responseId": "r",
        }
        answer = read(reply)
        assert answer.messages == [{"parts": [{"text": "a"}], "role": "model"}]
        assert answer.meta == {
            "model": "m",
            "finish_reason": "STOP",
            "usage": {"promptTokenCount": 1},
            "response_id": "r",
        }


def folded(*chunks: Json) -> ReplyFolding:
    folding = ReplyFolding()
    for chunk in chunks:
        folding.add(chunk)
    return folding


def chunk(*parts: Any, **candidate: Any) -> Json:
    return {"candidates": [{"content": model(*parts), **candidate}]}


class TestFolding:
    def test_chunks(self) -> None:
        signed = {"text": "", "thoughtSignature": "s"}
        folding = folded(
            chunk({"text": "h", "thought": True}),
            chunk({"text": "m", "thought": True}, "a", index=0),
            {**chunk("b", signed), "usageMetadata": {"totalTokenCount": 1}, "responseId": "r"},
            {},
            {"candidates": []},
            {"candidates": [{"index": 1, "content": model("other"), "finishReason": "SAFETY"}]},
            chunk("c"),
        )
        assert not folding.complete
        folding.add({**chunk("", finishReason="STOP"), "usageMetadata": {"totalTokenCount": 3}})
        folding.add({"candidates": [{"finishReason": None}]})
        assert folding.complete
        assert folding.reply() == {
            "usageMetadata": {"totalTokenCount": 3},
            "responseId": "r",
            "candidates": [
                {
                    "content": model({"text": "hm", "thought": True}, "ab", signed, "c"),
                    "index": 0,
                    "finishReason": "STOP",
                }
            ],
        }

    def test_a_reply_that_is_no_stream_stays_as_it_is(self) -> None:
        whole = chunk("a", "b", "", finishReason="STOP")
        assert folded(whole).reply() == whole
        assert folded(whole).complete

    def test_a_reply_that_was_broken_off_goes_on(self) -> None:
        folding = folded({**chunk("a", finishReason="CONTINUATION"), "usageMetadata": {"n": 1}})
        assert folding.go_on() == {"n": 1}
        assert not folding.complete
        folding.add(chunk("b", finishReason="STOP"))
        assert folding.reply()["candidates"][0]["content"] == model("ab")

    def test_nothing_but_a_block(self) -> None:
        folding = folded({"promptFeedback": {"blockReason": "OTHER"}})
        assert folding.complete
        assert "blocked" in read(folding.reply()).unfit

    def test_texts_are_joined_where_nothing_else_is_in_their_parts(self) -> None:
        odd = [{"text": 1}, {"text": "b", "x": 1}, {"text": "c", "x": 1}, None]
        assert together([{"text": "a"}, *odd, {"text": "d"}]) == [
            {"text": "a"},
            *odd,
            {"text": "d"},
        ]

    def test_usage_adds_up(self) -> None:
        first = {"promptTokenCount": 1, "trafficType": "A", "details": [1]}
        second = {"promptTokenCount": 2, "thoughtsTokenCount": 3, "trafficType": "B"}
        assert added(added({}, first), second) == {
            "promptTokenCount": 3,
            "thoughtsTokenCount": 3,
            "trafficType": "B",
            "details": [1],
        }


def test_a_message_with_the_role_system_is_no_content() -> None:
    assert RULES.is_instruction(system("x"))
