"""The settings of hypothesis are those of the other tests of contexts."""

import tests.context.conftest  # noqa: F401 - it loads them
