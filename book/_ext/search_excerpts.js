// Puts an excerpt of the book's prose below each page that Sphinx's search finds (book_search.py).
{
  const WIDTH = 240; // letters of an excerpt, as in Sphinx
  const prose = globalThis.mpProse ?? {};
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false; // else Sphinx fetches every page that it found

  const query = new URLSearchParams(location.search).get("q") ?? "";
  const stemmer = new Stemmer();
  const words = query.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter((word) => word && !stopwords.includes(word));
  const stems = [...new Set(words.map((word) => stemmer.stemWord(word)))];

  const found = (text) => stems.filter((stem) => text.toLowerCase().includes(stem));
  const times = (text) => stems.reduce((sum, stem) => sum + text.toLowerCase().split(stem).length - 1, 0);

  // Sphinx orders pages of one score by their titles; here the one that says the words more often comes first, and
  // a chapter before its solutions.
  Scorer.score = ([page, , anchor, , score]) => {
    const said = anchor ? 0 : (prose[page] ?? []).reduce((sum, [, , text]) => sum + times(text), 0);
    return score + said / (said + 8) / (page.includes("/solutions/") ? 4 : 1);
  };

  // The section with the most of the words; the first one where several have as many.
  function bestOf(sections) {
    const counts = sections.map(([, title, text]) => found(`${title} ${text}`).length);
    return sections[counts.indexOf(Math.max(...counts))];
  }

  // About WIDTH letters around the first of the words, from word to word.
  function cut(text) {
    const lower = text.toLowerCase();
    const places = stems.map((stem) => lower.indexOf(stem)).filter((place) => place >= 0);
    const place = places.length ? Math.min(...places) : 0;
    let start = Math.max(0, Math.min(place - WIDTH / 3, text.length - WIDTH));
    if (start > 0) start = text.indexOf(" ", start) + 1;
    let end = Math.min(text.length, start + WIDTH);
    if (end < text.length) end = text.lastIndexOf(" ", end);
    return `${start > 0 ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`;
  }

  // The text with the words marked, as nodes.
  function marked(text) {
    if (!stems.length) return [text];
    const any = new RegExp(`((?:${stems.join("|")})[\\p{L}\\p{N}]*)`, "giu"); // letters, digits and _ alone
    return text.split(any).map((piece, at) => at % 2
      ? Object.assign(document.createElement("span"), { className: "highlighted", textContent: piece }) : piece);
  }

  function explain(item) {
    const link = item.querySelector("a");
    const [page, anchor] = link.getAttribute("href").split("#");
    const sections = prose[page.replace(/\.html$/, "")] ?? [];
    const section = sections.find(([id]) => id === anchor) ?? (anchor ? undefined : bestOf(sections));
    if (!section) return;
    const [id, title, text] = section;
    const line = Object.assign(document.createElement("p"), { className: "context" });
    if (!anchor && section !== sections[0]) {
      line.append(Object.assign(document.createElement("a"), { href: `${page}#${id}`, textContent: title }), ": ");
    }
    line.append(...marked(cut(text)));
    item.append(line);
  }

  // Sphinx adds one result after the other, and the first ones may be there already.
  addEventListener("DOMContentLoaded", () => {
    const results = document.getElementById("search-results");
    const explainNew = () => results.querySelectorAll("ul.search > li:not([data-mp-seen])").forEach((item) => {
      item.dataset.mpSeen = "";
      explain(item);
    });
    new MutationObserver(explainNew).observe(results, { childList: true, subtree: true });
    explainNew();
  });
}
