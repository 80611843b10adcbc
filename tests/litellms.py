"""What LiteLLM keeps for the whole process, and tests give back: clients, and what it logs.

It is imported where `LITELLM_LOCAL_MODEL_COST_MAP` is set already (tests/conftest.py does that):
LiteLLM asks the network for prices when it is imported, if it is not.
"""

from __future__ import annotations

import inspect
from typing import Any

import litellm
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

litellm.suppress_debug_info = True  # it prints where to ask for help at each error


async def close_clients() -> None:
    """Close the clients that LiteLLM has cached; it makes others when it needs them."""
    await GLOBAL_LOGGING_WORKER.flush()
    await GLOBAL_LOGGING_WORKER.stop()
    cache: Any = litellm.in_memory_llm_clients_cache
    for client in list(cache.cache_dict.values()):
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        if close is not None and inspect.isawaitable(closing := close()):
            await closing
    cache.flush_cache()
