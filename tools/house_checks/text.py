"""Length of source files, and words that the project does not use."""
import re

MAX_LINES = 400
SOURCE = (".h", ".cc", ".c", ".py", ".cmake", "CMakeLists.txt", "run", "tools/check")

# The classes of one letter keep this file from being found by itself.
UNFINISHED = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X)\b")
LOCAL_PATH = re.compile(r"(?<![\w.$}~-])/(home|root|tmp|work|Users)/")
BUILD_FLAG = re.compile(r"-march[=]native|-ffast[-]math")
BUILD_FILES = ("CMakeLists.txt", ".cmake", "CMakePresets.json", ".cmake.in")


def check_length(tree):
    problems = []
    for path, text in tree.matching(suffixes=SOURCE):
        lines = len(text.splitlines())
        if lines > MAX_LINES:
            problems.append(f"{path}: {lines} lines; at most {MAX_LINES}")
    return problems


def _found(path, text, pattern, rule, comment=None):
    for number, line in enumerate(text.splitlines(), start=1):
        if comment:
            line = line.split(comment)[0]
        match = pattern.search(line)
        if match:
            yield f"{path}:{number}: {match.group(0)}: {rule}"


def check_words(tree):
    problems = []
    for path, text in tree.files.items():
        problems += _found(path, text, UNFINISHED, "finish it or leave it out")
        if path != "run" and "tests/" not in path:
            problems += _found(path, text, LOCAL_PATH, "a path of one machine")
        if path.endswith(BUILD_FILES):
            problems += _found(path, text, BUILD_FLAG, "results would depend on the machine that builds", comment="#")
    return problems


LENGTH_EXAMPLES = [
    ({"src/a/a.cc": "\n" * MAX_LINES, "docs/a.csv": "\n" * 1000}, []),
    ({"src/a/a.cc": "\n" * (MAX_LINES + 1)}, [f"{MAX_LINES + 1} lines"]),
    ({"include/nrec/a/a.h": "\n" * 1000}, ["1000 lines"]),
]
WORDS_EXAMPLES = [
    ({"a.cc": "// to do is to be; /usr/include/x.h; build/tmp/x\n", "src/a/tests/a_test.cc": 'open("/tmp' '/x")\n',
      "CMakeLists.txt": "# never -march" "=native\n", "run": "cd /tmp" "/x\n"}, []),
    ({"a.cc": "int a;  // TO" "DO: finish\n"}, ["a.cc:1: TO" "DO"]),
    ({"a.md": "\nFIX" "ME\n"}, ["a.md:2"]),
    ({"a.py": 'open("/home' '/me/x")\n'}, ["a path of one machine"]),
    ({"a.h": '#include "/root' '/x.h"\n'}, ["a path of one machine"]),
    ({"CMakeLists.txt": "add_compile_options(-march" "=native)\n"}, ["depend on the machine"]),
    ({"cmake/a.cmake": "add_compile_options(-O3 -ffast" "-math)\n"}, ["depend on the machine"]),
]
