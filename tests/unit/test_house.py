"""The house rules that no linter knows: who imports whom, where statements live, what may stand in the tree."""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from graphmem.settings import Settings

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("graphmem", "backends", "cypher") for path in ROOT.glob(f"{folder}/**/*.py"))
# found by what they plug into, and imported by nobody here
PLUG_INS = {"ipykernel", "neo4j-rust-ext"}

# A module imports from its own layer or an earlier one; the longest prefix decides. Each package of services has a
# layer of its own, so that no two of them can import each other.
_ORDER = (
    ("errors", "models", "ontology", "process", "text", "timed_calls", "trust"),
    ("protocols",),
    ("telemetry",),
    ("background", "inputs", "messages", "output_files", "registry", "results", "settings"),
    ("llm",),
    ("embed",),
    ("index",),
    ("vectors",),
    ("inference",),
    ("recall",),
    ("ingest",),
    ("upkeep",),
    ("migrate",),
    ("communities",),
    ("search",),
    ("visualize",),
    ("factory",),
    ("diagnostics",),
    ("engine",),
    ("worker",),
    ("memory",),
    ("",),
    ("testing", "adapters", "__main__"),
)
LAYERS = {f"graphmem.{name}".rstrip("."): layer for layer, names in enumerate(_ORDER) for name in names}
FOR_BACKENDS = {"graphmem.models", "graphmem.protocols", "graphmem.errors", "graphmem_cypher"}
FOLDERS = {".ci", "backends", "cypher", "docker", "docs", "graphmem", "notebooks", "tests"}
FILES = {
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "pyproject.toml",
    "demo.lock",
    "mkdocs.yml",
    "requirements.lock",
}
TEST_FOLDERS = {"unit", "conformance", "integration", "e2e", "bench", "data"}


def module_of(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] in {"backends", "cypher"} else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(path: Path) -> list[str]:
    parts = module_of(path).split(".")
    return parts if path.name == "__init__.py" else parts[:-1]


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return the syntax tree of a file, node by node."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


@cache
def imports_of(path: Path) -> list[str]:
    """Return every module that a file imports anywhere: lazily and for type checking too."""
    return list(_imports_of(path))


