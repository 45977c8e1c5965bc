"""The content security policy of the built pages: what is slipped into a page is refused, what the book does works."""

import pytest

PAGE = "book/numbers/bits.html"
VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) =>
  violations.push(`${event.effectiveDirective} ${event.blockedURI}`));
// The report of a frame comes from another process, on a slow machine later than 0.1 s; what a script does may follow.
window.reported = async (report) => {
  const pause = (ms) => new Promise((go) => setTimeout(go, ms));
  for (const end = performance.now() + 10000; !violations.includes(report) && performance.now() < end;) await pause(20);
  await pause(100);
  return violations;
};
"""
# What somebody could slip into the text of a page, and the line that the browser's report begins with.
SLIPPED = {
    "<script>window.caught = 1</script>": "script-src-elem inline",
    '<img src="data:," onerror="window.caught = 1">': "script-src-attr inline",
    '<a href="javascript:window.caught = 1">x</a>': "script-src-elem inline",
    '<script src="https://192.0.2.1/x.js"></script>': "script-src-elem https://192.0.2.1/x.js",
    '<script src="data:text/javascript,window.caught=1"></script>': "script-src-elem data",
    '<img src="https://192.0.2.1/x.png">': "img-src https://192.0.2.1/x.png",
    '<iframe src="https://192.0.2.1/"></iframe>': "frame-src https://192.0.2.1",
    '<link rel="stylesheet" href="https://192.0.2.1/x.css">': "style-src-elem https://192.0.2.1/x.css",
    "<style>body { color: red }</style>": "style-src-elem inline",
    '<p style="color: red">x</p>': "style-src-attr inline",
}
# innerHTML runs no script, so the elements of a fragment go into the page as a parser would put them there.
SLIP = """
async ([html, report]) => {
  const slipped = document.createRange().createContextualFragment(html);
  const link = slipped.querySelector("a");
  document.body.append(slipped);
  link?.click();
  const found = await reported(report);
  return [window.caught, found];
}
"""
CONNECT = """
(report) => fetch("https://192.0.2.1/").then(() => "sent", () => reported(report))
"""


@pytest.fixture(params=["file", "http"])
def address(request, site, http_site):
    """Where the site begins, on the disk and on a server."""
    return site.as_uri() if request.param == "file" else http_site


def opened(page_watch, url, **options):
    """A watched page that collects the violations of its policy."""
    watched = page_watch(**options)
    watched.page.add_init_script(VIOLATIONS)
    watched.open(url)
    return watched


def test_every_page_has_a_policy_in_which_nothing_is_unsafe(site):
    for path in site.rglob("*.html"):
        if "_static" in path.parts:
            continue
        page = path.read_text("utf8")
        policy = page.split('<meta http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
        assert policy.startswith("default-src 'none'; "), path
        assert [word for word in ("unsafe", "*", "http") if word in policy] == [], path
        assert "blob:" not in policy, path


def test_what_is_slipped_into_a_page_is_refused(page_watch, address):
    watched = opened(page_watch, f"{address}/{PAGE}")
    assert watched.problems == []
    for html, report in SLIPPED.items():
        watched.page.evaluate("violations.length = 0")
        caught, violations = watched.page.evaluate(SLIP, [html, report])
        assert caught is None, html
        assert report in violations, (html, violations)
    report = "connect-src https://192.0.2.1/"
    assert report in watched.page.evaluate(CONNECT, report)


def test_no_script_of_a_page_can_evaluate_text(page_watch, address):
    watched = opened(page_watch, f"{address}/{PAGE}")
    # later, as a page's own script: what a browser's console runs at once is above the policy
    watched.page.evaluate(
        """() => {
          setTimeout(() => { try { eval('1'); window.caught = 1 } catch { window.caught = 2 } });
        }"""
    )
    watched.page.wait_for_function("() => window.caught")
    assert watched.page.evaluate("window.caught") == 2
    imported = """() => import(URL.createObjectURL(new Blob([""], { type: "text/javascript" })))
      .then(() => "it ran", () => "refused")"""
    assert watched.page.evaluate(imported) == "refused"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_controls_of_a_page_work_under_its_policy(page_watch, address, scheme):
    watched = opened(page_watch, f"{address}/{PAGE}", color_scheme=scheme)
    page = watched.page
    page.evaluate("window.print = () => { window.printed = true }")
    page.locator("[data-mp-print]").evaluate("button => button.click()")
    assert page.evaluate("window.printed")
    other = {"light": "dark", "dark": "light"}[scheme]
    for _ in range(3):  # the switch goes round: auto, light, dark
        page.locator("button.theme-switch-button").first.evaluate("button => button.click()")
        if page.evaluate("document.documentElement.dataset.theme") == other:
            break
    assert page.evaluate("document.documentElement.dataset.theme") == other
    page.locator("main details summary").first.click()
    page.locator("button.copybtn").first.evaluate("button => button.click()")
    page.locator("main [data-mp-widget] button").first.click()
    assert page.evaluate("violations") == []
    assert watched.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_search_works_under_its_policy(page_watch, http_site, scheme):
    watched = opened(page_watch, f"{http_site}/search.html?q=subnormal", color_scheme=scheme)
    watched.page.wait_for_selector("#search-results li")
    watched.page.wait_for_load_state("networkidle")
    assert watched.page.evaluate("violations") == []
    assert watched.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_loads_and_shows_the_plots_of_its_theme_alone(page_watch, http_site, scheme):
    asked = []
    watched = page_watch(color_scheme=scheme)
    watched.page.on("request", lambda request: asked.append(request.url))
    page = watched.open(f"{http_site}/book/eight_bits/fp8.html")
    page.evaluate(f"document.querySelector('img.mp-plot-{scheme}').scrollIntoView()")
    page.wait_for_load_state("networkidle")
    plots = [url for url in asked if "/_images/" in url]
    assert plots
    assert {url.endswith("-dark.webp") for url in plots} == {scheme == "dark"}
    shown = page.eval_on_selector_all(
        "main figure img", "all => all.filter((img) => img.checkVisibility()).map((img) => img.className)"
    )
    assert set(shown) == {f"mp-plot-{scheme}"}
