// The setup as the address of the page writes it: only what differs from the start, and nothing that is not offered.

import { TENSORS } from "./training/net.js";
import { ghostOf } from "./training/run.js";

export const START = ghostOf({ data: "spiral", growth: 100, optimizer: "adam", rate: 0.01, batch: 64, seed: 1 });
const NUMBERS = ["growth", "push", "rate", "batch", "seed"];
const SCALE_POWER = /^2\^([1-9]|1\d|2[0-4])$/;

/** { name: text } of what differs from the start: { weights: "bfloat16", "weights-rounding": "stochastic", scale: "2^10" }. */
export function toAddress(setup) {
  const state = {};
  for (const name of ["data", "optimizer", ...NUMBERS]) if (setup[name] !== START[name]) state[name] = String(setup[name]);
  for (const tensor of TENSORS) {
    if (setup.formats[tensor] !== "float32") state[tensor] = setup.formats[tensor];
    if (setup.rules[tensor] !== "ties_to_even") state[`${tensor}-rounding`] = setup.rules[tensor];
  }
  if (setup.formats.master) state.master = setup.formats.master;
  if (setup.scale !== "none") state.scale = setup.scale === "dynamic" ? "dynamic" : `2^${Math.log2(setup.scale)}`;
  return state;
}

/** The setup that an address names; `offered` has the values of each knob, and all else is left at the start. */
export function fromAddress(state, offered) {
  const setup = { ...START, formats: { ...START.formats }, rules: { ...START.rules } };
  for (const name of ["data", "optimizer"]) if (offered[name].includes(state[name])) setup[name] = state[name];
  for (const name of NUMBERS) if (offered[name].includes(Number(state[name] ?? NaN))) setup[name] = Number(state[name]);
  for (const tensor of TENSORS) {
    if (offered.format.includes(state[tensor])) setup.formats[tensor] = state[tensor];
    if (offered.rule.includes(state[`${tensor}-rounding`])) setup.rules[tensor] = state[`${tensor}-rounding`];
  }
  if (state.master === "float32") setup.formats.master = "float32";
  const power = SCALE_POWER.exec(state.scale ?? "");
  if (power) setup.scale = 2 ** Number(power[1]);
  else if (state.scale === "dynamic") setup.scale = "dynamic";
  return setup;
}

/** Whether a text names the value that a knob starts with, which an address leaves out. */
export function isStart(name, text) {
  const [tensor, part] = name.split("-");
  if (TENSORS.includes(tensor)) return text === (part === "rounding" ? "ties_to_even" : "float32");
  return name in START && text === String(START[name]);
}
