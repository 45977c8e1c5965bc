// Exponents as characters, apart from number_text.js: most widgets that write a power read no numbers.

export const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A whole number in superscript characters. */
export const superscript = (n) =>
  String(n).replace("-", "⁻").replace(/\d/g, (digit) => SUPERSCRIPTS[digit]);
