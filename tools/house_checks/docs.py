"""Documents: room READMEs, docstrings of public headers, links between files, literature keys."""
import posixpath
import re

# --- rooms -------------------------------------------------------------------------------------------------------


def check_rooms(tree):
    rooms = sorted(path.split("/")[1] for path in tree.files if re.fullmatch(r"src/[^/]+/CMakeLists\.txt", path))
    return [f"src/{room}/README.md is missing" for room in rooms if f"src/{room}/README.md" not in tree.files]


# --- docstrings --------------------------------------------------------------------------------------------------

TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:class|struct|enum(?: class| struct)?)\s+\w+[^;]*\{")
FUNCTION = re.compile(r"^[\w:<>,*&\[\]\s~]*?\b[\w:]*\w\s*\(")


def namespace_paragraphs(text):
    """(line number, lines) of the runs of non-blank lines that begin at namespace scope."""
    depth = 0  # of braces that are not a namespace's
    paragraph, start = [], 0
    for number, line in enumerate(text.splitlines() + [""], start=1):
        code = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
        code = re.sub(r"'(?:\\.|[^'\\])'", "''", code).split("//")[0]
        namespace = re.match(r"\s*(?:inline\s+)?namespace\b[^;=]*\{", code) or (depth == 0 and code.strip() == "}")
        if (not line.strip() or namespace) and depth == 0:
            if paragraph:
                yield start, paragraph
            paragraph = []
        elif paragraph or depth == 0:
            if not paragraph:
                start = number
            paragraph.append(line)
        if not namespace:
            depth += code.count("{") - code.count("}")


def check_docstrings(tree):
    """A paragraph at namespace scope that defines a type or declares a function starts with ///.
    Declarations below one docstring without a blank line share it."""
    problems = []
    for path, text in tree.matching(("include/",), (".h",)):
        for start, lines in namespace_paragraphs(text):
            if lines[0].lstrip().startswith(("///", "#", "using ", "static_assert", "extern ")):
                continue
            code = [line for line in lines if not line.lstrip().startswith("//")]
            head = " ".join(line.strip() for line in code[:3])
            if TYPE.match(head) or (FUNCTION.match(head) and not head.startswith(("class ", "struct ", "friend "))):
                problems.append(f"{path}:{start}: no /// docstring above: {code[0].strip()[:60]}")
    return problems


# --- links -------------------------------------------------------------------------------------------------------

LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)")


