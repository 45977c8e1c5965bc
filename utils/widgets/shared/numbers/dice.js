// Random numbers that a page and Python draw alike: the twin of dice.py.

const NORMAL_DRAWS = 6; // each gives two numbers of 16 bits: the sum of twelve has variance 1

/** Random numbers in [0, 1) from a seed: the same ones each time (mulberry32). */
export function seededDice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = Math.imul(state ^ (state >>> 15), state | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Nearly normal numbers from a seed: sums of twelve numbers of 16 bits, less 6. */
export function nearlyNormal(seed) {
  const draw = seededDice(seed);
  return () => {
    let sum = 0;
    for (let i = 0; i < NORMAL_DRAWS; i += 1) {
      const bits = draw() * 2 ** 32;
      sum += (bits >>> 16) + (bits & 0xffff);
    }
    return sum / 2 ** 16 - NORMAL_DRAWS;
  };
}
