"""Promises about the source and the documents themselves."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vsgraph
from vsgraph.demo.made_up import make_crawl, write_crawl

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "vsgraph").rglob("*.py"))
HOMES = {
    1: "visual_graph",
    4: "smooth_text",
    5: "select_anchors",
    6: "__getitem__",
    7: "anchor_loss",
    8: "fuse",
}


WITHOUT_ARRAYS = {"label", "read_crawl"}  # public functions that neither take nor return arrays
HEAVY = {"numba", "ray", "scipy.stats", "pyarrow", "PIL", "torch", "pandas", "jinja2"}


def functions():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield node.name, (ast.get_docstring(node) or "").split("\n")[0]


@pytest.mark.parametrize(("number", "home"), HOMES.items())
def test_each_equation_has_exactly_one_home(number, home):
    found = [name for name, line in functions() if re.search(rf"\(Eq\. {number}\)\.?$", line)]
    assert found == [home]


def test_public_names_are_sorted_exist_and_are_all_there_is():
    assert dir(vsgraph) == vsgraph.__all__ == sorted(vsgraph.__all__)
    for name in vsgraph.__all__:
        assert getattr(vsgraph, name) is not None
    assert set(vsgraph._HOME_OF) == set(vsgraph.__all__) - {"__version__"}


def test_names_are_imported_from_where_type_checkers_find_them():
    tree = ast.parse((ROOT / "src" / "vsgraph" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    for_types = {
        alias.name: node.module.removeprefix("vsgraph.")
        for node in block.body
        for alias in node.names
    }
    assert for_types == vsgraph._HOME_OF


@pytest.mark.parametrize(
    "name", [n for n in vsgraph.__all__ if inspect.isfunction(getattr(vsgraph, n))]
)
def test_every_public_function_has_shapes_and_an_example(name):
    doc = inspect.getdoc(getattr(vsgraph, name))
    for part in ("Parameters\n---", "Returns\n---", ">>> "):
        assert part in doc, part
    assert "shape (" in doc or name in WITHOUT_ARRAYS


@pytest.mark.parametrize(
    "name", [n for n in vsgraph.__all__ if inspect.isclass(getattr(vsgraph, n))]
)
def test_every_public_class_says_what_it_is_and_has_an_example(name):
    doc = inspect.getdoc(getattr(vsgraph, name))
    assert len(doc) > 20
    assert ">>> " in doc


def test_the_source_uses_no_assert_and_no_pickle():
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), path
        assert not re.search(r"import pickle|allow_pickle=True", path.read_text()), path


def test_files_stay_short():
    for path in SOURCES:
        assert len(path.read_text().splitlines()) <= 350, path


def test_version_changelog_and_citation_agree():
    assert f"## [{vsgraph.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {vsgraph.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_every_setting_is_explained():
    import dataclasses

    doc = inspect.getdoc(vsgraph.Settings)
    for field in dataclasses.fields(vsgraph.Settings):
        assert re.search(rf"\b{field.name}\b", doc), field.name


@pytest.mark.slow
def test_python_in_the_readme_runs(tmp_path, monkeypatch, recwarn, model_cache):
    monkeypatch.chdir(tmp_path)
    write_crawl(make_crawl(per_class=12), tmp_path / "my-crawl")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    scope = {}
    for block in blocks:
        exec(block, scope)


def test_make_targets_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|\$ )make ([a-z]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_base_install_is_light():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=\[ ]", spec)[0] for spec in project["dependencies"]}
    assert names == {
        "numpy", "scipy", "click", "tqdm", "threadpoolctl", "pyarrow", "pillow",
        "snowballstemmer", "jinja2",
    }  # fmt: skip


def imported_by(code):
    """Return the names of all modules in memory after running some code in a new process."""
    code = f"import sys; {code}; print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())


def test_importing_the_package_loads_nothing_heavy():
    assert not imported_by("import vsgraph") & (HEAVY | {"numpy", "scipy"})


def test_the_help_of_the_command_loads_nothing_heavy():
    code = "from vsgraph.cli import main; main(['--help'], standalone_mode=False)"
    assert not imported_by(code) & (HEAVY | {"numpy", "scipy"})


def test_correcting_and_judging_arrays_loads_nothing_heavy():
    assert not imported_by("from vsgraph import compare, correct, evaluate, sweep") & HEAVY


def test_only_tests_of_the_experiments_import_them():
    scripts = {path.stem for path in (ROOT / "experiments").rglob("*.py")}
    assert "trials" in scripts
    for path in (ROOT / "tests").rglob("*.py"):
        if path.parent.name == "experiments":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert not scripts & {name.split(".")[0] for name in names}, path


def test_the_results_in_the_readme_are_those_of_the_command():
    made = (ROOT / "docs" / "results.md").read_text()
    table = (ROOT / "README.md").read_text().split("<!-- short table -->")[1].split("<!-- end")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[3:]]
    assert len(rows) == 12
    for data, method, *cells in rows:
        own = made.split(f"<!-- doubted labels, {data} -->")[1].split("<!-- end")[0]
        (line,) = [line for line in own.splitlines() if line.startswith(f"| {method} |")]
        for figure in re.findall(r"\d[\d.]*", " ".join(cells)):
            assert figure in line, f"{data}, {method}: {figure}"


def test_the_page_on_the_command_line_is_that_of_the_commands():
    spec = importlib.util.spec_from_file_location("cli_page", ROOT / "docs" / "cli.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "cli.md").read_text() == module.page(), "run python docs/cli.py"


def test_links_between_documents_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    places = {page.resolve(): _places(page.read_text()) for page in pages}
    for page in pages:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if link.startswith(("http:", "https:")):
                continue
            name, _, place = link.partition("#")
            target = (page.parent / name).resolve() if name else page.resolve()
            assert target.exists(), f"{page.name} links {link}"
            assert not place or place in places[target], f"{page.name} links {link}"


def _places(text):
    """Return the anchors of a page's headings, as code hosts make them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
