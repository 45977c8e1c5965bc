"""What makes a check: papers, tables and guarded functions, in a notebook and in a page without Python."""

import signal
import time

import pytest

from tests.page_states import states_in
from utils.checks.outcome import (
    CORRECT,
    NOT_ATTEMPTED,
    NOT_YET,
    Outcome,
    Unreadable,
    as_code,
    as_number,
    choice_table,
    correct,
    exercise,
    foreseen,
    judged,
    not_yet,
    paper,
    paper_table,
    time_limit,
)
from utils.checks.questions import Choice, Number, Option, Task

LARGEST = Number("test/largest", "The largest E4M3:", "448", "Yes.", {"480": "NaN has `0x7F`."}, "No.")
CODE = Number("test/code", "The code:", "0x2A", "Yes.", {"0xAA": "The sign."}, "Not that code.")
TABLE = {
    15: Number("test/bit-15", "Bit 15:", "-6", "Yes.", {"6": "The sign is not."}, "Flip it."),
    14: Number("test/bit-14", "Bit 14:", "6*2^-16", "Yes.", {"1": "One."}, "Flip it, then read."),
}
FORMATS = {
    name: Choice(
        f"test/{name}", f"Of the {name}:", (Option("E4M3", "Narrow.", e4m3), Option("E5M2", "Wide.", not e4m3))
    )
    for name, e4m3 in (("weights", True), ("gradients", False))
}
check_paper, check_code = paper(LARGEST), paper(CODE)
check_table = paper_table(TABLE, says="Both.", name="bit {}")
check_choices = choice_table(FORMATS, says="Both.", read=lambda said: str(said).removeprefix("fp8 "))


@exercise(asks=Task("test/task", "Write it."))
def check_function(answer):
    """A function that doubles."""
    if answer(2) is None:
        return Outcome(NOT_ATTEMPTED, "It returns nothing yet.")
    return correct("Twice.") if answer(2) == 4 else not_yet(f"2 gives `{answer(2)}`.")


@exercise(asks=Task("test/bug", "Mend it."))
def check_bug(answer):
    """A function in which the bug is to be found."""
    return correct("Yes.") if answer(2) == 4 else not_yet("2 gives `5`.", hint="The loop runs once too often.")


@exercise
def check_plain(answer):
    """Anything but 1."""
    return not_yet("Not 1.") if answer == 1 else correct("Yes.")


CHECKS = [check_paper, check_code, check_table, check_choices, check_function]


def asked(outcome):
    """The questions that a page finds in an outcome; none where it shows the sentence alone."""
    return [question for state in states_in(outcome._repr_html_()) for question in state["questions"]]


@pytest.mark.parametrize("answer", [448, "448", "2**8 * 1.75", 448.0, "(1 + 3/4) * 2^8", "0x1.cp8"])
def test_paper_reads_a_number_as_learners_write_it(answer):
    assert check_paper(answer).status == CORRECT
    assert check_paper(answer).message == "Yes."


@pytest.mark.parametrize(("answer", "message"), [(480, "NaN has `0x7F`."), ("7", "No."), ("x", "'x' is not a number")])
def test_paper_gives_the_hint_that_fits(answer, message):
    assert check_paper(answer).status == NOT_YET
    assert check_paper(answer).message.startswith(message)


@pytest.mark.parametrize("answer", [0x2A, "0x2a", "0b00101010", "0 0101 010", "0010 1010"])
def test_paper_reads_a_code_where_the_answer_is_one(answer):
    assert check_code(answer)


