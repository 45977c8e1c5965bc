// The WGSL kernels. Each reads its inputs from a buffer, so that no compiler computes them in advance, and writes bits.

import { EXPRESSIONS, functionInputs, INPUTS_EACH, spread } from "./functions.js";
import { LANES_MOST, LOOP_PLACES, TREE_PLACES } from "./orders.js";

const view = new DataView(new ArrayBuffer(4));

/** The code of a number as float32. */
export function bitsOf(x) {
  view.setFloat32(0, x);
  return view.getUint32(0);
}

/** The number of a float32 code. */
export function floatOf(bits) {
  view.setUint32(0, bits);
  return view.getFloat32(0);
}

const NAN = 0x7fc00000;
const ATOMIC_RUNS = 8;
const ATOMIC_ADDENDS = 4096;
const HALF_CODE = "fn code(h: f16) -> u32 { return bitcast<u32>(vec2<f16>(h, f16(0.0))) & 0xffffu; }";

// Four numbers that tell the rules of rounding apart, three around float16's subnormals, three around its end.
export const TO_FLOAT16 = [
  1 + 3 * 2 ** -11, 1 + 2 ** -11, 1 + 2 ** -11 + 2 ** -20, -(1 + 3 * 2 ** -11), 2 ** -15, 2 ** -24, 1.5 * 2 ** -25, 65519, 65520, 1e6,
];

const float32 = {
  input: [
    bitsOf(2 ** -126), bitsOf(0.5), bitsOf(2 ** -127), bitsOf(4), bitsOf(3e38), bitsOf(10), bitsOf(1), bitsOf(0), NAN,
    bitsOf(1 + 2 ** -12), bitsOf(-(1 + 2 ** -11)),
  ],
  outputs: {
    subnormal_out: 1, subnormal_in: 1, overflow: 1, division_by_zero: 1, infinity_minus: 1, nan_unequal: 1, nan_bits: 1, fused: 1, fma: 1, dot: 1,
  },
  body: `
    dst[0] = bitcast<u32>(f(0) * f(1));
    dst[1] = bitcast<u32>(f(2) * f(3));
    let over = f(4) * f(5);
    dst[2] = bitcast<u32>(over);
    dst[3] = bitcast<u32>(f(6) / f(7));
    dst[4] = bitcast<u32>(over - over);
    let nan = f(8) * f(6);
    dst[5] = select(0u, 1u, nan != nan);
    let bits = bitcast<u32>(nan);
    dst[6] = select(0u, 1u, (bits & 0x7f800000u) == 0x7f800000u && (bits & 0x7fffffu) != 0u);
    dst[7] = bitcast<u32>(f(9) * f(9) + f(10));
    dst[8] = bitcast<u32>(fma(f(9), f(9), f(10)));
    dst[9] = bitcast<u32>(dot(vec2f(f(9), f(6)), vec2f(f(9), f(10))));`,
};

const sums = {
  input: [bitsOf(2 ** 24 - 8), bitsOf(1), 16, bitsOf(2 ** -25), 1024, bitsOf(0), bitsOf(1e10), bitsOf(1e-10)],
  outputs: { ones: 1, small_addends: 1, kahan: 1, two_sum: 1 },
  body: `
    var s = f(0);
    for (var i = 0u; i < src[2]; i++) { s = s + f(1); }
    dst[0] = bitcast<u32>(s);
    s = f(1);
    for (var i = 0u; i < src[4]; i++) { s = s + f(3); }
    dst[1] = bitcast<u32>(s);
    s = f(1);
    var c = f(5);
    for (var i = 0u; i < src[4]; i++) {
      let y = f(3) - c;
      let t = s + y;
      c = (t - s) - y;
      s = t;
    }
    dst[2] = bitcast<u32>(s);
    let a = f(6);
    let b = f(7);
    let x = a + b;
    let high = x - a;
    dst[3] = bitcast<u32>((a - (x - high)) + (b - high));`,
};

// A way to float16: `expression` of x is a word.
const conversion = (name, expression, more = {}) => ({
  input: TO_FLOAT16.map(bitsOf),
  outputs: { [`${name}_rounding`]: 4, [`${name}_subnormals`]: 3, [`${name}_top`]: 3 },
  body: `for (var i = 0u; i < ${TO_FLOAT16.length}u; i++) { let x = f(i); dst[i] = ${expression}; }`,
  ...more,
});

const half = {
  needs: "shader-f16", head: HALF_CODE,
  input: [2040, 1, 0, 65504, 32, 60000, 2, 4, 2 ** -14, 0.5, 1 + 2 ** -6, -(1 + 2 ** -5), 2 ** -12].map(bitsOf).concat(16, 1024),
  outputs: { half_ones: 1, half_top: 1, half_excess: 1, half_subnormal: 1, half_fused: 1, half_kahan: 1 },
  body: `
    var s = f16(f(0));
    for (var i = 0u; i < src[13]; i++) { s = s + f16(f(1)); }
    dst[0] = code(s);
    dst[1] = code(f16(f(3)) + f16(f(4)));
    dst[2] = code((f16(f(5)) * f16(f(6))) / f16(f(7)));
    dst[3] = code(f16(f(8)) * f16(f(9)));
    dst[4] = code(f16(f(10)) * f16(f(10)) + f16(f(11)));
    s = f16(f(1));
    var c = f16(f(2));
    for (var i = 0u; i < src[14]; i++) {
      let y = f16(f(12)) - c;
      let t = s + y;
      c = (t - s) - y;
      s = t;
    }
    dst[5] = code(s);`,
};

