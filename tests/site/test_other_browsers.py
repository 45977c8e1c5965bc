"""What Firefox reports of a page although Chromium passes over it: seen with Firefox 153, mended in the build."""

import book_katex
import book_policy

SIGN = "<mo>\u2061</mo>"  # "the function is applied", as KaTeX writes it behind every \\max


def mended(body):
    """The text of a page as the build corrects it."""
    context = {"body": body}
    book_katex.mend(None, "page", "page.html", context, None)
    return context["body"]


def test_a_function_that_stands_alone_is_applied_to_nothing():
    """A msub has two children: MathML Core 3.4.1; Firefox draws "invalid markup" in the place of one with three."""
    assert mended(f"<msub><mi>e</mi><mi>max</mi>{SIGN}</msub>") == "<msub><mi>e</mi><mi>max</mi></msub>"
    applied = f"<mrow><mi>max</mi>{SIGN}<mo>(</mo><mi>x</mi><mo>)</mo></mrow>"
    assert mended(applied) == applied


def test_no_page_asks_a_browser_to_fetch_the_next_one_ahead():
    links = '<link rel="next" title="A > B" href="b.html" />\n    <link rel="prev" title="A" href="a.html" />'
    page = book_policy.protect(f'<html><head><meta charset="utf-8">\n    {links}</head><body></body></html>')
    assert 'rel="next"' not in page
    assert "b.html" not in page
    assert '<link rel="prev" title="A" href="a.html" />' in page
