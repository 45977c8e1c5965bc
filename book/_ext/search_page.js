// The page of the search: it shows results while a reader types, and keeps the query in the address.
{
  const WAIT = 150; // milliseconds after the last key
  const SHOWN = 20; // pages
  const WIDTH = 240, BEFORE = 80; // letters of an excerpt, and how many of them stand before the first word
  const WHOLE = 0.9; // how well a word fits at least that the page of a result marks
  const MORE = 2, CLOSE = 0.55; // other sections of a page, if they come that close to its best one
  const book = new globalThis.MpBook(globalThis.mpIndex);
  const field = document.querySelector(".bd-search-container input");
  const list = document.querySelector("#search-results ul"), summary = document.querySelector(".search-summary");
  let timer, shown = null, words = [];

  const element = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const mark = (text) => element("span", { className: "highlighted", textContent: text });
  const nodes = (pieces) => pieces.map(([text, isMarked]) => (isMarked ? mark(text) : text));

  // About WIDTH letters of a text, where the most of the words are together; from a sentence's beginning if it is near.
  function cut(pieces) {
    let length = 0;
    const starts = pieces.map(([text]) => (length += text.length) - text.length);
    const hits = pieces.flatMap(([, isMarked], at) => (isMarked ? [at] : []));
    const together = (hit) => new Set(hits.filter((at) => starts[at] >= starts[hit] && starts[at] < starts[hit] + WIDTH - BEFORE)
      .map((at) => pieces[at][0].toLowerCase())).size;
    const counts = hits.map(together);
    const hit = hits[counts.indexOf(Math.max(...counts))] ?? 0;
    let first = hit;
    while (first > 0 && starts[hit] - starts[first - 1] <= BEFORE) first -= 1;
    if (length - starts[first] < WIDTH) while (first > 0 && length - starts[first - 1] <= WIDTH) first -= 1;
    const sentence = pieces.findIndex((_, at) => at > first && at <= hit && /[.:?!]\s$/.test(pieces[at - 1][0]));
    if (first > 0 && sentence > 0) first = sentence;
    if (pieces[first]?.[0] === " ") first += 1;
    let last = first;
    while (last < pieces.length && starts[last] + pieces[last][0].length <= starts[first] + WIDTH) last += 1;
    return [
      ...(first > 0 ? [["… ", false]] : []), ...pieces.slice(first, last), ...(last < pieces.length ? [[" …", false]] : []),
    ];
  }

  // The names of a section's code, and the words of its tables, that were looked for.
  function named(section, marks) {
    const names = [[]];
    book.pieces(section.names, marks).forEach((piece) => {
      if (piece[0].includes(";")) names.push([]);
      else names.at(-1).push(piece);
    });
    const wanted = names.filter((pieces) => pieces.some(([, isMarked]) => isMarked)).slice(0, 4);
    return wanted.flatMap((pieces, at) => [at ? ", " : "", element("code", {}, ...nodes(pieces))]);
  }

  function excerpt(section, marks) {
    const pieces = book.pieces(section.text, marks);
    const names = pieces.some(([, isMarked]) => isMarked) ? [] : named(section, marks);
    if (!pieces.length && !names.length) return [];
    const where = names.length ? [element("span", { className: "mp-search-names" }, "In its code or tables: ", ...names)] : [];
    return [element("p", { className: "context" }, ...nodes(cut(pieces)), ...where)];
  }

  function item({ page, sections }, marks) {
    const [{ section, score }, ...others] = sections;
    const title = nodes(book.pieces(page.title, marks));
    const place = section.isFirst ? [] : [" › ", ...nodes(book.pieces(section.title, marks))];
    const made = element("li", {}, element("a", { href: book.address(section) }, ...title, ...place));
    if (page.part) made.append(element("span", { className: "mp-search-part", textContent: page.part }));
    made.append(...excerpt(section, marks));
    const more = others.filter((other) => other.score > CLOSE * score && !other.section.isFirst).slice(0, MORE)
      .flatMap((other, at) => [at ? ", " : "", element("a", { href: book.address(other.section), textContent: book.text(other.section.title) })]);
    if (more.length) made.append(element("p", { className: "mp-search-more" }, "Also there: ", ...more));
    return made;
  }

  function sentence(query, { results, also }) {
    if (!query) return "Type a name from your code, a format, or what goes wrong.";
    if (!results.length) {
      return `Nothing in the book matches “${query}”. Try fewer words, the beginning of a word (“quantiz”), or a name from`
        + " your code (“GradScaler”).";
    }
    const count = results.length > SHOWN ? `The best ${SHOWN} of ${results.length} pages` : results.length === 1 ? "1 page"
      : `${results.length} pages`;
    const names = also.length ? `, also for ${also.slice(0, 4).join(", ")}` : "";
    return `${count}${names}.${results.some(({ isWhole }) => isWhole) ? "" : " No section has all the words; these come closest."}`;
  }

  function show() {
    clearTimeout(timer);
    const query = field.value.trim();
    if (query === shown) return;
    const found = query ? book.search(field.value) : { results: [], marks: [], also: [] };
    list.replaceChildren(...found.results.slice(0, SHOWN).map((result) => item(result, found.marks)));
    summary.textContent = sentence(query, found);
    if (shown !== null) history.replaceState(null, "", query ? `?${new URLSearchParams({ q: query })}` : location.pathname);
    shown = query;
    words = found.marks.filter(({ length }) => length === 1).flatMap(([fits]) => [...fits])
      .filter(([, fit]) => fit >= WHOLE).map(([id]) => book.words[id].toLowerCase());
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, WAIT);
  });
  field.form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });

  // The arrows lead from the field through the results and back.
  document.querySelector(".bd-search-container").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [field, ...list.querySelectorAll("li > a")], at = stops.indexOf(document.activeElement);
    if (!step || at < 0 || !stops[at + step]) return;
    event.preventDefault();
    stops[at + step].focus();
  });

  // Sphinx's script on every page marks these words once.
  list.addEventListener("click", ({ target }) => {
    if (!target.closest("a")) return;
    try {
      localStorage.setItem("sphinx_highlight_terms", words.filter((word) => word.length > 2).join(" "));
    } catch { /* nothing is stored */ }
  });

  field.value = new URLSearchParams(location.search).get("q") ?? "";
  show();
  field.focus();
  field.select();
}