@pytest.mark.parametrize(
    ("answer", "message"), [("0xAA", "The sign."), (1, "Not that code."), (0.3, "0.3 is not a code")]
)
def test_paper_refuses_what_is_no_code(answer, message):
    assert check_code(answer).message.startswith(message)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({15: -6, 14: "6 * 2**-16"}, "Both."),
        ({15: 6, 14: 1}, "Bit 15: The sign is not."),
        ({15: -6, 14: 1}, "Bit 14: One."),
        ({15: -6, 14: "x"}, "Bit 14: 'x' is not a number"),
        ({15: -6}, "No answer yet for bit 14."),
        ({}, "No answer yet for bit 15; bit 14."),
        ([1, 2], "Give a dict with a number for each of: bit 15; bit 14."),
        (7, "Give a dict"),
    ],
)
def test_a_table_names_the_first_key_that_is_missing_or_wrong(answer, message):
    outcome = check_table(answer)
    assert outcome.message.startswith(message)
    assert bool(outcome) == (message == "Both.")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"weights": "E4M3", "gradients": "E5M2"}, "Both."),
        ({"weights": "fp8 e4m3", "gradients": "  e5m2 "}, "Both."),
        ({"weights": "E5M2", "gradients": "E5M2"}, "weights: Wide."),
        ({"weights": "E4M3", "gradients": "E4M3"}, "gradients: Narrow."),
        ({"weights": "E4M3", "gradients": 5}, "gradients: 5 is not one of these: E4M3, E5M2."),
        ({"weights": "E4M3"}, "No answer yet for gradients."),
        ("E4M3", "Give a dict with E4M3 or E5M2 for each of: weights; gradients."),
    ],
)
def test_a_table_of_choices_names_the_first_key_that_is_missing_or_wrong(answer, message):
    outcome = check_choices(answer)
    assert outcome.message == message
    assert bool(outcome) == (message == "Both.")


def test_keys_keep_their_spelling():
    question = Number("test/e4m3", "E4M3:", "1", "Yes.", {}, "No.")
    assert paper_table({"float8_e4m3fn": question}, says="All.")({"float8_e4m3fn": 2}).message == "float8_e4m3fn: No."
    assert paper_table({"T4": question}, says="All.", name="card {}")({"T4": 2}).message == "Card T4: No."


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("blank", [..., None, {15: ..., 14: ...}, [...]])
def test_a_blank_is_not_attempted_and_the_page_asks(check, blank):
    outcome = check(blank)
    assert repr(outcome) == "○ Not attempted. Put your answer where the dots are, then run the cell again."
    assert asked(outcome) == [question.as_json() for question in check.asks]
    shown = outcome._repr_html_()
    assert '><p class="mp-outcome mp-outcome-not-attempted"><strong>○ Not attempted.</strong> Put your' in shown
    assert shown == check(blank)._repr_html_()


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("junk", ["", "banana", [], {}, object(), 1e400, -1, b"1", True, float("nan"), {15: object()}])
def test_junk_is_not_yet_and_never_raises(check, junk):
    outcome = check(junk)
    assert outcome.status == NOT_YET
    assert outcome.message


@pytest.mark.parametrize(("error", "end"), [(ValueError(), "with ValueError."), (KeyError("k"), "with KeyError: 'k'")])
def test_an_error_without_a_text_ends_in_a_full_stop(error, end):
    def raises(x):
        raise error

    assert check_function(raises).message.endswith(end)


def test_once_a_number_is_attempted_the_outcome_stands_alone():
    for outcome in (check_paper(448), check_paper(480), check_table({15: 6, 14: 1}), check_function(lambda x: 2 * x)):
        assert "data-mp-widget" not in outcome._repr_html_()
    assert "<code>0x7F</code>" in check_paper(480)._repr_html_()


def test_a_task_stays_in_the_page_with_what_was_said_of_the_code_that_waits_there():
    outcome = check_function(lambda x: 3)
    assert asked(outcome) == [
        {"kind": "task", "id": "test/task", "text": "Write it.", "said": "→ Not yet. 2 gives `3`."}
    ]
    assert "<strong>→ Not yet.</strong> 2 gives <code>3</code>." in outcome._repr_html_()
    assert asked(check_function(lambda x: None)) == [{"kind": "task", "id": "test/task", "text": "Write it."}]


def test_a_plain_exercise_asks_nothing():
    assert check_plain(...)._repr_html_().startswith('<p class="mp-outcome mp-outcome-not-attempted">')
    assert check_plain(1)._repr_html_().startswith('<p class="mp-outcome mp-outcome-not-yet">')
    assert check_plain.asks == ()


