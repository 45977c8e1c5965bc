// Amounts as people write them and read them: numbers with units, counts in words, bytes in decimal units.

export const GIGABYTE = 1e9;
const MOST_MEMORY = 1e6; // GB

/** Split "7,500.5 GB" into { value, unit }; { comma: true } where a comma cannot separate thousands; null for junk. */
export function readNumber(text) {
  const found = /^([\d.,_\s]*[\d.])(e\+?\d+)?\s*([a-z]*)$/i.exec(text.trim());
  if (!found) return null;
  const [, digits, power = "", unit] = found;
  const grouped = /^[1-9]\d{0,2}(?:([,_\s])\d{3}(?:\1\d{3})*)?(?:\.\d*)?$/.test(digits);
  if (!grouped && digits.includes(",")) return { comma: true };
  if (!grouped && !/^(?:\d+\.?\d*|\.\d+)$/.test(digits)) return null;
  return { value: Number(digits.replace(/[,_\s]/g, "") + power), unit: unit.toLowerCase() };
}

export const COMMA = "has a comma that separates no thousands: write decimals with a point, like";

/** Read "24", "0.5" or "80 GB" as { amount } in GB; { wrong } says why it is none. */
export function parseMemory(text) {
  const read = readNumber(text);
  if (read?.comma) return { wrong: `“${text}” ${COMMA} 7.5.` };
  const good = read && ["", "g", "gb"].includes(read.unit) && read.value > 0 && read.value <= MOST_MEMORY;
  if (!good) return { wrong: `“${text}” is not an amount of memory: write the gigabytes, like 24.` };
  return { amount: read.value };
}

/** Read "2,048" as { amount }, a whole number from 1 to `most`; { wrong } says why it is none. */
export function parseWhole(text, label, most) {
  const read = readNumber(text);
  if (read && !read.comma && read.unit === "" && Number.isInteger(read.value) && read.value >= 1 && read.value <= most) return { amount: read.value };
  return { wrong: `${label}: “${text}” is not a whole number from 1 to ${most.toLocaleString("en")}.` };
}

/** Bytes of memory: what the reader typed in GB, or the least that the card is sold with. */
export const roomOf = (facts, { card, memory }) => Math.round((memory || facts.cards[card].memory[0]) * GIGABYTE);

/** How many of `room` bytes may be planned, a BigInt, and whether `total` bytes do: `usable` and `fits` in utils/cost/cards.py. */
export const usableOf = (room) => (9n * BigInt(room)) / 10n;
export const fitsIn = (total, room) => BigInt(total) <= usableOf(room);

/** A count as people say it: 67.0 million, 6.74 billion. */
export function countText(count) {
  for (const [size, word] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"], [1e3, "thousand"]]) {
    if (count >= 0.9995 * size) return `${Number((count / size).toPrecision(3))} ${word}`;
  }
  return String(count);
}

/** A number with three digits, with four from a thousand on. */
export const fewDigits = (x) => Number(x.toPrecision(Math.abs(x) < 1000 ? 3 : 4)).toLocaleString("en", { maximumFractionDigits: 12 });

/** Bytes in GB, three digits of it; MB below a hundredth. */
export function bytesText(bytes) {
  return Math.abs(bytes) < GIGABYTE / 100 ? `${fewDigits(bytes / 1e6)} MB` : `${fewDigits(bytes / GIGABYTE)} GB`;
}

// What is said where a field holds something else than the answer is about.
export const STALE = "Below stands the answer to the last valid input.";
export const ANSWER = { fresh: "Answer", stale: "Answer to the last valid input" };
