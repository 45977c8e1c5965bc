// What DragOutlier says: the names of its cases, its numbers, and what becomes of the rest.

import { FORMATS } from "../shared/numbers/formats.js";
import { narrowFormat } from "../shared/numbers/scaling.js";
import { scaleText, sizeText, withCommas } from "../shared/words/sizes.js";

export const OUTLIER_LABELS = { float8_e4m3fn: "E4M3", int8: "INT8", float4_e2m1fn: "E2M1" };
export const OUTLIER_KINDS = { float8_e4m3fn: "FP8", int8: "", float4_e2m1fn: "FP4" };
export const SCALING_LABELS = {
  tensor: "one scale per tensor", row: "one scale per row", "1x128": "blocks of 1×128", mx: "MX, exponent down", nvfp4: "NVFP4",
};
export const SCALING_SHORT = { tensor: ["tensor", ""], row: ["row", ""], "1x128": ["1×128", ""], mx: ["MX", "1×32"], nvfp4: ["NVFP4", "1×16"] };

/** A share as a percentage of three digits, or of `digits`. */
export const errorShare = (share, digits = 3) => `${Number((100 * share).toPrecision(digits))}\u00a0%`;

/** The size of an outlier: 1e6 has its commas. */
export const outlierText = (size) => (size === 0 ? "none" : withCommas(String(size)));

/** One case in words: what the outlier does to the scale, and what the rest loses by it. */
export function caseText({ format, scaling, outlier }, loss, quiet) {
  const fmt = narrowFormat(format);
  const where = scaling === "tensor" ? "all values" : `the ${loss.block} values of its block`;
  const name = `${OUTLIER_LABELS[format]}, ${SCALING_LABELS[scaling]}`;
  const scaled = `${outlier ? `The outlier of ${outlierText(outlier)}` : "The largest value"} sets the scale of ${where}: ${withCommas(scaleText(loss.scale))}.`;
  const size = (value) => withCommas(sizeText(value * loss.inverse));
  const below = format === "int8" ? `INT8’s steps are then ${size(1)} wide: what is below ${size(0.5)} becomes 0.`
    : `From ${size(fmt.normal)} on values keep all ${FORMATS[format].mantissa_bits + 1} bits; below ${size(fmt.smallest / 2)} they become 0.`;
  const all = `${errorShare(loss.zeros)} of the rest become 0. The error of the rest is ${errorShare(loss.error)}`;
  return `${name}. ${scaled} ${below} ${all}${outlier ? `; without the outlier it would be ${errorShare(quiet.error)}` : ""}.`;
}
