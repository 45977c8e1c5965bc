"""What holds for every check and every question of the book; those of a new chapter are found, not listed."""

import math
import time

import pytest
import torch
from torch import nn

import notebooks
from tests.book_questions import book_questions, check_modules, questions_in
from utils.checks.outcome import CORRECT, NOT_ATTEMPTED, NOT_YET, time_limit
from utils.checks.questions import Choice, Number, Task, judge, number, placeholder
from utils.checks.training import autocast

# A check that asks a `Task` takes a function that returns something, and any other takes what its questions ask: a
# number, the text of an option, or a dict of these. Whatever takes something else stands here.
KINDS = {
    "autocast.check_no_second_cast": "class",
    "capstone.check_plan": "own",  # a plan and a number
    "distilbert.check_rescue": "class",
    "loss_scaling.check_clipped_step": "step",  # a function that does something
    "loss_scaling.check_scheduled_step": "step",
    "master_weights.check_master_sgd": "class",
    "quantization.check_pack": "pair",  # of functions
    "training_loop.check_accumulate": "step",
    "training_loop.check_accumulated_epoch": "step",
    "training_loop.check_resume": "pair",  # of functions
}
MODULES = check_modules()
CHECKS = {
    f"{module}.{name}": check
    for module, found in MODULES.items()
    for name, check in vars(found).items()
    if name.startswith("check_")
}
QUESTIONS = book_questions()


def kind_of(name):
    if name in KINDS:
        return KINDS[name]
    asked = getattr(CHECKS[name], "asks", ())
    return "function" if any(isinstance(question, Task) for question in asked) else "paper" if asked else "silent"


def of_kind(*kinds):
    """The names of the checks of these kinds."""
    return [name for name in CHECKS if kind_of(name) in kinds]


CODE = of_kind("function", "step", "pair", "class")


def tried(name, function):
    """What a check says to a function, or to as many as it takes."""
    return CHECKS[name]((function, function) if kind_of(name) == "pair" else function)


def wrong_ones(outcomes, *statuses, starts="", ends="", never=None):
    """Of outcomes by answer those that have another status, or say it otherwise than they should."""

    def is_right(outcome):
        said, hint = outcome.message, outcome.hint
        if outcome.status not in statuses or not said.strip() or (never and never in said):
            return False
        if hint and (outcome.status != NOT_YET or hint in said):
            return False
        return said.startswith(starts) and said.endswith(ends)

    return {answer: outcome for answer, outcome in outcomes.items() if not is_right(outcome)}


def state():
    """What a check may not change."""
    switches = torch.is_autocast_enabled("cpu"), autocast._depth(), torch.is_grad_enabled(), torch.get_default_dtype()
    return switches, torch.get_rng_state().numpy().tobytes()


@pytest.fixture(autouse=True)
def nothing_is_left_open():
    before = state()
    yield
    assert state() == before


def test_every_kind_is_that_of_a_check():
    assert KINDS.keys() <= CHECKS.keys()
    assert len(CHECKS) > 50
    unknown = [name for name in of_kind("paper") if len(CHECKS[name].asks) > 1 and table_of(name) is None]
    assert unknown == [], "no dict of the module holds what these ask: say in KINDS how they are answered"


# --- What is answered to anything


@pytest.mark.parametrize("name", CHECKS)
def test_what_nobody_has_attempted_the_page_asks(name):
    outcome = CHECKS[name](...)
    assert outcome.asks == CHECKS[name].asks != (), "give @exercise a Task or the questions that the page shall ask"
    assert outcome._repr_html_().startswith(placeholder(list(outcome.asks), "").removesuffix("</div>"))


BLANKS = [..., None, [...], [1, ...], (...,), {"a": ...}, {"a": 4, 15: ...}]


@pytest.mark.parametrize("name", CHECKS)
def test_a_blank_is_not_attempted(name):
    assert wrong_ones({repr(blank): CHECKS[name](blank) for blank in BLANKS}, NOT_ATTEMPTED) == {}


JUNK = ["", "banana", "0xZZ", b"1", -1, -5, 1e400, math.nan, True, object(), [], [1], (1, 2), {}, {"a": 3}]
JUNK += [{15: object()}, {"skipped": 3}, torch.ones(3), torch.tensor(-7)]
STOPPED = "made the check stop"  # with an error of Python, where a sentence should say how to write an answer


@pytest.mark.parametrize("name", CHECKS)
def test_junk_is_not_yet_and_never_raises(name):
    said = {repr(junk): CHECKS[name](junk) for junk in JUNK}
    assert wrong_ones(said, NOT_YET, starts="The check needs " if name in CODE else "", never=STOPPED) == {}


# --- What is answered to functions


@pytest.mark.parametrize("name", of_kind("function", "step", "pair"))
def test_a_function_that_does_nothing_is_not_attempted(name):
    said = {nothing: tried(name, lambda *given, _=nothing, **named: _) for nothing in (None, ...)}
    assert wrong_ones(said, NOT_ATTEMPTED) == {}


RETURNED = ["banana", [], [1], {}, object(), -1, math.nan, math.inf, (1, 2, 3), ("a", "b"), (1, None)]
RETURNED += [{"scale": 1}, {0.5: 1}, {0: "many"}, {math.nan: 1}, {math.inf: 2}, nn.Linear(2, 2)]
RETURNED += [torch.tensor(7), torch.tensor([[1.0]]), torch.ones(3), torch.ones(3, 2)]
RETURNED += [torch.ones(2, 3, dtype=torch.int8), torch.ones(2, 3, dtype=torch.bool)]


