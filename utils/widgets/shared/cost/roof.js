// What a product reaches under a roof: `utils.cost.roofline` in the page's language. Sizes go to SB_MOST, so that every count
// is exact in a double, and each quotient is the one that Python gets.

export const SB_MOST = 2 ** 17; // of M, N and K

/** The row of a type: { dtype, label, read, written }, bytes of a value. */
export function typeOf({ types }, dtype) {
  const [, label, read, written] = types.find(([name]) => name === dtype);
  return { dtype, label, read, written };
}

export const roofOf = ({ roofs }, device) => roofs.find(({ name }) => name === device);

/** The types that a device multiplies, in the order of all types. */
export const typesUnder = (facts, roof) => facts.types.map(([dtype]) => dtype).filter((dtype) => dtype in roof.peaks);

/** The type of a device that stands nearest before another, else its first one. */
export function nearestType(facts, roof, dtype) {
  const [order, held] = [facts.types.map(([name]) => name), typesUnder(facts, roof)];
  return held.filter((name) => order.indexOf(name) <= order.indexOf(dtype)).at(-1) ?? held[0];
}

/** The intensity, in operations per byte, from which the peak and not the memory bounds a product. */
export const ridgeOf = ({ peaks, bandwidth }, dtype) => (1e12 * peaks[dtype]) / (1e9 * bandwidth);

/** The TFLOP/s under a roof at an intensity. */
export const attainableAt = ({ peaks, bandwidth }, intensity, dtype) => Math.min(peaks[dtype], (intensity * bandwidth) / 1e3);

/** A product in a type under a roof; `parts` are the bytes of both factors and of the product, times are in ms. */
export function sbCase({ m, n, k }, type, roof) {
  const operations = 2 * m * n * k;
  const parts = [type.read * m * k, type.read * k * n, type.written * m * n];
  const moved = parts.reduce((sum, bytes) => sum + bytes);
  const [intensity, ridge, peak] = [operations / moved, ridgeOf(roof, type.dtype), roof.peaks[type.dtype]];
  const moving = 1e3 * (moved / (1e9 * roof.bandwidth));
  const computing = 1e3 * (operations / (1e12 * peak));
  return {
    m, n, k, type, roof, operations, parts, moved, intensity, ridge, peak, moving, computing, ms: Math.max(moving, computing),
    reached: attainableAt(roof, intensity, type.dtype), bound: intensity >= ridge ? "compute" : "memory",
    limit: (2 * n * k) / (type.read * k + type.written * n), least: leastRows(n, k, type, ridge),
  };
}

/** A double as a fraction of BigInts, exactly. */
function fractionOf(x) {
  let den = 1n;
  for (; !Number.isInteger(x); x *= 2) den *= 2n;
  return [BigInt(x), den];
}

/** The smallest M that is bound by compute, as a BigInt; null where no M is: `least_rows` in Python. */
export function leastRows(n, k, { read, written }, ridge) {
  const [top, bottom] = fractionOf(ridge);
  const gained = bottom * 2n * BigInt(n) * BigInt(k) - top * BigInt(read * k + written * n);
  if (gained <= 0n) return null;
  const needed = top * BigInt(read) * BigInt(k) * BigInt(n);
  return (needed + gained - 1n) / gained;
}

/** The recorded points of a device, or of those whose data sheet it is: [[device, [[m, n, k, ms], ...]], ...]. */
export function recordedUnder({ recorded, sheets }, { name }, dtype) {
  return Object.keys(recorded).sort().filter((device) => device === name || sheets[device] === name)
    .map((device) => [device, recorded[device][dtype] ?? []]);
}

/** The recorded time of this product: { device, ms }, null where there is none. */
export function recordOf(facts, { m, n, k, type, roof }) {
  for (const [device, points] of recordedUnder(facts, roof, type.dtype)) {
    const found = points.find((point) => point[0] === m && point[1] === n && point[2] === k);
    if (found) return { device, ms: found[3] };
  }
  return null;
}

/** The TFLOP/s of so many operations in so many ms. */
export const rateOf = (operations, ms) => operations / (1e9 * ms);