def _imports_of(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = package_of(path)
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{name}.{alias.name}"
                yield full if full in MODULES else name


MODULES = {module_of(path): path for path in SOURCES}
LAYERED = sorted(name for name in MODULES if name.split(".")[0] == "graphmem")
BACKENDS = sorted(name for name in MODULES if name.split(".")[0] != "graphmem")
BACKEND_PACKAGES = {name.split(".")[0] for name in BACKENDS}


def layer_of(module: str) -> int | None:
    """Return the layer of a module of graphmem, None if it has none yet."""
    if module == "graphmem":
        return LAYERS[module]
    fitting = [prefix for prefix in LAYERS if prefix != "graphmem" and f"{module}.".startswith(f"{prefix}.")]
    return LAYERS[max(fitting, key=len)] if fitting else None


@pytest.mark.parametrize("module", LAYERED)
def test_module_imports_only_from_its_layer_or_an_earlier_one(module: str) -> None:
    own = layer_of(module)
    assert own is not None, f"{module} has no layer: give it one in {Path(__file__).name}"
    wrong = [
        name
        for name in imports_of(MODULES[module])
        if name.split(".")[0] == "graphmem" and name != module and (layer_of(name) or 0) > own
    ]
    assert wrong == []


@pytest.mark.parametrize("module", [name for name in LAYERED if not name.startswith("graphmem.testing")])
def test_module_of_the_platform_imports_no_backend(module: str) -> None:
    assert [name for name in imports_of(MODULES[module]) if name.split(".")[0] in BACKEND_PACKAGES] == []


@pytest.mark.parametrize("module", [name for name in LAYERED if layer_of(name) != LAYERS["graphmem.adapters"]])
def test_module_below_the_adapters_imports_no_adapter(module: str) -> None:
    assert [name for name in imports_of(MODULES[module]) if name.startswith("graphmem.adapters")] == []


@pytest.mark.parametrize("module", BACKENDS)
def test_backend_imports_only_models_protocols_and_errors(module: str) -> None:
    own = module.split(".")[0]
    others = {"graphmem", *BACKEND_PACKAGES} - {own}
    used = {name for name in imports_of(MODULES[module]) if name.split(".")[0] in others}
    assert used <= FOR_BACKENDS


def writes_of_facts(path: Path) -> list[int]:
    """Return the lines where a store's `write` gets changes that may end, change or remove facts."""
    found: list[int] = []
    for call in (node for node in nodes_of(path) if isinstance(node, ast.Call)):
        if len(call.args) != 2 or not ast.unparse(call.func).endswith("backend.write"):
            continue
        changes = call.args[1]
        names = {keyword.arg for keyword in changes.keywords} if isinstance(changes, ast.Call) else {None}
        harmless = {"results", "job_states", "communities", "memberships", "recalls", "entities"}
        harmless |= {"episode_ends", "episode_expiries"}
        found += [call.lineno] if names - harmless else []
    return found


def test_facts_are_written_where_inferred_ones_follow_their_premises() -> None:
    named = {module: writes_of_facts(path) for module, path in MODULES.items() if module in LAYERED}
    found = {module for module, lines in named.items() if lines and not module.startswith("graphmem.testing")}
    # the other two write mentions only, and memberships that are built before the call
    assert found == {"graphmem.inference.premises", "graphmem.upkeep.unmerge", "graphmem.communities.assignment"}


def test_import_rules_see_lazy_relative_and_type_checking_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "graphmem" / "recall" / "probe.py"
    path.parent.mkdir(parents=True)
    path.write_text("def f():\n  from ..adapters.cli import main\nif TYPE_CHECKING:\n  import graphmem_sqlite\n")
    assert set(imports_of(path)) == {"graphmem.adapters.cli", "graphmem_sqlite"}


# Dependencies


@pytest.mark.slow
@pytest.mark.slow  # it reads what all installed distributions contain
def test_every_declared_dependency_is_used() -> None:
    used = imported_roots() | named_in_strings()  # spaCy loads its model by name
    assert sorted(name for name, modules in declared().items() if not modules & used and name not in PLUG_INS) == []


def test_every_imported_library_is_declared() -> None:
    ours = {"graphmem", *BACKEND_PACKAGES, *sys.stdlib_module_names}
    known = {module for modules in declared().values() for module in modules}
    assert sorted(imported_roots() - ours - known) == []


def declared() -> dict[str, set[str]]:
    """Return the distributions that the product, its extras and the notebooks ask for, with the modules of each."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = settings["project"]
    extras = itertools.chain(*project["optional-dependencies"].values())
    asked = [*project["dependencies"], *extras, *settings["dependency-groups"]["notebook"]]
    names = {re.split(r"[^\w.-]", line)[0].lower() for line in asked} - {"graphmem"}
    modules: dict[str, set[str]] = {name: set() for name in names}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            if (name := distribution.lower().replace("_", "-")) in modules:
                modules[name].add(module)
    return modules


def imported_roots() -> set[str]:
    """Return the top-level modules that the sources and the notebooks import."""
    names = [name for path in SOURCES for name in imports_of(path)]
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        nodes = list(ast.walk(ast.parse(code)))
        names += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in names}


def named_in_strings() -> set[str]:
    nodes = (node for path in SOURCES for node in nodes_of(path))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_no_docstring_is_a_clause_that_begins_with_what() -> None:
    texts = [
        (name, node.value.value)
        for name, path in MODULES.items()
        for node in nodes_of(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    assert [(name, text[:80]) for name, text in texts if text.startswith("What ")] == []


# Statements: written out as constants or in files, never put together from pieces while running.

SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH|CREATE|DROP|ALTER|PRAGMA|ATTACH|VACUUM|MATCH|MERGE|UNWIND|CALL)\s"
)
RUNNERS = {"execute", "executemany", "executescript", "execute_query", "run"}


def is_built(node: ast.AST) -> bool:
    """Say whether an expression puts a string together from parts of which one isn't a literal."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"format", "format_map", "join", "replace"}
    )


