"""The content security policy that the extension writes into each page: what it allows, and what stops the build."""

import base64
import hashlib

import pytest

import book_policy

HEAD = '<head><meta charset="utf-8" /><title>t</title></head>'


def sha256(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def sources(page):
    """The policy of a protected page: {directive: [source, ...]}."""
    content = book_policy.protect(page).split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    return {kind: allowed for kind, *allowed in (part.split() for part in content.split("; "))}


def test_a_page_may_load_its_own_files_and_nothing_is_unsafe():
    found = sources(f'<html>{HEAD}<script src="a.js"></script><p class="x">text</p></html>')
    assert found["default-src"] == ["'none'"]
    assert found["script-src"] == found["style-src"] == found["base-uri"] == found["form-action"] == ["'self'"]
    assert not any(
        "unsafe" in source or ":" in source.replace("data:", "") for kind in found.values() for source in kind
    )


def test_inline_scripts_and_sheets_are_allowed_by_their_hash_and_data_is_not():
    page = f'{HEAD}<script>a < b\n</script><script type="application/json">{{}}</script><style>p {{x:y}}</style>'
    found = sources(page)
    assert found["script-src"] == ["'self'", sha256("a < b\n")]
    assert found["style-src"] == ["'self'", sha256("p {x:y}")]


def test_the_policy_stands_before_everything_that_it_concerns():
    page = book_policy.protect(f"<html>{HEAD}<script>x</script></html>")
    assert page.index("Content-Security-Policy") < page.index("<title>") < page.index("<script")
    assert book_policy.protect(page) == page


def test_a_page_without_a_head_gets_its_policy_first():
    page = book_policy.protect('\n<meta http-equiv="Refresh" content="0; url=book/intro.html" />\n')
    assert page.startswith('<meta charset="utf-8" />\n    <meta http-equiv="Content-Security-Policy"')
    assert 'content="0; url=book/intro.html"' in page


def test_style_attributes_become_classes_of_a_sheet_in_the_page():
    page = (
        f'<html>{HEAD}<p style="a: b; --c: 1" title=\'x > y\'>one</p><br style="a: b; --c: 1"/>'
        '<span class="k" style="height:1em;">&lt;i style="x"></span><!-- <b style="no"> -->'
        '<script>s = `<b style="no">`;</script></html>'
    )
    lifted = book_policy.lift_styles(page)
    assert "<p class=\"mp-style-1\" title='x > y'>one</p>" in lifted
    assert '<br class="mp-style-1"/>' in lifted
    assert '<span class="k mp-style-2">&lt;i style="x"></span><!-- <b style="no"> -->' in lifted
    assert '<script>s = `<b style="no">`;</script>' in lifted
    sheet = lifted.split("<style>")[1].split("</style>")[0].split()
    assert sheet == [".mp-style-1{a:b!important;--c:1!important}", ".mp-style-2{height:1em!important}"]


def test_a_page_without_style_attributes_stays_as_it_is():
    page = f'<html>{HEAD}<p>style="x" is text here</p></html>'
    assert book_policy.lift_styles(page) == page


def test_the_button_that_prints_keeps_working_through_a_script():
    page = book_policy.protect(f'{HEAD}<button onclick="window.print()" class="b">.pdf</button>')
    assert '<button data-mp-print class="b">' in page
    assert "[data-mp-print]" in book_policy.PRINT_SCRIPT


@pytest.mark.parametrize("tag", ['<img onerror="x()">', '<a href="javascript:x()">', '<form action=" javascript:x()">'])
def test_what_no_policy_allows_stops_the_build(tag):
    with pytest.raises(ValueError, match="inline handlers"):
        book_policy.protect(f"{HEAD}{tag}")
    assert book_policy.handlers(f"<pre>&lt;img onerror=&quot;x()&quot;&gt;</pre><!-- {tag} -->") == []


def test_a_style_that_is_no_list_of_declarations_stops_the_build():
    with pytest.raises(ValueError, match="not a list of declarations"):
        book_policy.lift_styles(f'{HEAD}<p style="p {{ a: b }}">')
