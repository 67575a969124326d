"""Every public header compiles by itself, with warnings as errors.

A header that some source file includes before anything else is compiled by itself whenever the project is built;
the others are compiled here.
"""
import concurrent.futures
import os
import re
import subprocess
import tempfile
from pathlib import Path

compiler = "c++"
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
FIRST_INCLUDE = re.compile(r'(?:\s*//[^\n]*\n)*\s*#\s*include\s*"(nrec/[^"]+)"')


def _compile(root, folder, header):
    source = Path(folder) / (header.replace("/", "_") + ".cc")
    source.write_text(f'#include "{header}"\n', encoding="utf-8")
    command = [compiler, *FLAGS, "-I", str(Path(root) / "include"), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None
    error = next((line for line in result.stderr.splitlines() if "error:" in line), result.stderr.strip())
    return f"include/{header} does not compile by itself: {error}"


def check(tree):
    headers = tree.matching(("include/",), (".h",))
    problems = [f"{path}: #pragma once is missing" for path, text in headers if "#pragma once\n" not in text]
    first = {match.group(1) for _, text in tree.matching(("src/",), (".cc",)) if (match := FIRST_INCLUDE.match(text))}
    names = [path[len("include/"):] for path, _ in headers]
    names = [name for name in names if name not in first]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        problems += [problem for problem in pool.map(lambda name: _compile(tree.root, folder, name), names) if problem]
    return problems


_GOOD = "#pragma once\n#include <vector>\ninline std::vector<int> a() { return {}; }\n"
_BAD = "#pragma once\ninline std::vector<int> a() { return {}; }\n"
EXAMPLES = [
    ({"include/nrec/a/a.h": _GOOD}, []),
    ({"include/nrec/a/a.h": _BAD, "src/a/a.cc": '// Why.\n\n#include "nrec/a/a.h"\n\n#include <vector>\n'}, []),
    ({"include/nrec/a/a.h": _BAD}, ["nrec/a/a.h does not compile"]),
    ({"include/nrec/a/a.h": _BAD, "src/a/a.cc": '#include <vector>\n#include "nrec/a/a.h"\n'}, ["nrec/a/a.h does not compile"]),
    ({"include/nrec/a/a.h": "#pragma once\ninline int a(int x) { return 1; }\n"}, ["unused parameter"]),
    ({"include/nrec/a/a.h": "struct A {};\n"}, ["#pragma once is missing"]),
]