def first_words(node: ast.AST) -> str:
    """Return the literal that a built string starts with, "" if it starts with none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[first, *_]):
            return first_words(first)
        case ast.BinOp(left=left):
            return first_words(left)
        case ast.Call(func=ast.Attribute(value=value)):
            return first_words(value)
        case _:
            return ""


def built_statements(tree: ast.Module) -> list[int]:
    """Return the lines on which a function builds a statement, or runs one that was built."""
    lines: set[int] = set()
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        nodes = list(ast.walk(function))
        built = {
            target.id
            for node in nodes
            if isinstance(node, (ast.Assign, ast.AugAssign)) and is_built(node.value)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for node in nodes:
            if is_built(node) and SQL.match(first_words(node)):
                lines.add(node.lineno)  # type: ignore[attr-defined]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RUNNERS:
                lines |= {
                    arg.lineno
                    for arg in node.args[:1]
                    if is_built(arg) or (isinstance(arg, ast.Name) and arg.id in built)
                }
    return sorted(lines)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_module_builds_no_statement_from_strings(module: str) -> None:
    assert built_statements(ast.parse(MODULES[module].read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        'db.execute(f"SELECT * FROM {table}")',
        'db.execute("SELECT * FROM " + table)',
        'db.execute("DELETE FROM %s" % table)',
        'db.executemany("UPDATE {} SET a = 1".format(table), rows)',
        'session.run(f"MATCH (n:{label}) RETURN n")',
        'query = f"SELECT * FROM {table}"',
        'where = " AND ".join(parts); db.execute(where)',
    ],
)
def test_scan_finds_a_statement_built_from_strings(line: str) -> None:
    assert built_statements(ast.parse(f"def f(db, table):\n  {line}")) == [2]


def test_scan_lets_constants_and_parameters_pass() -> None:
    text = 'ALL = f"SELECT {COLUMNS} FROM edge"\ndef f(db, id):\n  return db.execute(ALL, (f"{id}%",))'
    assert built_statements(ast.parse(text)) == []


# Files: `graphmem.output_files` decides whether a path that a user names may be written.

WRITERS = {
    "graphmem.output_files",
    "graphmem.adapters.cli.session",  # the null device
    "graphmem.adapters.cli.health",  # removes the health file that it wrote
    "graphmem.adapters.mcp.keys",  # the lock beside a file of keys
    "graphmem.ingest.extract.recorded",  # appends to a file that `require_appendable` accepts
    "graphmem.vectors.edge",  # a folder of an index
    "graphmem_sqlite.connection",
    "graphmem_sqlite.file",  # the store itself, inspected before
}
CHANGING = {
    *("write_text", "write_bytes", "touch", "unlink", "rename", "symlink_to", "hardlink_to", "rmtree"),
    *("mkstemp", "NamedTemporaryFile", "copyfile", "copy2", "copytree", "savefig", "tofile", "FileHandler"),
}
MODE = re.compile(r"(?=.*[wax+])[rwaxbt+]+")


def writes_of_files(nodes: list[ast.AST]) -> list[int]:
    """Return the lines of calls that write, rename or remove files."""
    return [node.lineno for node in nodes if isinstance(node, ast.Call) and writes_a_file(node)]


def writes_a_file(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    last = name.rpartition(".")[2]
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if last in {"open", "fdopen"}:
        modes = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        flags = {node.attr for a in arguments for node in ast.walk(a) if isinstance(node, ast.Attribute)}
        return any(map(MODE.fullmatch, modes)) or bool(flags & {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"})
    if last == "replace":  # of a path: texts are replaced by two arguments, fields by keywords
        return name == "os.replace" or (len(call.args) == 1 and not call.keywords)
    return last in CHANGING or name in {"os.remove", "os.truncate", "shutil.move", "shutil.copy", "sqlite3.connect"}


def test_files_are_written_where_it_is_decided_whether_they_may_be_replaced() -> None:
    found = {module: writes_of_files(nodes_of(path)) for module, path in MODULES.items()}
    assert {name for name, lines in found.items() if lines and not name.startswith("graphmem.testing")} == WRITERS


@pytest.mark.parametrize(
    "line",
    [
        'open(path, "w")',
        'path.open("ab")',
        'gzip.open(path, mode="xt")',
        "os.open(path, os.O_RDWR | os.O_CREAT)",
        'path.write_text("x")',
        "part.replace(path)",
        "os.replace(part, path)",
        "path.unlink(missing_ok=True)",
        "shutil.rmtree(path)",
    ],
)
def test_scan_finds_what_writes_a_file(line: str) -> None:
    assert writes_of_files(list(ast.walk(ast.parse(line)))) == [1]


def test_scan_lets_reading_and_other_replacements_pass() -> None:
    text = (
        'path.open("rb"); open(path); os.open(path, os.O_RDONLY); GraphMemory.open("memory://")\n'
        'text.replace("a", "b"); replace(row, a=1); moment.replace(tzinfo=UTC)'
    )
    assert writes_of_files(list(ast.walk(ast.parse(text)))) == []


# Settings


def settings_read() -> set[str]:
    """Return every attribute that a module other than settings.py reads from something named …settings."""
    found: set[str] = set()
    for path in SOURCES:
        if module_of(path) == "graphmem.settings":
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute):
                match node.value:
                    case ast.Name(id=owner) | ast.Attribute(attr=owner) if owner.endswith("settings"):
                        found.add(node.attr)
                    case _:
                        pass
    return found


def test_every_setting_is_read_somewhere() -> None:
    assert sorted(set(Settings.model_fields) - settings_read()) == []


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


# The tree


def tracked() -> list[Path]:
    """Return the files under version control and those that would be; skip outside of a checkout."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


