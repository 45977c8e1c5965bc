// What an outlier costs all other values of a tensor: the twin of facts.py.
//
// Only the tile of the outlier changes with it, so the other tiles are added up once; under a tensor's second scale all
// of them change.

import { nearlyNormal } from "../shared/numbers/dice.js";
import { narrowFormat, SCALINGS, tileScale } from "../shared/numbers/scaling.js";

export const OUTLIER_ROWS = 128;
export const OUTLIER_COLUMNS = 1024;
const OUTLIER_AT = 512; // in the first row
const OUTLIER_SEED = 1;
const OUTLIER_STEPS = [1, 1.25, 1.6, 2, 2.5, 3, 4, 5, 6, 8]; // of each power of ten

/** The formats, and which scalings each has. */
export const OUTLIER_CASES = {
  float8_e4m3fn: ["tensor", "row", "1x128", "mx"],
  int8: ["tensor", "row", "1x128"],
  float4_e2m1fn: ["tensor", "row", "1x128", "mx", "nvfp4"],
};

/** The sizes of the outlier, the least first: 0 is none. */
export const OUTLIERS = [0, ...Array.from({ length: 6 }, (_, power) => OUTLIER_STEPS.map((step) => Number(`${step}e${power}`))).flat().filter((size) => size >= 5), 1e6];

/** Nearly normal values, float32, row by row. */
export const outlierTensor = () => Float32Array.from({ length: OUTLIER_ROWS * OUTLIER_COLUMNS }, nearlyNormal(OUTLIER_SEED));

const E4M3_SCALES = narrowFormat("float8_e4m3fn");

// The tiles of a scaling: [first row, rows, first column, columns].
function tilesOf({ tile: [across, along] }) {
  const [rows, columns] = [across ?? OUTLIER_ROWS, along ?? OUTLIER_COLUMNS];
  const tiles = [];
  for (let row = 0; row < OUTLIER_ROWS; row += rows) {
    for (let column = 0; column < OUTLIER_COLUMNS; column += columns) tiles.push([row, rows, column, columns]);
  }
  return tiles;
}

const holdsOutlier = ([row, , column, columns]) => row === 0 && column <= OUTLIER_AT && OUTLIER_AT < column + columns;

// The largest magnitude of a tile without the outlier's place.
function restAmax(x, [row, rows, column, columns]) {
  let amax = 0;
  for (let r = row; r < row + rows; r += 1) {
    for (let i = r * OUTLIER_COLUMNS + column; i < r * OUTLIER_COLUMNS + column + columns; i += 1) {
      const size = i === OUTLIER_AT ? 0 : Math.abs(x[i]);
      if (size > amax) amax = size;
    }
  }
  return amax;
}

// The squared error and the zeros of a tile's values, without the one at `left`.
function tileLoss(x, [row, rows, column, columns], { scale, inverse }, near, left) {
  let [squares, zeros] = [0, 0];
  for (let r = row; r < row + rows; r += 1) {
    for (let i = r * OUTLIER_COLUMNS + column; i < r * OUTLIER_COLUMNS + column + columns; i += 1) {
      if (i === left) continue;
      const value = near(Math.fround(x[i] * scale));
      if (value === 0 && x[i] !== 0) zeros += 1;
      const error = Math.fround(value * inverse) - x[i];
      squares += error * error;
    }
  }
  return [squares, zeros];
}

/** A function of one tensor: lossOf(format, scaling, outlier) gives what the rest loses, and keeps it. */
export function outlierLosses(x) {
  const at = x[OUTLIER_AT];
  const all = { power: 0, count: 0 };
  for (const value of x) {
    all.power += value * value;
    all.count += value === 0 ? 0 : 1;
  }
  const [kept, quiet] = [new Map(), new Map()];

  function parts(format, name) {
    const key = `${format} ${name}`;
    if (!quiet.has(key)) {
      const [fmt, tiles] = [narrowFormat(format), tilesOf(SCALINGS[name])];
      const sized = tiles.map((tile) => ({ tile, amax: restAmax(x, tile) }));
      const [own, others] = [sized.find(({ tile }) => holdsOutlier(tile)), sized.filter(({ tile }) => !holdsOutlier(tile))];
      quiet.set(key, { fmt, own, others, rest: null, whole: Math.max(...sized.map(({ amax }) => amax)) });
    }
    return quiet.get(key);
  }

  function sumOf(tiles, whole, scaling, fmt) {
    let [squares, zeros] = [0, 0];
    for (const { tile, amax } of tiles) {
      const [more, lost] = tileLoss(x, tile, tileScale(amax, whole, scaling, fmt, E4M3_SCALES), fmt.near, -1);
      [squares, zeros] = [squares + more, zeros + lost];
    }
    return [squares, zeros];
  }

  return function lossOf(format, name, outlier) {
    const key = `${format} ${name} ${outlier}`;
    if (kept.has(key)) return kept.get(key);
    const scaling = SCALINGS[name];
    const cut = parts(format, name);
    const size = Math.fround(outlier || Math.abs(at));
    const rest = outlier ? { power: all.power - at * at, count: all.count - (at === 0 ? 0 : 1) } : all;
    const [whole, amax] = [Math.max(cut.whole, size), Math.max(cut.own.amax, size)];
    const moving = scaling.tensor_scale;
    if (moving || !cut.rest) cut.rest = sumOf(cut.others, whole, scaling, cut.fmt);
    const { scale, inverse } = tileScale(amax, whole, scaling, cut.fmt, E4M3_SCALES);
    const [squares, zeros] = tileLoss(x, cut.own.tile, { scale, inverse }, cut.fmt.near, outlier ? OUTLIER_AT : -1);
    const found = {
      error: Math.sqrt((squares + cut.rest[0]) / rest.power), zeros: (zeros + cut.rest[1]) / rest.count,
      scale, inverse, block: cut.own.tile[1] * cut.own.tile[3],
      other: cut.others.length ? tileScale(cut.others[0].amax, whole, scaling, cut.fmt, E4M3_SCALES).inverse : null,
    };
    kept.set(key, found);
    return found;
  };
}
