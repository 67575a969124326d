"""A room includes only rooms of a lower level (src/LAYERS), or itself; tests may include any room."""
import re

# Headers directly in include/nrec belong to no room: they are for users' programs in C.
INCLUDE = re.compile(r'^\s*#\s*include\s*"(?!nrec/[a-z0-9_]+\.h")(?:(nrec)/)?([a-z0-9_]+)/', re.MULTILINE)


def read_levels(text):
    levels = {}
    for line in text.splitlines():
        words = line.split()
        if words and words[0].isdigit():
            for room in words[1:]:
                levels[room] = int(words[0])
    return levels


def room_of(path):
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ["include", "nrec"] and len(parts) > 3:
        return parts[2]
    return None


def check(tree):
    if "src/LAYERS" not in tree.files:
        return ["src/LAYERS is missing"]
    levels = read_levels(tree.files["src/LAYERS"])
    problems = []
    unknown = sorted({room_of(path) for path, _ in tree.matching(("src/", "include/nrec/"))} - {None} - set(levels))
    problems += [f"src/LAYERS does not name the room {room}" for room in unknown]
    for path, text in tree.matching(("src/", "include/nrec/"), (".h", ".cc")):
        room = room_of(path)
        if room not in levels:
            continue
        for match in INCLUDE.finditer(text):
            public, other = match.groups()
            line = text.count("\n", 0, match.start(2)) + 1
            if path.startswith("include/") and not public:
                problems.append(f"{path}:{line}: a public header includes the private header of {other}")
            elif other not in levels:
                problems.append(f"{path}:{line}: includes {other}, which src/LAYERS does not name")
            elif other != room and levels[other] >= levels[room] and "/tests/" not in path:
                problems.append(f"{path}:{line}: {room} (level {levels[room]}) includes {other} (level {levels[other]}); "
                                "a room includes only rooms of a lower level")
    return problems


_LAYERS = "# level rooms\n0 core\n1 io kernels\n2 priors\n"
EXAMPLES = [
    ({"src/LAYERS": _LAYERS, "src/priors/a.cc": '#include <vector>\n#include "nrec/core/a.h"\n#include "priors/b.h"\n',
      "src/priors/tests/a_test.cc": '#include "priors/b.h"\n', "include/nrec/priors/p.h": '#include "nrec/core/a.h"\n'}, []),
    ({"src/LAYERS": _LAYERS, "src/core/tests/a_test.cc": '#include "nrec/priors/p.h"\n'}, []),
    ({"src/LAYERS": _LAYERS, "src/core/a.cc": '#include "nrec/c_interface.h"\n'}, []),
    ({"src/LAYERS": _LAYERS, "src/core/a.cc": '#include "nrec/priors/p.h"\n'}, ["core (level 0) includes priors"]),
    ({"src/LAYERS": _LAYERS, "src/io/a.cc": '\n#include "kernels/p.h"\n'}, ["src/io/a.cc:2: io (level 1)"]),
    ({"src/LAYERS": _LAYERS, "include/nrec/core/a.h": '#include "nrec/io/p.h"\n'}, ["core (level 0) includes io"]),
    ({"src/LAYERS": _LAYERS, "include/nrec/core/a.h": '#include "core/p.h"\n'}, ["private header"]),
    ({"src/LAYERS": _LAYERS, "src/attic/a.cc": "int a;\n"}, ["does not name the room attic"]),
    ({"src/LAYERS": _LAYERS, "src/io/a.cc": '#include "attic/p.h"\n'}, ["includes attic"]),
    ({"src/io/a.cc": "int a;\n"}, ["src/LAYERS is missing"]),
]