def test_an_exercise_can_ask_several_questions():
    choice = Choice("test/choice", "Which?", (Option("a", "Yes.", right=True), Option("b", "No.")))
    check = exercise(lambda answer: judged(choice, "ab".index(answer)), asks=[choice, LARGEST])
    assert [question["id"] for question in asked(check(...))] == ["test/choice", "test/largest"]
    assert check("a").message == "Yes."
    assert check("b").message == "No."
    assert "ValueError" in check("c").message


def test_an_outcome_is_true_only_when_correct_and_shows_itself_in_text_and_html():
    right, wrong = check_paper(448), check_paper(480)
    assert [bool(outcome) for outcome in (right, wrong, check_paper(...))] == [True, False, False]
    assert repr(right) == "✓ Correct. Yes."
    assert '<p class="mp-outcome mp-outcome-not-yet">' in wrong._repr_html_()


def test_an_answer_is_shown_as_text_and_not_as_html():
    assert "&lt;script&gt;" in check_code("<script>")._repr_html_()
    assert "<script>" not in check_code("<script>")._repr_html_()


def test_foreseen_leaves_all_other_answers_to_the_check():
    assert foreseen(LARGEST, 448).status == CORRECT
    assert foreseen(LARGEST, 480).message == "NaN has `0x7F`."
    assert foreseen(LARGEST, 7) is None


def test_what_an_outcome_asks_is_no_part_of_what_it_says():
    assert Outcome(NOT_YET, "a", asks=(LARGEST,)) == not_yet("a")
    assert repr(Outcome(NOT_YET, "a", asks=(LARGEST,))) == "→ Not yet. a"


def test_a_check_has_a_name_and_says_what_it_asks():
    assert check_paper.__name__ == "check_largest"
    assert check_paper.__doc__ == "The largest E4M3:"
    assert check_function.__name__ == "check_function"
    assert check_function.__doc__ == "A function that doubles."


def test_a_hint_waits_for_whoever_asks():
    wrong = check_bug(lambda x: 5)
    assert wrong.hint == "The loop runs once too often."
    assert "loop" not in wrong.line
    assert repr(wrong) == "→ Not yet. 2 gives `5`. (There is a hint: look at `.hint`.)"
    assert [(task["said"], task["hint"]) for task in asked(wrong)] == [(wrong.line, wrong.hint)]
    assert "<details><summary>Hint</summary>The loop runs once too often.</details></div>" in wrong._repr_html_()
    assert "hint" not in asked(check_function(lambda x: 5))[0]
    assert "<details>" not in check_plain(1)._repr_html_()


@pytest.mark.parametrize("text", ["abc", "__import__('os')", "9**9**9", "1/0", "(lambda: 1)()", "1 if 1 else 2"])
def test_as_number_works_out_arithmetic_and_nothing_else(text):
    with pytest.raises(Unreadable):
        as_number(text)


@pytest.mark.parametrize("answer", [1.5, True, "12", None, [1]])
def test_as_code_refuses_what_is_not_whole(answer):
    with pytest.raises(Unreadable):
        as_code(answer)


@pytest.mark.parametrize(
    "text", ["0x3g", "0x", "0b", "", "0x-3", "0b-1", "-1", "0b2", "0b0b1", "0x0x1", "3c00", "1.0", "0x\u0663"]
)
def test_as_code_refuses_a_misspelt_code_and_says_how_to_write_one(text):
    with pytest.raises(Unreadable, match="is not a code; write it like 0x1234 or 0b1001"):
        as_code(text)


@pytest.mark.parametrize(
    ("text", "code"), [(" 0X3C ", 0x3C), ("0x1_2", 0x12), ("0b1001", 9), ("1 001", 9), ("0B1", 1), ("0", 0)]
)
def test_as_code_reads_every_notation(text, code):
    assert as_code(text) == code


def forever(act):
    while True:
        act()


@pytest.mark.parametrize("act", [lambda: None, lambda: time.sleep(1)], ids=["busy", "waiting"])
def test_the_time_limit_stops_what_never_ends_and_restores_the_old_alarms(act):
    before = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGPROF)
    with time_limit(0.5):
        pass
    with pytest.raises(TimeoutError, match=r"0\.02 s"), time_limit(0.02):
        forever(act)
    assert (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGPROF)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
