"""Nothing here runs by default; the modules that need torch are not looked through for doctests."""

import pytest

pytest.register_assert_rewrite("tests.gpu.loop_checks")
collect_ignore = ["compiled_stand_in.py", "loop_checks.py", "tiny_model.py"]
