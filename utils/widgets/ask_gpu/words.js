// What the kernels got, in sentences: never what a GPU does, since another kernel may be compiled otherwise.

import { caseOf, readAnswer } from "./readings.js";

const NO_HALF = "The browser does not offer float16 in shaders on this GPU: the rows of f16(x) and of float16 arithmetic have recorded answers only.";
const NO_SUBGROUPS = "It does not offer subgroups either: subgroupAdd has recorded answers only.";
const NO_SUBGROUPS_ALONE = "The browser does not offer subgroups on this GPU: subgroupAdd has recorded answers only.";

/** The browser and its GPU, by no more than the browser says of it. */
export function deviceText({ vendor, architecture, software }) {
  const names = [vendor && `the vendor “${vendor}”`, architecture && `the architecture “${architecture}”`].filter(Boolean);
  const who = names.length ? `The browser names ${names.join(" and ")}.` : "The browser names neither vendor nor architecture.";
  return software ? `${who} That is a software renderer: the processor computed this, no GPU.` : who;
}

// Whether WGSL allows an answer: null where the row does not foresee it.
function isAllowed({ reading }, answer) {
  if (reading.kind === "error") return answer[1] <= 1;
  if (reading.kind !== "cases") return true;
  const known = caseOf(reading, answer);
  return known ? !reading.refused?.includes(known[1]) : null;
}

const listText = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

/** How many answers are those of IEEE 754 where it decides, and whether WGSL allows the others. */
export function verdictText(rows, answers, ieee) {
  const asked = rows.filter(({ name }) => answers[name]);
  const decided = asked.filter(({ name }) => ieee.answers[name]);
  const agreed = decided.filter((row) => readAnswer(row, answers) === readAnswer(row, ieee.answers));
  const others = asked.filter((row) => !agreed.includes(row));
  const same = `The kernels got the answer of IEEE 754 in ${agreed.length} of the ${decided.length} rows that it decides.`;
  if (others.length === 0) return same;
  const judged = others.map((row) => ({ row, allowed: isAllowed(row, answers[row.name]) }));
  const beyond = judged.filter(({ allowed }) => allowed === false).map(({ row }) => row.what);
  const unknown = judged.filter(({ allowed }) => allowed === null).map(({ row }) => row.what);
  const rest = [
    beyond.length ? `WGSL does not allow that of ${listText(beyond)}.` : "",
    unknown.length ? `Unlike any answer foreseen: ${listText(unknown)}.` : "",
  ].filter(Boolean).join(" ");
  return `${same} ${rest || "No other answer seen here breaks WGSL’s rules."}`;
}

/** The answers that matter most, a sentence each. */
export const briefTexts = (rows, answers) =>
  rows.filter(({ brief, name }) => brief && answers[name]).map((row) => `${row.brief.replace("{}", readAnswer(row, answers))}.`);

/** What was not asked: features that the browser does not offer, and kernels that it refused. */
export function missingText({ features, refused }) {
  const half = features.includes("shader-f16");
  const subgroups = features.includes("subgroups");
  const offered = half ? (subgroups ? "" : NO_SUBGROUPS_ALONE) : subgroups ? NO_HALF : `${NO_HALF} ${NO_SUBGROUPS}`;
  const failed = refused.length ? `The browser refused ${refused.length === 1 ? "one kernel" : `${refused.length} kernels`}; their rows have no answer of this GPU.` : "";
  return [offered, failed].filter(Boolean).join(" ");
}

/** What a reader who asked in vain can do. */
export const INSTEAD = "The table has the recorded answers of other devices.";
