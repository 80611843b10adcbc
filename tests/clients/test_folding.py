"""Streams of many providers, each folded into the message that the same call answers unstreamed."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from tests.clients.streams import Json, chunk, folded, message
from turnstore.clients._folding import ResponseFolding


class TestText:
    def test_pieces_are_joined_and_nulls_kept(self) -> None:
        assert message(
            {"role": "assistant", "content": "", "refusal": None},
            {"content": "Hel"},
            {"content": "lo"},
        ) == {"role": "assistant", "content": "Hello", "refusal": None}

    def test_a_role_in_every_delta_is_said_once(self) -> None:
        deltas = [{"role": "assistant", "content": text} for text in ("a", "b", "")]
        assert message(*deltas) == {"role": "assistant", "content": "ab"}

    @pytest.mark.parametrize("role", [{}, {"role": None}, {"role": ""}])
    def test_a_missing_role_is_the_assistants(self, role: Json) -> None:
        assert message({**role, "content": "a"})["role"] == "assistant"

    def test_equal_pieces_of_text_are_all_kept(self) -> None:
        assert (
            message({"content": "ha"}, {"content": "ha"}, {"content": "haha"})["content"]
            == "hahahaha"
        )

    def test_null_content_beside_a_later_text(self) -> None:
        assert message({"content": None}, {"content": "a"}, {"content": None})["content"] == "a"

    def test_a_character_cut_into_its_two_surrogates(self) -> None:
        assert message({"content": "\ud83d"}, {"content": "\ude00"})["content"] == "\U0001f600"

    def test_a_lone_surrogate_stays(self) -> None:
        assert message({"content": "a\ud83d"}, {"content": "b"})["content"] == "a\ud83db"

    def test_refusal(self) -> None:
        reply = message(
            {"role": "assistant", "content": None}, {"refusal": "I "}, {"refusal": "won't"}
        )
        assert reply == {"role": "assistant", "content": None, "refusal": "I won't"}

    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thoughts_of_2031"])
    def test_reasoning_and_unknown_texts(self, field: str) -> None:
        reply = message(
            {"content": None, field: "Let "}, {field: "me"}, {"content": "Hi", field: None}
        )
        assert reply == {"role": "assistant", "content": "Hi", field: "Let me"}

    def test_groq_says_the_channel_in_every_delta(self) -> None:
        deltas = [{"channel": "analysis", "reasoning": "hm"}, {"channel": "final", "content": "Hi"}]
        assert message(*deltas, {"channel": "final", "content": "!"}) == {
            "role": "assistant",
            "channel": "final",
            "reasoning": "hm",
            "content": "Hi!",
        }

    def test_nothing_said_is_an_empty_text(self) -> None:
        assert message({"role": "assistant"}) == {"role": "assistant", "content": ""}

    def test_other_scalars_take_the_newest_value(self) -> None:
        assert message({"content": "a", "n": 1}, {"n": 2**70})["n"] == 2**70


class TestLists:
    def test_openrouter_reasoning_details_without_positions_are_appended(self) -> None:
        one, two = ({"type": "reasoning.text", "text": text} for text in ("Let", " me"))
        assert message({"reasoning_details": [one]}, {"reasoning_details": [two]}) == {
            "role": "assistant",
            "reasoning_details": [one, two],
            "content": "",
        }

    def test_openrouter_reasoning_details_with_positions_are_merged(self) -> None:
        same = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
        encrypted = {"type": "reasoning.encrypted", "data": "xyz", "index": 0}
        deltas = [
            {"reasoning_details": [detail]}
            for detail in (
                {**same, "text": "Let"},
                {**same, "text": " me"},
                {**same, "signature": "sig"},
                encrypted,
            )
        ]
        assert message(*deltas)["reasoning_details"] == [
            {**same, "text": "Let me", "signature": "sig"},
            encrypted,
        ]

    def test_annotations_are_appended(self) -> None:
        one, two = ({"type": "url_citation", "url_citation": {"url": url}} for url in "ab")
        reply = message({"content": "a", "annotations": [one]}, {"annotations": [two, two]})
        assert reply["annotations"] == [one, two, two]

    def test_mistral_thinking_is_one_part_and_the_text_another(self) -> None:
        def thinking(text: str) -> Json:
            return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}

        reply = message(thinking("Let"), thinking(" me"), {"content": "Hi"}, {"content": "!"})
        assert reply["content"] == [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Let me"}]},
            {"type": "text", "text": "Hi!"},
        ]

    def test_a_text_that_goes_on_as_parts(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "u"}}
        reply = message({"content": ""}, {"content": "Look"}, {"content": [image, image]})
        assert reply["content"] == [{"type": "text", "text": "Look"}, image, image]

    def test_audio(self) -> None:
        reply = message(
            {"content": None, "audio": {"id": "audio_1", "transcript": "Hel"}},
            {"audio": {"id": "audio_1", "transcript": "lo"}},
            {"audio": {"data": "AAAA"}},
            {"audio": {"data": "BBBB", "expires_at": 9}},
        )
        assert reply["audio"] == {
            "id": "audio_1",
            "transcript": "Hello",
            "data": "AAAABBBB",
            "expires_at": 9,
        }


class TestStream:
    def test_azure_begins_with_a_filter_result_and_ends_with_usage(self) -> None:
        filtered = {"hate": {"filtered": False}}
        folding = folded(
            {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "Hi"}, content_filter_results=filtered),
            chunk({}, "stop", content_filter_results={}),
            {"id": "c-1", "model": "m", "choices": [], "usage": {"total_tokens": 3}},
        )
        reply = folding.reply()
        assert folding.complete
        assert reply["choices"] == [
            {
                "index": 0,
                "finish_reason": "stop",
                "content_filter_results": filtered,
                "message": {"role": "assistant", "content": "Hi"},
            }
        ]
        assert (reply["id"], reply["model"], reply["usage"]) == ("c-1", "m", {"total_tokens": 3})
        assert reply["prompt_filter_results"] == [{"prompt_index": 0}]
        assert reply["object"] == "chat.completion"

    def test_choices_from_1_and_out_of_order(self) -> None:
        folding = folded(
            chunk({"content": "b"}, index=2),
            chunk({"content": "a"}, index=1),
            chunk({}, "stop", index=2),
        )
        assert not folding.complete
        folding.add(chunk({}, "stop", index=1))
        assert folding.complete
        assert [one["message"]["content"] for one in folding.reply()["choices"]] == ["a", "b"]

    def test_a_choice_without_a_number(self) -> None:
        folding = folded({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})
        assert folding.reply()["choices"][0]["message"]["content"] == "a"

    def test_a_finish_reason_said_twice_or_unsaid_again(self) -> None:
        folding = folded(chunk({"content": "a"}, "stop"), chunk({}, "stop"), chunk({}, None))
        assert folding.complete
        assert folding.reply()["choices"][0]["finish_reason"] == "stop"

    def test_a_finish_reason_without_a_delta(self) -> None:
        folding = folded(chunk({"content": "a"}), chunk(None, "stop"))
        assert folding.complete

    def test_a_whole_message_in_place_of_deltas(self) -> None:
        whole = {"role": "assistant", "content": "Hi"}
        folding = folded({"choices": [{"index": 0, "message": whole, "finish_reason": "stop"}]})
        assert folding.reply()["choices"][0]["message"] == whole

    def test_perplexity_sends_the_message_so_far_beside_each_delta(self) -> None:
        folding = folded(
            chunk({"content": "a"}, message={"content": "a"}),
            chunk({"content": "b"}, "stop", message={"content": "ab"}),
        )
        assert folding.reply()["choices"][0]["message"]["content"] == "ab"

    def test_log_probabilities_grow(self) -> None:
        folding = folded(
            chunk({"content": "a"}, logprobs={"content": [1], "refusal": None}),
            chunk({"content": "b"}, "stop", logprobs={"content": [2], "refusal": None}),
        )
        assert folding.reply()["choices"][0]["logprobs"] == {"content": [1, 2], "refusal": None}

    @pytest.mark.parametrize(
        "chunks",
        [
            pytest.param([], id="empty"),
            pytest.param([{"choices": []}], id="no choice"),
            pytest.param([{"choices": None}, {}, {"choices": [None]}], id="nothing known"),
            pytest.param([chunk({"content": "a"})], id="cut"),
            pytest.param([chunk({"content": "a"}, "")], id="an empty reason"),
            pytest.param(
                [chunk({"content": "a"}, "error"), {"error": {"code": 502}, "choices": []}],
                id="error",
            ),
        ],
    )
    def test_not_complete(self, chunks: list[Json]) -> None:
        folding = folded(*chunks)
        assert not folding.complete
        folding.reply()

    def test_chunks_are_left_as_they_were(self) -> None:
        chunks = [
            chunk({"content": [{"type": "text", "text": "a"}], "x": {"y": ["z"]}}),
            chunk({"content": [{"type": "text", "text": "b"}], "x": {"y": ["z"]}}, "stop"),
        ]
        before = json.dumps(chunks)
        folded(*chunks).reply()
        assert json.dumps(chunks) == before


class TestResponses:
    item: ClassVar[Json] = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text"}],
    }

    def test_the_completed_response_is_the_reply(self) -> None:
        response = {"id": "r", "status": "completed", "output": [self.item], "x": 2**70}
        folding = ResponseFolding()
        folding.add({"type": "response.created", "response": {"id": "r", "status": "in_progress"}})
        assert not folding.complete
        folding.add({"type": "response.output_text.delta", "delta": "a"})
        folding.add({"type": "response.completed", "response": response})
        assert folding.complete
        assert folding.reply() == response

    def test_an_output_left_out_is_made_of_the_items_done(self) -> None:
        folding = ResponseFolding()
        folding.add(
            {"type": "response.output_item.added", "output_index": 0, "item": {"x": "half"}}
        )
        folding.add({"type": "response.output_item.done", "output_index": 1, "item": {"x": 2}})
        folding.add({"type": "response.output_item.done", "output_index": 0, "item": {"x": 1}})
        folding.add({"type": "response.completed", "response": {"id": "r", "output": []}})
        assert folding.reply() == {"id": "r", "output": [{"x": 1}, {"x": 2}]}

    @pytest.mark.parametrize(
        "last",
        [
            {"type": "response.incomplete", "response": {"status": "incomplete"}},
            {"type": "response.failed", "response": {"status": "failed"}},
            {"type": "error", "message": "overloaded"},
            {"type": "response.output_text.done", "text": "a"},
        ],
    )
    def test_not_complete(self, last: Json) -> None:
        folding = ResponseFolding()
        folding.add({"type": "response.created", "response": {"status": "in_progress"}})
        folding.add(last)
        assert not folding.complete
