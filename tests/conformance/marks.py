"""Where the suite runs: what an adapter does hardly depends on the server, so one is enough."""

from __future__ import annotations

import pytest

from tests.servers.found import servers

ONE_SERVER = [pytest.mark.servers(servers()[0].name), pytest.mark.one_setup]
