"""The files that a check looks at, from disk or from an example in memory."""
import os
import tempfile
from pathlib import Path

SKIPPED_FOLDERS = {"build", "demo_run", "__pycache__"}
KEPT_HIDDEN = {".ci", ".clang-format", ".clang-tidy", ".gitignore"}


class Tree:
    """Text files by their path relative to the root, with '/' between folders."""

    def __init__(self, root, files):
        self.root = Path(root)
        self.files = dict(sorted(files.items()))

    @classmethod
    def of_folder(cls, root):
        files = {}
        for folder, folders, names in os.walk(root):
            top = Path(folder) == Path(root)
            folders[:] = [f for f in folders if (not f.startswith(".") or f in KEPT_HIDDEN)
                          and f != "__pycache__" and not (top and f in SKIPPED_FOLDERS)]
            for name in names:
                if name.startswith(".") and name not in KEPT_HIDDEN:
                    continue
                path = Path(folder) / name
                try:
                    files[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
                except (UnicodeDecodeError, FileNotFoundError):
                    continue  # binary data or a dangling link: nothing to read
        return cls(root, files)

    def matching(self, prefixes=("",), suffixes=("",)):
        """(path, text) of the files below one of the prefixes that end with one of the suffixes."""
        return [(path, text) for path, text in self.files.items()
                if path.startswith(tuple(prefixes)) and path.endswith(tuple(suffixes))]


def self_test(check, examples):
    """Problems of the check itself. An example is (files, expected): a list of words that its problems must
    contain, one per problem, in order; an empty list for an example without problems."""
    problems = []
    for number, (files, expected) in enumerate(examples, start=1):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                target = Path(folder) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            found = check(Tree.of_folder(folder))
        fits = len(found) == len(expected) and all(word in problem for word, problem in zip(expected, found))
        if not fits:
            problems.append(f"self-test {number}: expected {expected}, found {found}")
    if not any(expected for _, expected in examples) or all(expected for _, expected in examples):
        problems.append("self-test: needs both good and bad examples")
    return problems
