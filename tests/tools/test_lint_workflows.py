"""The workflows are read by actionlint, call the two commands, and publish what `make book` builds."""

import pytest
import yaml

import lint_workflows


def workflow(name):
    return yaml.safe_load((lint_workflows.WORKFLOWS / name).read_text("utf8"))


def commands(name):
    jobs = workflow(name)["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_the_workflows_have_no_fault(capfd):
    assert lint_workflows.main([]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("needs: build", "needs: bild", 'needs job "bild"'),
        ("steps.deployment.outputs", "step.deployment.outputs", 'undefined variable "step"'),
        ("ubuntu-latest", "ubuntu-lates", 'label "ubuntu-lates" is unknown'),
    ],
)
def test_a_fault_is_found(tmp_path, capfd, right, wrong, says):
    path = tmp_path / "pages.yml"
    text = (lint_workflows.WORKFLOWS / "pages.yml").read_text("utf8")
    assert right in text
    path.write_text(text.replace(right, wrong))
    assert lint_workflows.main([path]) == 1
    assert says in capfd.readouterr().err


def test_they_call_the_two_commands():
    assert commands("pages.yml") == ["make book"]
    assert commands("tests.yml") == ["make test"]


def test_what_is_published_is_what_was_built():
    build = workflow("pages.yml")["jobs"]["build"]["steps"]
    (upload,) = (step for step in build if "upload-pages-artifact" in step.get("uses", ""))
    assert upload["with"] == {"path": "_build/html"}
    assert workflow("pages.yml")["jobs"]["deploy"]["permissions"] == {"pages": "write", "id-token": "write"}
