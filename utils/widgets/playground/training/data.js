// Points in a square, in two classes, from additions and products alone: the same ones in every browser.

import { seededDice } from "../../shared/numbers/dice.js";

const POINTS = 512; // of each set
const NOISE = 0.06;
// The spiral turns by one 200th of a circle from point to point, so 256 points make 1.28 turns.
const TURN = [0.9995065603657316, 0.03141075907812829];
const SEED = 5;

function spiral(dice) {
  const points = [];
  let [cos, sin] = [1, 0];
  for (let n = 0; n < POINTS / 2; n += 1) {
    const radius = 0.06 + (0.86 * n) / (POINTS / 2);
    const [x, y] = [radius * cos + NOISE * (dice() - 0.5), radius * sin + NOISE * (dice() - 0.5)];
    points.push([x, y, 0], [-x, -y, 1]);
    [cos, sin] = [cos * TURN[0] - sin * TURN[1], sin * TURN[0] + cos * TURN[1]];
  }
  return points;
}

// Points of the square until there are enough that belong to a class.
function scattered(dice, classOf) {
  const points = [];
  while (points.length < POINTS) {
    const [x, y] = [2 * dice() - 1, 2 * dice() - 1];
    const label = classOf(x, y);
    if (label !== null) points.push([x, y, label]);
  }
  return points;
}

const between = (value, low, high) => (value < low ? 1 : value > high ? 0 : null);
const KINDS = {
  spiral,
  circle: (dice) => scattered(dice, (x, y) => (x * x + y * y > 0.96 ? null : between(x * x + y * y, 0.24, 0.4))),
  corners: (dice) => scattered(dice, (x, y) => (Math.min(Math.abs(x), Math.abs(y)) < 0.06 ? null : x * y > 0 ? 1 : 0)),
};

export const DATA = Object.keys(KINDS);

/** The points of a set, [x, y, class] each. */
export const pointsOf = (kind) => KINDS[kind](seededDice(SEED));