# In pieces, so that this file isn't its own first finding.
FOREIGN = re.compile(
    "|".join(
        [
            r"(?<![\w.])/(?:" + "|".join(["work", "root", "Users", "home/(?!you/)"]) + r")\b/?\w",
            r"(?:"
            + "|".join(["pypi", "pythonhosted", "npmjs", "crates", "golang", "maven", "debian"])
            + r")\.(?:org|io|com)\b",
        ]
    )
)


def test_tree_names_no_path_of_a_machine_and_no_registry() -> None:
    found: list[str] = []
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if hit := FOREIGN.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {hit[0]}")
    assert found == []


@pytest.mark.parametrize("text", ["cd /" + "work/main", "see /" + "Users/ann/x", "https://" + "pypi" + ".org/simple"])
def test_search_for_foreign_names_finds_them(text: str) -> None:
    assert FOREIGN.search(text)


def test_top_level_holds_only_what_the_design_names() -> None:
    tops = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert tops - FOLDERS - FILES == set()


def test_test_folders_mirror_the_house() -> None:
    tests = [path.relative_to(ROOT) for path in tracked() if path.is_relative_to(ROOT / "tests")]
    assert {path.parts[1] for path in tests if len(path.parts) > 2} <= TEST_FOLDERS
    units = {path.parent.relative_to("tests/unit") for path in tests if path.parts[1] == "unit"}
    assert [str(u) for u in units if not ((ROOT / "graphmem" / u).is_dir() or (ROOT / "backends" / u).is_dir())] == []


def test_packages_say_that_they_are_typed() -> None:
    packages = [
        path.parent for path in SOURCES if path.name == "__init__.py" and not (path.parents[1] / "__init__.py").exists()
    ]
    assert [str(p.relative_to(ROOT)) for p in packages if not (p / "py.typed").is_file()] == []


