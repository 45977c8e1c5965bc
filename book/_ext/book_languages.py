"""Sphinx extension: words of another script say which language they are, for speech, fonts and line breaks."""

import re

TAG = re.compile(r"(<[^>]*>)")
CHINESE = re.compile(r"[\u4e00-\u9fff]+(?:[，、]?[\u4e00-\u9fff]+)*")


def mark_chinese(html):
    """HTML in which each run of Chinese characters outside of tags stands in a span with its language."""
    parts = TAG.split(html)
    parts[::2] = [CHINESE.sub(r'<span lang="zh-Hans">\g<0></span>', text) for text in parts[::2]]
    return "".join(parts)


def mark_page(app, pagename, templatename, context, doctree):
    """Mark the text of a page before it is written."""
    if "body" in context:
        context["body"] = mark_chinese(context["body"])


def setup(app):
    """Connect the step above."""
    app.connect("html-page-context", mark_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
