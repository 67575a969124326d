"""C++ sources are formatted as .clang-format says. Only the pinned version judges: other versions break lines elsewhere."""
import shutil
import subprocess

VERSION = 14


def _program():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            if f"version {VERSION}." in answer:
                return path
    return None


def available():
    return _program() is not None


def check(tree):
    problems = []
    for path, _ in tree.matching(suffixes=(".h", ".cc")):
        result = subprocess.run([_program(), "--dry-run", "-Werror", path], cwd=tree.root, capture_output=True, text=True,
                                check=False)
        if result.returncode != 0:
            first = result.stderr.splitlines()[0] if result.stderr else "clang-format failed"
            problems.append(f"{first} (clang-format -i {path})")
    return problems


_STYLE = "BasedOnStyle: Google\nColumnLimit: 110\n"
EXAMPLES = [
    ({".clang-format": _STYLE, "src/a/a.cc": "int a(int b) { return b; }\n"}, []),
    ({".clang-format": _STYLE, "src/a/a.cc": "int  a( int b ){ return b; }\n"}, ["src/a/a.cc:1"]),
]