# Words that were replaced before the first release, and spellings and phrases that texts do without.
OUT = re.compile(
    r"\b(RecallIndex|NamedThing|IndexLook|IndexNews|gainsays|outweighs|graphmem\.rag|[Vv]isualis\w+|[Ss]ummaris\w+|"
    r"[Nn]ormalis\w+|[Nn]eighbour\w*|anew)\b|behind (?:the caller's|your) back|\"\"\"Tell whether"
)


@pytest.mark.parametrize("folder", ["graphmem", "backends", "cypher", "docs"])
def test_words_that_are_out_stay_out(folder: str) -> None:
    paths = [path for kind in ("py", "md", "cypher", "sql") for path in (ROOT / folder).rglob(f"*.{kind}")]
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}" for path in paths for match in OUT.finditer(path.read_text("utf-8"))
    }
    assert paths
    assert found == set()


def test_a_word_that_is_out_is_found() -> None:
    assert OUT.search('"""Tell whether it is normalised."""')
    assert not OUT.search('"""Return whether it is normalized; another neighbor."""')


COUNT = re.compile(
    r"\} (?:new |more )?"
    r"(?:episodes|facts|entities|mentions|messages|files|turns|items|rows|members|sessions|results|days)\b"
)


def test_the_noun_of_a_printed_count_agrees_with_it() -> None:
    """`graphmem.text.counted` says "1 fact"."""
    lines = ((path, line) for path in SOURCES for line in path.read_text("utf-8").splitlines())
    assert [(path.name, line) for path, line in lines if COUNT.search(line)] == []


# Formats of the data of benchmarks, which the product doesn't know

DATA_SETS = ("locomo", "musique")
MARK = re.compile(r"(?=.*[A-Za-z]).*[^A-Za-z].*", re.DOTALL)  # a plain word may be the name of any field


def marks_in(nodes: list[ast.stmt]) -> set[str]:
    """Return the literals of some statements, without docstrings, that are longer than three characters and no word."""
    found = [node for statement in nodes for node in ast.walk(statement)]
    docs = {id(node.value) for node in found if isinstance(node, ast.Expr)}
    texts = (n.value for n in found if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs)
    return {text for text in map(str.strip, texts) if len(text) > 3 and MARK.fullmatch(text)}


def marks_of_benchmarks() -> set[str]:
    """Return the literals by which the readers of the data sets take their files apart."""
    readers = (ast.parse((ROOT / "tests" / "bench" / f"{name}.py").read_text("utf-8")) for name in DATA_SETS)
    statements = (node for tree in readers for node in tree.body)
    return marks_in([n for n in statements if isinstance(n, ast.Assign) or getattr(n, "name", "main") != "main"])


def share_a_mark(one: str, other: str) -> bool:
    """Return whether one literal is the other or a part of it that no letter, digit or underscore continues."""
    short, long = sorted((one, other), key=len)
    return short in long and bool(re.search(rf"(?<!\w){re.escape(short)}(?!\w)", long))


def test_product_knows_no_format_of_a_benchmark() -> None:
    marks = marks_of_benchmarks()
    literals = {text: path for path in SOURCES for text in marks_in(ast.parse(path.read_text("utf-8")).body)}
    assert [(str(literals[t].relative_to(ROOT)), t) for t in literals for mark in marks if share_a_mark(t, mark)] == []


@pytest.mark.parametrize("name", DATA_SETS)
def test_product_names_no_data_set(name: str) -> None:
    assert [str(path.relative_to(ROOT)) for path in SOURCES if name in path.read_text("utf-8").lower()] == []


def test_a_format_of_a_benchmark_is_found() -> None:
    assert "blip_caption" in marks_of_benchmarks()
    assert share_a_mark("[shares photo", "[shares photo:")
    assert not share_a_mark("session_", "session_id")
    assert marks_in(ast.parse('"""Doc_string."""\nx = f"{y} [photo: {z}] plain"').body) == {"[photo:", "] plain"}
