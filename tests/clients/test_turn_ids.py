"""A repeated job: a wrapped client with a turn id stores each of its turns once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from openai import OpenAI

from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import Store


def job(store: Store, models: ModelServer) -> None:
    with OpenAI(base_url=models.url, api_key="-", max_retries=0) as base:
        client = store.conversation("ada").wrap(base, turn_id="job-7")
        for text in ("My name is Ada.", "What is my name?"):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])


@pytest.mark.one_setup
def test_a_job_that_runs_again_stores_nothing_twice(make_store: Callable[..., Store]) -> None:
    store = make_store()
    with ModelServer() as models:
        job(store, models)
        job(store, models)
    assert [turn.id for turn in store.conversation("ada").turns()] == ["job-7", "job-7.2"]


@pytest.mark.parametrize("turn_id", ["", "a b", "x" * 60])
def test_what_is_no_id_of_a_job(make_store: Callable[..., Store], turn_id: str) -> None:
    with OpenAI(api_key="-") as base, pytest.raises(ValueError, match="turn_id"):
        make_store().conversation("ada").wrap(base, turn_id=turn_id)
