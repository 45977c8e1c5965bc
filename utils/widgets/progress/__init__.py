"""Progress: what a reader has done in the whole book, chapter by chapter, and what is next."""

import html

import traitlets

from utils.widgets.shared.book_widget import BookWidget

NOTE = (
    "The built pages of the book count here what you have done. JupyterLab runs on another address, so what you do"
    " there is counted separately."
)


class Progress(BookWidget):
    """Count what is done in each chapter, lead to what is next, forget it, or take it to another browser.

    A prediction is done when it has been compared, right or wrong, and a task when it is ticked off; all else when it
    is right.

    `chapters`: for each page with something to do, in the order of the book, a dict with its "chapter"
    ("numbers/bits"), "title", "page" (its address from here) and "items", each of these a dict with "id", "text" and
    "place" (the anchor of its widget on the page). The build finds them in the built pages (see
    book/_ext/book_progress.py); a notebook has none, and the widget says `note` instead.
    """

    book_name = "progress"

    chapters = traitlets.List(traitlets.Dict()).tag(sync=True)
    note = traitlets.Unicode(NOTE).tag(sync=True)

    def __repr__(self) -> str:
        return f"Progress({len(self.chapters)} chapters)"

    def static_html(self) -> str:
        """Show the note, or what there is to do in each chapter, for pages without JavaScript."""
        if not self.chapters:
            return f"<p>{html.escape(self.note)}</p>"
        rows = "".join(
            f'<li><a href="{html.escape(chapter["page"])}">{html.escape(chapter["title"])}</a>:'
            f" {exercises(len(chapter['items']))}</li>"
            for chapter in self.chapters
        )
        return f'<p class="mp-static-note">Counting what you have done needs JavaScript.</p><ul>{rows}</ul>'


def exercises(count: int) -> str:
    """Return a number of exercises in words."""
    return f"{count} exercise{'' if count == 1 else 's'}"
