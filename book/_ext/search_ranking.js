// Ranks the sections of the book for a query: the index that book_search.py writes, unpacked, and BM25 over sections
// with fields (Robertson and Zaragoza 2009, section 3.6.1). It touches no page, so that Node.js can run it too.
{
  const FIRST = 0x20, CAPITAL = "⇧"; // as in packed_text.py
  const K1 = 1.2, B = 0.4; // how soon a word has been said often enough, and how much longer sections lose
  const FIELDS = [6, 1, 0.7]; // a word in the title of a section, in its text, among the names of its code
  const PAGE_TITLE = 3; // in the title of the page around it
  const ASIDE = 0.5; // the factor of sections that repeat a chapter or ask about it
  const SAME = 1, STEM = 0.5, PART = 0.5, BEGINS = 0.3, TYPING = 0.7, INSIDE = 0.1; // how well a word fits
  const OTHER_NAME = 0.8; // a synonym counts less than the word itself
  const APART = 0.3; // the words of a name that do not stand side by side
  const RARELY = 0.1; // what an everyday word like "half" counts that usually means something else in a query
  const PHRASE = 0.8; // two words of the query that stand side by side, as a share of one rare word
  const REST = [1, 0.3, 0.2, 0.2, 0.1, 0.1]; // what the best sections of a page add to its score
  const OPENING = 0.7; // the share of an opening's score with which a section goes before it
  const WORSE = 0.12; // pages below this share of the best one are left out
  const STOP = new Set(`a about an and any are as at be but by can could did do does for from get had has have how i if
    in into is it its me my no of on or our should so than that the their them then there these they this to use using
    vs versus was we what when where which while who why will with would you your`.split(/\s+/));

  const plain = (word) => word.toLowerCase().replace(/^_+(?=.)|_+$/g, "");

  // "quantized", "quantizes" and "quantizing" in one form. It need not be a word.
  function stem(word) {
    if (word.length < 4 || /\d/.test(word)) return word;
    return word.replace(/(?:'s|ies)$/, "y").replace(/(?<=[^aius])s$/, "").replace(/(?<=.{3})(?:ations?|ing|ed|e)$/, "")
      .replace(/([bdgmnprt])\1$/, "$1");
  }

  // The parts of a name: "clip", "grad" and "norm" of clip_grad_norm_.
  function parts(word) {
    const found = word.split(/_+|(?<=[a-z\d])(?=[A-Z])/).filter((part) => part.length > 1);
    return found.length > 1 ? found.map((part) => part.toLowerCase()) : [];
  }

  function unpackWords(lines) {
    let before = "";
    return lines.split("\n").map((line) => {
      if (line) before = before.slice(0, Number.parseInt(line[0], 36)) + line.slice(1);
      return line && before;
    });
  }

  // Adds to a map of numbers.
  const add = (map, key, value) => map.set(key, (map.get(key) ?? 0) + value);

  class Book {
    constructor({ words, pages, synonyms, spellings }) {
      this.words = unpackWords(words);
      this.isWord = this.words.map((word) => /^[\p{L}\p{N}_]/u.test(word));
      this.forms = this.words.map((word, at) => (this.isWord[at] ? { plain: plain(word), stem: stem(plain(word)) } : null));
      this.spellings = spellings;
      this.pages = pages.map(([name, part, weight]) => ({ name, part, weight }));
      this.sections = pages.flatMap(([, , , rows], page) => rows.map(([title, text, names, anchor, aside], at) =>
        ({ page, title, text, names, anchor, aside, isFirst: at === 0 })));
      this.pages.forEach((page, at) => {
        page.title = this.sections.find((section) => section.page === at)?.title ?? "";
      });
      this.#note();
      this.synonyms = new Map();
      synonyms.forEach(([name, names, isOther]) => {
        const key = this.#key(this.#split(name)), before = this.synonyms.get(key)?.names ?? [];
        this.synonyms.set(key, { names: [...new Set([...before, ...names])], isOther });
      });
    }

    // Where each word stands: for each section its number, the field, and its place among the words of the section.
    #note() {
      this.places = new Map();
      this.sections.forEach((section, at) => {
        let place = 0;
        const note = (text, field) => {
          let isApart = false;
          for (const letter of text) {
            const id = letter.charCodeAt(0) - FIRST;
            if (!this.isWord[id]) {
              isApart ||= field === 2 && this.words[id].includes(";"); // names that only stand in one list
              continue;
            }
            place += isApart ? 2 : 1;
            isApart = false;
            if (!this.places.has(id)) this.places.set(id, []);
            this.places.get(id).push([at, field, place]);
          }
          place += 2;
        };
        [section.title, section.text, section.names].forEach(note);
        section.length = place;
        if (!section.isFirst) note(this.pages[section.page].title, 3);
      });
      this.average = this.sections.reduce((sum, { length }) => sum + length, 0) / this.sections.length;
      // the parts of the names, which stand where the names stand
      this.parts = new Map();
      this.words.forEach((word, id) => this.isWord[id] && parts(word).forEach((part) => {
        this.parts.set(id, [...(this.parts.get(id) ?? []), part, stem(part)]);
      }));
    }

    // The words of a text, spelled as in the book.
    #split(text) {
      return (text.match(/[\p{L}\p{N}_]+/gu) ?? []).map(plain).map((word) => {
        const [from, to] = this.spellings.find(([start]) => word.startsWith(start)) ?? ["", ""];
        return to + word.slice(from.length);
      });
    }

    // Words in one form, by which other names are found.
    #key(words) {
      return words.map(stem).join(" ");
    }

    // The words of the book that fit a typed one, with how well they do.
    #fitting(word, { isLast = false, isWhole = false } = {}) {
      const fits = new Map(), root = stem(word);
      this.forms.forEach((form, id) => {
        if (!form) return;
        const fit = form.plain === word ? SAME : form.stem === root ? STEM : this.parts.get(id)?.includes(word) ? PART
          : !isWhole && word.length > 1 && form.plain.startsWith(word) ? (isLast ? TYPING : BEGINS) : 0;
        if (fit) fits.set(id, fit);
      });
      if (isLast && [...fits.values()].some((fit) => fit >= STEM)) { // a whole word: its longer neighbours count less
        fits.forEach((fit, id) => { if (fit === TYPING) fits.set(id, BEGINS); });
      }
      if (!fits.size && !isWhole && word.length > 3) {
        this.forms.forEach((form, id) => { if (form?.plain.includes(word)) fits.set(id, INSIDE); });
      }
      return fits;
    }

    // Where some words stand side by side: a map from section to the weighted count, and what fits each of the words.
    #standing(words, options) {
      const fits = words.map((word, at) => this.#fitting(word, { ...options, isLast: options.isLast && at === words.length - 1 }));
      const counts = new Map(), named = new Set(); // named: in the title of the section
      const count = (section, field, fit) => {
        add(counts, section, fit * (FIELDS[field] ?? PAGE_TITLE));
        if (field === 0) named.add(section);
      };
      const last = fits.pop();
      const ends = fits.map((fit) => new Set([...fit.keys()].flatMap((id) => this.places.get(id) ?? [])
        .map(([section, , place]) => section * 65_536 + place)));
      last.forEach((fit, id) => (this.places.get(id) ?? []).forEach(([section, field, place]) => {
        const isPhrase = ends.every((set, at) => set.has(section * 65_536 + place - ends.length + at));
        if (isPhrase) count(section, field, fit);
      }));
      return { counts, fits: [...fits, last], named };
    }

    // The words of a piece of the query, side by side; a name that the book does not hold as its parts.
    #units(chunk) {
      const words = this.#split(chunk);
      if (words.length !== 1 || this.synonyms.has(stem(words[0])) || this.#fitting(words[0]).size) return words.length ? [words] : [];
      const apart = parts(chunk);
      return apart.length ? apart.map((part) => [part]) : [words];
    }

    // The groups of a query: words or phrases, each with the other names of the same thing.
    groups(query) {
      const isOpen = !/\s$/.test(query); // the last word may still be typed
      const chunks = query.match(/"[^"]*"?|\S+/g) ?? [];
      const units = chunks.flatMap((chunk) => this.#units(chunk));
      const groups = [];
      for (let at = 0; at < units.length;) {
        // the longest run of units that has another name
        let length = Math.min(4, units.length - at), other;
        for (; length > 0; length -= 1) {
          other = this.synonyms.get(this.#key(units.slice(at, at + length).flat()));
          if (other) break;
        }
        length = Math.max(length, 1);
        const run = units.slice(at, at + length);
        groups.push({ words: run.flat(), units: run, others: other?.names ?? [], isOther: other?.isOther ?? false });
        at += length;
      }
      const telling = groups.filter(({ words }) => words.some((word) => !STOP.has(word)));
      const kept = telling.length ? telling : groups;
      kept.forEach((group) => { group.isLast = isOpen && group === groups.at(-1); });
      return kept;
    }

    #score(counts) {
      const rarity = Math.log(1 + (this.sections.length - counts.size + 0.5) / (counts.size + 0.5));
      const scores = new Map();
      counts.forEach((count, section) => {
        const length = Math.max(0.5, this.sections[section].length / this.average); // two lines are no better than ten
        const even = count / (1 - B + B * length);
        scores.set(section, (rarity * even * (K1 + 1)) / (even + K1));
      });
      return { rarity, scores };
    }

    // Where a group of a query stands under any of its names: its count by section, the sections whose title says it,
    // the other names that the book has, and what to mark: each of the words typed, and other names as a whole.
    #answer({ words, units, others, isOther, isLast }) {
      const counts = new Map(), marks = [], also = [];
      const merge = (from, factor) => from.forEach((count, section) => add(counts, section, count * factor));
      const typed = this.#standing(words, { isLast });
      merge(typed.counts, isOther ? RARELY : 1);
      if (!isOther) marks.push(...typed.fits.filter((_, at) => !STOP.has(words[at])).map((fit) => [fit]));
      // "torch.compile" counts a little without its beginning, and "kv cache" where its words stand apart
      if (units.length < words.length) merge(this.#standing([words.at(-1)], { isWhole: true }).counts, APART);
      if (units.length > 1) {
        const [first, ...rest] = words.filter((word) => !STOP.has(word))
          .map((word) => this.#standing([word], { isWhole: true }).counts);
        first?.forEach((_, section) => {
          if (rest.every((map) => map.has(section))) add(counts, section, APART);
        });
      }
      others.forEach((name) => {
        const other = this.#standing(this.#split(name), { isWhole: true });
        merge(other.counts, OTHER_NAME);
        if (other.counts.size) also.push(name);
        marks.push(other.fits);
      });
      return { counts, marks, also, named: typed.named };
    }

    // The pages that answer a query, the best first: { page, score, sections, isWhole }; what to mark, as lists of words
    // side by side, each a map of those that fit; and the other names that were looked for.
    search(query) {
      const groups = this.groups(query), marks = [], also = new Map();
      const found = this.sections.map((section) => ({ section, score: 0, rarity: 0, number: 0, isNamed: false }));
      let everything = 0;
      groups.forEach((group) => {
        const answer = this.#answer(group), { rarity, scores } = this.#score(answer.counts);
        everything += rarity;
        scores.forEach((score, at) => {
          found[at].score += score;
          found[at].rarity += rarity;
          found[at].number += 1;
        });
        answer.named.forEach((at) => { found[at].isNamed = true; });
        marks.push(...answer.marks);
        answer.also.forEach((name) => also.set(this.#key(this.#split(name)), name));
      });
      // words that stand side by side in the query and in the book
      groups.slice(1).forEach(({ words }, at) => {
        const { counts } = this.#standing([groups[at].words.at(-1), words[0]], { isWhole: true });
        this.#score(counts).scores.forEach((score, section) => { found[section].score += score * PHRASE; });
      });
      found.forEach((one) => { // what a section does not say counts against it, a rare word more than a frequent one
        one.score *= ((one.rarity / everything + one.number / groups.length) / 2) ** 1.5 * (one.section.aside ? ASIDE : 1);
      });
      const results = this.#pages(found.filter(({ number }) => number > 0), groups.length);
      return { results, marks, also: [...also.values()] };
    }

    // The pages of the sections that were found, the best first; of each page the best section first.
    #pages(found, number) {
      const pages = new Map();
      found.sort((one, other) => other.score - one.score);
      found.forEach((one) => pages.set(one.section.page, [...(pages.get(one.section.page) ?? []), one]));
      const results = [...pages].map(([at, sections]) => {
        const [best] = sections, page = this.pages[at];
        const score = page.weight * sections.slice(0, REST.length).reduce((sum, one, place) => sum + one.score * REST[place], 0);
        // the opening of a page names its subject: a section whose title also says the word is where the answer stands
        const near = sections.findIndex((one) => one.isNamed && !one.section.isFirst && one.score > OPENING * best.score);
        if (best.section.isFirst && near > 0) sections.unshift(...sections.splice(near, 1));
        return { page, score, sections, isWhole: sections.some((one) => one.number === number) };
      });
      results.sort((one, other) => other.score - one.score || (one.page.name < other.page.name ? -1 : 1));
      return results.filter(({ score }) => score > WORSE * results[0].score);
    }

    // A packed text as pieces [text, whether it is to be marked].
    pieces(packed, marks = []) {
      const pieces = [], ids = [], at = []; // the words, and their places among the pieces
      let isCapital = false, wasWord = false;
      for (const letter of packed) {
        const id = letter.charCodeAt(0) - FIRST, word = this.words[id], isWord = this.isWord[id];
        if (word === CAPITAL) {
          isCapital = true;
          continue;
        }
        if (wasWord && isWord) pieces.push([" ", false]);
        if (isWord) at[ids.push(id) - 1] = pieces.length;
        pieces.push([isCapital ? word[0].toUpperCase() + word.slice(1) : word, false]);
        isCapital = false;
        wasWord = isWord;
      }
      marks.forEach((fits) => ids.forEach((_, start) => {
        if (fits.every((fit, next) => fit.has(ids[start + next]))) fits.forEach((_, next) => { pieces[at[start + next]][1] = true; });
      }));
      return pieces;
    }

    text(packed) {
      return this.pieces(packed).map(([text]) => text).join("");
    }

    // The address of a section, from the folder of the site on.
    address({ page, title, anchor, isFirst }) {
      const slug = this.text(title).toLowerCase().replace(/[^a-z\d]+/g, "-").replace(/^-|-$/g, "");
      return `${this.pages[page].name}.html${isFirst ? "" : `#${anchor || slug}`}`;
    }
  }

  globalThis.MpBook = Book;
}
