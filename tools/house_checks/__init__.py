"""The checks of tools/check: each takes a Tree and returns a list of problems, one line each."""
