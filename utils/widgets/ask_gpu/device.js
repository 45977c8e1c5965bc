// A WebGPU device: asked for, used once and destroyed. What goes wrong is thrown as a sentence for the reader.

import { sourceOf } from "./kernels.js";

const PATIENCE_MS = 10_000;
const FEATURES = ["shader-f16", "subgroups"];
const { STORAGE, COPY_SRC, COPY_DST, MAP_READ, READ } = { STORAGE: 128, COPY_SRC: 4, COPY_DST: 8, MAP_READ: 1, READ: 1 }; // WebGPU's flags

/** Thrown for what keeps the kernels from running; its message is meant for the reader. */
export class NoAnswer extends Error {}

const NO_ADAPTER = "Nothing was asked: this browser offers WebGPU, but has no GPU for it on this machine or does not use it (Chrome’s page chrome://gpu says which).";

// What a promise gives; NoAnswer where it takes too long.
async function inTime(promise) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new NoAnswer("Nothing was asked: the browser named no GPU within 10 seconds.")), PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Open a device of a new adapter: a second one of the same adapter is refused.
 *
 * Returns { device, features, vendor, architecture, software }. Throws NoAnswer.
 */
export async function openDevice({ gpu, isSecureContext }) {
  if (!gpu && !isSecureContext) throw new NoAnswer("Nothing was asked: a browser offers WebGPU only to pages that come over https, from this computer or from a file.");
  if (!gpu) throw new NoAnswer("Nothing was asked: this browser does not offer WebGPU.");
  const adapter = await inTime(gpu.requestAdapter().catch(() => null));
  if (!adapter) throw new NoAnswer(NO_ADAPTER);
  const features = FEATURES.filter((name) => adapter.features.has(name));
  const info = adapter.info ?? {};
  const device = await adapter.requestDevice({ requiredFeatures: features }).catch((error) => {
    throw new NoAnswer(`Nothing was asked: the browser refused the GPU (${error.message}).`);
  });
  const software = Boolean(info.isFallbackAdapter ?? adapter.isFallbackAdapter);
  return { device, features, vendor: info.vendor ?? "", architecture: info.architecture ?? "", software };
}

async function build(device, kernel) {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: sourceOf(kernel) });
  const compiled = device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint: "main" } }).catch(() => null);
  const problem = device.popErrorScope();
  const pipeline = await compiled;
  return (await problem) ? null : pipeline;
}

// One run of a kernel.
function encode(device, encoder, kernel, pipeline) {
  const words = Object.values(kernel.outputs).reduce((a, b) => a + b);
  const buffer = (size, usage) => device.createBuffer({ size: Math.max(16, 4 * size), usage });
  const src = buffer(kernel.input.length, STORAGE | COPY_DST);
  const dst = buffer(words, STORAGE | COPY_SRC);
  const back = buffer(words, MAP_READ | COPY_DST);
  device.queue.writeBuffer(src, 0, new Uint32Array(kernel.input));
  const entries = [src, dst].map((resource, binding) => ({ binding, resource: { buffer: resource } }));
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  pass.dispatchWorkgroups(...(kernel.groups ?? [1]));
  pass.end();
  encoder.copyBufferToBuffer(dst, 0, back, 0, back.size);
  return { back, words };
}

async function read({ back, words }) {
  await back.mapAsync(READ);
  return Array.from(new Uint32Array(back.getMappedRange()).subarray(0, words));
}

// A promise that fails when the device is lost, and one that fails when it takes too long.
function failures(device) {
  const lost = device.lost.then(({ reason, message }) => {
    if (reason !== "destroyed") throw new NoAnswer(`The browser took the GPU away before it had answered${message ? ` (${message})` : ""}.`);
    return new Promise(() => {});
  });
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new NoAnswer("The GPU did not answer within 10 seconds, and was given back.")), PATIENCE_MS);
  });
  return { any: Promise.race([lost, late]), stop: () => clearTimeout(timer) };
}

async function runAll(device, kernels) {
  const built = await Promise.all(kernels.map(async ([name, kernel]) => [name, kernel, await build(device, kernel)]));
  const ready = built.filter(([, , pipeline]) => pipeline);
  device.pushErrorScope("validation");
  device.pushErrorScope("out-of-memory");
  const encoder = device.createCommandEncoder();
  const jobs = ready.map(([, kernel, pipeline]) => Array.from({ length: kernel.runs ?? 1 }, () => encode(device, encoder, kernel, pipeline)));
  device.queue.submit([encoder.finish()]);
  const problems = await Promise.all([device.popErrorScope(), device.popErrorScope()]);
  if (problems.some(Boolean)) throw new NoAnswer("The browser refused the kernels, so there is no answer.");
  const words = await Promise.all(jobs.map((runs) => Promise.all(runs.map(read))));
  return {
    outputs: Object.fromEntries(ready.map(([name], at) => [name, words[at].flat()])),
    refused: built.filter(([, , pipeline]) => !pipeline).map(([name]) => name),
  };
}

/**
 * Run kernels ({ name: kernel }) whose features the device has, each once, in one submission; then destroy the device.
 *
 * Returns { outputs: { name: words }, refused: names that the browser would not compile }. Throws NoAnswer.
 */
export async function runKernels({ device, features }, kernels) {
  const wanted = Object.entries(kernels).filter(([, { needs }]) => !needs || features.includes(needs));
  const failing = failures(device);
  try {
    return await Promise.race([runAll(device, wanted), failing.any]);
  } catch (error) {
    if (error instanceof NoAnswer) throw error;
    // a lost device also ends what waits for it: its own sentence says more
    await Promise.race([failing.any, new Promise((go) => setTimeout(go, 50))]);
    throw new NoAnswer(`The kernels did not run to their end (${error.message}).`);
  } finally {
    failing.any.catch(() => {});
    failing.stop();
    device.destroy();
  }
}