const functions = {
  input: functionInputs().map(bitsOf), groups: [INPUTS_EACH / 64], size: 64,
  outputs: Object.fromEntries(Object.keys(EXPRESSIONS).map((name) => [name, INPUTS_EACH])),
  body: Object.values(EXPRESSIONS).map((wgsl, k) => `dst[${k * INPUTS_EACH}u + gid.x] = bitcast<u32>(${wgsl});`).join("\n    "),
};

// The mask experiment: a large number in place i, its negative in place j, ones elsewhere. What is left counts the ones
// that were added after the two had met. Pair p of n places: (0, p + 1), then (p - n + 2, n - 1).
const MASKS = [bitsOf(1), bitsOf(2 ** 40), bitsOf(-(2 ** 40))];
const PAIRS = `
fn pair(p: u32, n: u32) -> vec2u { return select(vec2u(p + 2u - n, n - 1u), vec2u(0u, p + 1u), p + 1u < n); }
fn place(k: u32, ij: vec2u) -> f32 { return select(select(f(0), f(1), k == ij.x), f(2), k == ij.y); }`;
const pairsOf = (n) => 2 * n - 3;

const loop = {
  head: PAIRS, input: [...MASKS, LOOP_PLACES], groups: [pairsOf(LOOP_PLACES)], outputs: { order_loop: pairsOf(LOOP_PLACES) },
  body: `
    let ij = pair(wid.x, src[3]);
    var s = place(0u, ij);
    for (var k = 1u; k < src[3]; k++) { s = s + place(k, ij); }
    dst[wid.x] = bitcast<u32>(s);`,
};

const tree = {
  head: `${PAIRS}\nvar<workgroup> part: array<f32, ${TREE_PLACES}>;`,
  input: [...MASKS, TREE_PLACES], groups: [pairsOf(TREE_PLACES)], size: TREE_PLACES, outputs: { order_tree: pairsOf(TREE_PLACES) },
  body: `
    part[lid] = place(lid, pair(wid.x, src[3]));
    for (var stride = ${TREE_PLACES / 2}u; stride > 0u; stride /= 2u) {
      workgroupBarrier();
      if (lid < stride) { part[lid] = part[lid] + part[lid + stride]; }
    }
    if (lid == 0u) { dst[wid.x] = bitcast<u32>(part[0]); }`,
};

// The places are the lanes of a subgroup, whose number only the kernel knows: word 0 holds it.
const subgroup = {
  needs: "subgroups", head: PAIRS, input: MASKS, groups: [pairsOf(LANES_MOST)], size: LANES_MOST, outputs: { order_subgroup: 1 + pairsOf(LANES_MOST) },
  body: `
    let s = subgroupAdd(place(lane, pair(wid.x, lanes)));
    if (lid == 0u) { dst[0] = lanes; dst[1u + wid.x] = bitcast<u32>(s); }`,
};

const atomics = {
  dst: "array<atomic<u32>>", runs: ATOMIC_RUNS, groups: [ATOMIC_ADDENDS / 64], size: 64, outputs: { atomics: 1 },
  input: Array.from({ length: ATOMIC_ADDENDS }, (_, i) => bitsOf((spread(i) - 0.5) * 2 ** -(i % 12))),
  body: `
    var seen = atomicLoad(&dst[0]);
    loop {
      let sum = bitcast<u32>(bitcast<f32>(seen) + f(gid.x));
      let exchange = atomicCompareExchangeWeak(&dst[0], seen, sum);
      if (exchange.exchanged) { break; }
      seen = exchange.old_value;
    }`,
};

/**
 * Each kernel: `input` words, `outputs` ({ answer: words }), `body`, and where they are not 1: `size` of a workgroup,
 * number of `groups`, and `runs`, each of which starts with zeros and adds its words. `needs`: a feature of the device.
 */
export const KERNELS = {
  float32, sums,
  pack: conversion("pack", "pack2x16float(vec2f(x, 0.0)) & 0xffffu"),
  quantize: conversion("quantize", "bitcast<u32>(quantizeToF16(x))"),
  cast: conversion("cast", "code(f16(x))", { needs: "shader-f16", head: HALF_CODE }),
  half, functions, loop, tree, subgroup, atomics,
};

const ENABLE = { "shader-f16": "enable f16;", subgroups: "enable subgroups;" };

/** The whole WGSL text of a kernel. */
export function sourceOf({ body, needs, head = "", size = 1, dst = "array<u32>" }) {
  const lanes = needs === "subgroups" ? ", @builtin(subgroup_size) lanes: u32, @builtin(subgroup_invocation_id) lane: u32" : "";
  return `${ENABLE[needs] ?? ""}
@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: ${dst};
fn f(i: u32) -> f32 { return bitcast<f32>(src[i]); }
${head}
@compute @workgroup_size(${size})
fn main(@builtin(global_invocation_id) gid: vec3u, @builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) lid: u32${lanes}) {${body}
}`;
}
