// What is done (a prediction, right or wrong), as records { solved, hints, ... } by id: counted, written as text, read again.

const PROGRESS_BOOK = "mixed-precision-bit-by-bit";
const PROGRESS_VERSION = 1;
const PROGRESS_ID = /^[^\s/"<>\\]+(\/[^\s/"<>\\]+)+$/; // of this edition and of older ones
export const PROGRESS_MOST = 1e6; // characters: far more than a whole book needs

/** A sentence for the reader who brought something that is no saved progress. */
export class ProgressTextError extends Error {}

/** Sums over the exercises of a chapter or of the book, and the first that is not done; read(id) gives a record. */
export function countProgress(items, read) {
  const records = items.map(({ id }) => read(id));
  const isSolved = ({ solved }) => solved === true;
  return {
    total: items.length,
    solved: records.filter(isSolved).length,
    hints: records.reduce((sum, { hints }) => sum + (Number.isInteger(hints) && hints > 0 ? hints : 0), 0),
    next: items[records.findIndex((record) => !isSolved(record))] ?? null,
  };
}

export const countWord = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/** What would be forgotten, in words: "7 finished exercises and 2 hints"; "" for nothing. */
export function keptWords({ solved, hints }) {
  const words = [solved ? countWord(solved, "finished exercise") : "", hints ? countWord(hints, "hint") : ""];
  return words.filter(Boolean).join(" and ");
}

/** The text of a file that takes records, by id, to another browser. */
export function progressText(records) {
  const sorted = Object.fromEntries(Object.entries(records).sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify({ book: PROGRESS_BOOK, version: PROGRESS_VERSION, progress: sorted }, null, 1)}\n`;
}

/** Read such a text; ProgressTextError for anything else. Nothing is taken from a text with a single bad entry. */
export function parseProgress(text) {
  if (!text.trim()) throw new ProgressTextError("There is nothing to read yet: paste the saved text first, or open its file.");
  if (text.length > PROGRESS_MOST) throw new ProgressTextError("This is far longer than a saved progress can be; nothing was changed.");
  let saved;
  try {
    saved = JSON.parse(text);
  } catch {
    throw new ProgressTextError("This is no saved progress, or a part of it is missing; nothing was changed.");
  }
  if (!isRecord(saved) || saved.book !== PROGRESS_BOOK || !isRecord(saved.progress)) {
    throw new ProgressTextError("This text holds no progress of this book; nothing was changed.");
  }
  if (saved.version !== PROGRESS_VERSION) {
    throw new ProgressTextError("This progress was saved by another edition of the book, which this one cannot read; nothing was changed.");
  }
  const entries = Object.entries(saved.progress);
  const bad = entries.find(([id, record]) => !isProgressEntry(id, record));
  if (bad) throw new ProgressTextError(`The entry “${bad[0].slice(0, 60)}” cannot be read; nothing was changed.`);
  return Object.fromEntries(entries);
}

const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether an id and its record can be what a page of the book has stored. */
export const isProgressEntry = (id, value) => PROGRESS_ID.test(id) && id.length <= 200 && isProgress(value);

const isProgress = (value) => isRecord(value) && typeof value.solved === "boolean" &&
  Number.isSafeInteger(value.hints) && value.hints >= 0;

/** Two records of one exercise in one: done if one of them is, and no hint is lost; `mine` wins where both know. */
export function mergeProgress(mine, theirs) {
  const better = theirs.solved && !mine.solved ? theirs : mine;
  return { ...better, solved: mine.solved || theirs.solved, hints: Math.max(mine.hints, theirs.hints) };
}

/** What to say when a text with so many finished exercises was brought in, so many of them new in this browser. */
export function broughtWords(solved, fresh) {
  if (!solved) return "Brought in; nothing in it is done.";
  if (!fresh) return "Brought in; all that is done in it was done here already.";
  const known = solved - fresh;
  return `Brought in: ${countWord(fresh, "finished exercise")}${known ? `; ${known} more ${known === 1 ? "was" : "were"} done here already` : ""}.`;
}