@pytest.mark.parametrize("name", CODE)
def test_a_function_that_returns_junk_is_not_yet(name):
    said = {repr(junk): tried(name, lambda *given, _=junk, **named: _) for junk in RETURNED}
    assert wrong_ones(said, NOT_ATTEMPTED if kind_of(name) == "step" else NOT_YET) == {}  # a step does something


@pytest.mark.parametrize("name", CODE)
def test_a_function_that_raises_is_not_yet(name):
    said = {"in it": tried(name, lambda *given, **named: [][0]), "on its arguments": tried(name, lambda: 0)}
    assert wrong_ones(said, NOT_YET) == {}
    assert "IndexError" in said["in it"].message


@pytest.mark.parametrize("name", CODE)
def test_an_endless_loop_ends_with_a_sentence(name, monkeypatch):
    def endless(*given, **named):
        end = time.monotonic() + 3  # of a check without a time limit
        while time.monotonic() < end:
            pass
        raise SystemError("nobody has stopped it")

    tried(name, lambda *given, **named: None)  # whatever is imported now is not imported under the limit
    monkeypatch.setattr("utils.checks.outcome.time_limit", lambda seconds: time_limit(0.05))
    outcome = tried(name, endless)
    assert outcome.status == NOT_YET
    assert "never ends" in outcome.message


# --- What is answered on paper


def table_of(name):
    """The dict of questions that a check asks, by the keys of its answer; None where it asks a single question."""
    asked = [id(question) for question in CHECKS[name].asks]
    dicts = [value for value in vars(MODULES[name.partition(".")[0]]).values() if isinstance(value, dict)]
    return next((table for table in dicts if [id(value) for value in table.values()] == asked), None)


def answers_to(question):
    """Yield (answer, status, what is said) for each answer that a question foresees, the right one among them."""
    if isinstance(question, Choice):
        for option in question.options:
            yield option.text, CORRECT if option.right else NOT_YET, option.says
    else:
        yield question.answer, CORRECT, question.says
        for text, hint in question.wrong.items():
            if not question.is_code or text[:2] in ("0x", "0b"):  # the page alone takes another number for a code
                yield text, NOT_YET, hint


def right_answer(question):
    return next(answer for answer, status, _ in answers_to(question) if status == CORRECT)


def as_python(question, answer):
    """The answer as a learner writes it without quotes."""
    if isinstance(question, Choice):
        return answer
    return int(answer, 0) if question.is_code else number(answer)


TABLES = [name for name in of_kind("paper") if table_of(name)]


@pytest.mark.parametrize("name", [name for name in of_kind("paper") if name not in TABLES])
def test_every_foreseen_answer_meets_its_words(name):
    (question,) = CHECKS[name].asks
    for answer, status, says in answers_to(question):
        said = {written: CHECKS[name](written) for written in (answer, as_python(question, answer))}
        assert wrong_ones(said, status, ends=says) == {}


@pytest.mark.parametrize("name", TABLES)
def test_every_foreseen_answer_in_a_table_meets_its_words(name):
    check, table = CHECKS[name], table_of(name)
    right = {key: right_answer(question) for key, question in table.items()}
    for key, question in table.items():
        for answer, status, says in answers_to(question):
            said = {(key, w): check(right | {key: w}) for w in (answer, as_python(question, answer))}
            assert wrong_ones(said, status, ends=says if status == NOT_YET else "") == {}  # all right: other words


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_junk_is_not_yet(name):
    said = {repr(junk): CHECKS[name](dict.fromkeys(table_of(name), junk)) for junk in JUNK}
    assert wrong_ones(said, NOT_YET, never=STOPPED) == {}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_says_which_answer_is_missing(name):
    table = table_of(name)
    right = {key: right_answer(question) for key, question in table.items()}
    for key in table:
        said = {"dots": CHECKS[name](right | {key: ...})}
        said["left out"] = CHECKS[name]({other: right[other] for other in table if other != key})
        assert wrong_ones(said, NOT_ATTEMPTED, NOT_YET, starts="No answer yet for ", ends=f"{key}.") == {}
        assert not any(str(other) in one.message.replace(str(key), "") for other in table for one in said.values())


# --- What is asked


@pytest.mark.parametrize("module", [name for name, found in MODULES.items() if list(questions_in(vars(found)))])
def test_an_id_begins_with_the_chapter(module):
    stem = module.removesuffix("_questions")
    pages = [path.relative_to(notebooks.BOOK).with_suffix("") for path in notebooks.book_notebooks()]
    (chapter,) = [page.as_posix() for page in pages if page.name == stem and page.parts[0] != "solutions"]
    found = {question.id for question in questions_in(vars(MODULES[module]))}
    assert [name for name in found if name.rpartition("/")[0] != chapter] == []


def test_an_id_belongs_to_one_question_of_the_book():
    names = [question.id for question in QUESTIONS]
    assert names
    assert [name for name in set(names) if names.count(name) > 1] == []


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_every_answer_has_words_of_its_own(question):
    if isinstance(question, Choice):
        said = [option.says for option in question.options]
    elif isinstance(question, Number):
        said = [question.says, *question.wrong.values(), question.otherwise, *question.hints]
    else:
        said = [question.text]
    assert all(text.strip() for text in said)
    assert [text for text in set(said) if said.count(text) > 1] == []


@pytest.mark.parametrize("question", [q for q in QUESTIONS if isinstance(q, Number)], ids=lambda question: question.id)
def test_every_foreseen_number_is_judged_as_its_words_say(question):
    assert judge(question, number(question.answer)) == (CORRECT, question.says)
    for text, hint in question.wrong.items():
        assert judge(question, number(text)) == (NOT_YET, hint)
