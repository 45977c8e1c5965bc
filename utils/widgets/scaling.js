// From amax to scale: the twin of utils/scaling.py. What is scaled is multiplied by `scale`; scales are float32.

const MOST_SCALE = 2 ** 127 * (2 - 2 ** -23); // float32's largest value
const LEAST_SCALE = 2 ** -126; // below it the reciprocal overflows

/** What may share a scale: rows and columns of a tile (null: the whole axis), and how the scale is stored. */
export const SCALINGS = {
  tensor: { tile: [null, null], stored: "float32" },
  row: { tile: [1, null], stored: "float32" },
  "1x128": { tile: [1, 128], stored: "float32" },
  mx: { tile: [1, 32], stored: "power" },
  nvfp4: { tile: [1, 16], stored: "float8_e4m3fn" },
};

/** The largest value of a format of the table, as a double. */
export const largestOf = (fmt) => asDouble(valueOf(namedCode("largest", fmt), fmt));

/** The scale that carries `amax` to `top`; 1 where amax is 0 or not finite. */
export function scaleFromAmax(amax, top) {
  if (!(amax > 0) || !Number.isFinite(amax)) return 1;
  return Math.min(Math.max(Math.fround(Math.fround(top) / amax), LEAST_SCALE), MOST_SCALE);
}

/** The scales of Transformer Engine's delayed scaling: the one that each step uses. `amaxes` are float32. */
export function delayedScales(amaxes, { max, history, margin, choose }) {
  const [top, known, scales] = [max * 2 ** -margin, [], []];
  let scale = 1;
  for (const amax of amaxes) {
    scales.push(scale);
    if (amax === 0) continue; // a layer without work is not remembered
    known.push(amax);
    if (known.length > history) known.shift();
    const chosen = choose === "max" ? known.reduce((most, one) => (one > most || Number.isNaN(most) ? one : most)) : amax;
    if (Number.isFinite(chosen)) scale = scaleFromAmax(chosen, top);
  }
  return scales;
}

/** One format: its largest value, its smallest normal one and the one above 0; `near` rounds a double and saturates. */
export function narrowFormat(name) {
  if (name === "int8") {
    const shift = 1.5 * 2 ** 52; // x + shift has no room for fractions: the processor rounds there, with ties to even
    return { max: 127, emax: 6, normal: 64, smallest: 1, near: (x) => (x > 127 ? 127 : x < -127 ? -127 : x + shift - shift) };
  }
  const { near } = doubleRounders(FORMATS[name]);
  const [max, { emax, emin, mantissa_bits: M }] = [largestOf(FORMATS[name]), FORMATS[name]];
  return { max, emax, normal: 2 ** emin, smallest: 2 ** (emin - M), near: (x) => (x >= max ? max : x <= -max ? -max : near(x)) };
}

/** The scale of a tile and what takes it back: { scale, inverse }. `whole` is the amax of the tensor. */
export function tileScale(amax, whole, { stored }, { max, emax }, narrow) {
  if (stored === "float32") {
    const scale = scaleFromAmax(amax, max);
    return { scale, inverse: Math.fround(1 / scale) };
  }
  if (stored === "power") { // OCP MX 1.0, 6.3: the exponent is cut, not rounded up
    const exponent = amax > 0 ? Math.min(Math.max(exponentOfDouble(amax) - emax, -127), 127) : -127;
    return { scale: 2 ** -exponent, inverse: 2 ** exponent };
  }
  const tensorScale = scaleFromAmax(whole, max * narrow.max);
  const wanted = Math.fround(Math.fround(amax / max) * tensorScale);
  const kept = Math.max(narrow.near(wanted), narrow.smallest);
  const inverse = Math.fround(kept * Math.fround(1 / tensorScale));
  return { scale: Math.min(Math.fround(1 / inverse), MOST_SCALE), inverse };
}
