"""Nothing here runs by default; the modules that need torch are not looked through for doctests."""

collect_ignore = ["compiled_stand_in.py", "tiny_model.py"]