def _prose(text):
    text = re.sub(r"^(```|~~~).*?^\1", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def check_links(tree):
    folders = {posixpath.dirname(path) for path in tree.files}
    folders |= {folder[:i] for folder in folders for i, letter in enumerate(folder) if letter == "/"}
    problems = []
    for path, text in tree.matching(suffixes=(".md",)):
        prose = _prose(text)
        for match in LINK.finditer(prose):
            target = match.group(1).split("#")[0]
            if not target or re.match(r"[a-z]+:", match.group(1)):
                continue
            resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            exists = resolved in tree.files or resolved in folders or (tree.root / resolved).exists()
            if not exists or resolved.startswith(".."):
                line = prose.count("\n", 0, match.start()) + 1
                problems.append(f"{path}:{line}: the link to {target} leads nowhere")
    return problems


# --- references --------------------------------------------------------------------------------------------------

CITATION = re.compile(r"\[((?:[A-Z][A-Za-z]+[0-9]{4}[a-z]?)(?:[,;][^\]\n]*)?)\]")
KEY = re.compile(r"(?:^|;)\s*([A-Z][A-Za-z]+[0-9]{4}[a-z]?)\b")
BIBLIOGRAPHY = "docs/references.bib"


def check_references(tree):
    known = re.findall(r"^@\w+\{\s*([^,\s]+)\s*,", tree.files.get(BIBLIOGRAPHY, ""), flags=re.MULTILINE)
    problems = [f"{BIBLIOGRAPHY}: {key} is there twice" for key in sorted({k for k in known if known.count(k) > 1})]
    sources = tree.matching(("include/", "src/", "apps/", "docs/"), (".h", ".cc", ".md"))
    for path, text in sources:
        for match in CITATION.finditer(text):
            for key in KEY.findall(match.group(1)):
                if key not in known:
                    line = text.count("\n", 0, match.start()) + 1
                    problems.append(f"{path}:{line}: [{key}] is not in {BIBLIOGRAPHY}")
    return problems


# --- examples of the self-test -----------------------------------------------------------------------------------

ROOMS_EXAMPLES = [
    ({"src/io/CMakeLists.txt": "nrec_room(io)\n", "src/io/README.md": "# io\n", "src/LAYERS": "0 io\n"}, []),
    ({"src/io/CMakeLists.txt": "nrec_room(io)\n"}, ["src/io/README.md is missing"]),
]
_HEADER = "#pragma once\n\nnamespace nrec {\n\n%s\n\n}  // namespace nrec\n"
DOCSTRINGS_EXAMPLES = [
    ({"include/nrec/a/a.h": _HEADER % "/// The sum.\nint a(int b,\n      int c);\nint d();"}, []),
    ({"include/nrec/a/a.h": _HEADER % "class Later;\n\nusing F = int (*)(int);\n\n/// A.\nstruct A {\n  int b();\n\n  int c();\n};"}, []),
    ({"include/nrec/a/a.h": _HEADER % "/// A.\nenum class A { b, c };\n/// Its name.\nconst char* name(A a);"}, []),
    ({"src/a/a.h": _HEADER % "int a();"}, []),
    ({"include/nrec/a/a.h": _HEADER % "int a(int b);"}, ["a.h:5: no /// docstring above: int a(int b);"]),
    ({"include/nrec/a/a.h": _HEADER % "// Plain comment.\nstd::vector<std::pair<int, int>> a(\n    int b);"}, ["std::vector"]),
    ({"include/nrec/a/a.h": _HEADER % "class A : public B {\n public:\n  int c() { return 1; }\n};"}, ["class A"]),
    ({"include/nrec/a/a.h": _HEADER % "/// A.\nstruct A {\n\n  int b;\n};\n\ntemplate <class T>\nstruct C {\n};"}, ["template"]),
    ({"include/nrec/a/a.h": _HEADER % "enum class A { b, c };\n/// Its name.\nconst char* name(A a);"}, ["enum class A"]),
]
LINKS_EXAMPLES = [
    ({"README.md": "[a](docs/a.md#part) [web](https://example.org/x.md) [here](#part) `[x](y)`\n```\n[x](y)\n```\n[d](docs)\n",
      "docs/a.md": "[up](../README.md)\n"}, []),
    ({"README.md": "one\n[a](docs/b.md)\n"}, ["README.md:2: the link to docs/b.md"]),
    ({"docs/a.md": "[up](README.md)\n", "README.md": ""}, ["the link to README.md"]),
    ({"docs/a.md": "[out](../../README.md)\n"}, ["leads nowhere"]),
]
_BIB = "@article{Able2001,\n  title = {A}\n}\n"
REFERENCES_EXAMPLES = [
    ({BIBLIOGRAPHY: _BIB, "include/nrec/a/a.h": "/// Source   [Able2001, eq. 7-9], x[i] y[N, D]\n"}, []),
    ({BIBLIOGRAPHY: _BIB, "include/nrec/a/a.h": "\n/// Source   [Baker2002, eq. 1]\n"}, ["a.h:2: [Baker2002]"]),
    ({BIBLIOGRAPHY: _BIB, "src/a/a.cc": "// [Able2001; Cane2003]\n"}, ["[Cane2003]"]),
    ({"docs/a.md": "[Able2001]\n"}, ["[Able2001]"]),
    ({BIBLIOGRAPHY: _BIB + _BIB}, ["Able2001 is there twice"]),
]
