"""Every public header compiles by itself, with warnings as errors."""
import concurrent.futures
import os
import subprocess
import tempfile
from pathlib import Path

compiler = "c++"
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Werror"]


def _compile(root, folder, header):
    # Twice: a header without #pragma once fails.
    source = Path(folder) / (header.replace("/", "_") + ".cc")
    source.write_text(f'#include "{header}"\n#include "{header}"\n', encoding="utf-8")
    command = [compiler, *FLAGS, "-I", str(Path(root) / "include"), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None
    error = next((line for line in result.stderr.splitlines() if "error:" in line), result.stderr.strip())
    return f"include/{header} does not compile by itself: {error}"


def check(tree):
    names = [path[len("include/"):] for path, _ in tree.matching(("include/",), (".h",))]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = pool.map(lambda name: _compile(tree.root, folder, name), names)
        return [result for result in results if result]


EXAMPLES = [
    ({"include/nrec/a/a.h": "#pragma once\n#include <vector>\ninline std::vector<int> a() { return {}; }\n"}, []),
    ({"include/nrec/a/a.h": "#pragma once\ninline std::vector<int> a() { return {}; }\n"}, ["nrec/a/a.h does not compile"]),
    ({"include/nrec/a/a.h": "#pragma once\nint a(int unused) ;\ninline int b(int x) { return 1; }\n"}, ["unused parameter"]),
    ({"include/nrec/a/a.h": "struct A {};\n"}, ["redefinition"]),
]
