"""AskGpu's device, with made-up WebGPU objects in Node.js: each failure is a sentence, and the device is released."""

import pytest

from tests.widgets.shared.test_modules import run_node
from utils.widgets.shared.modules import WIDGETS

FOLDER = (WIDGETS / "ask_gpu").as_uri()
# A GPU that answers zeros. `fail` names what goes wrong; `seen` is what was called.
GPU = """
const seen = { destroyed: 0, adapters: 0, devices: 0, submits: 0, features: [] };
const wait = () => new Promise((go) => setTimeout(go, 5));
function fakeDevice(fail) {
  let lose;
  const lost = new Promise((go) => { lose = go; });
  const destroy = () => { seen.destroyed += 1; lose({ reason: "destroyed", message: "" }); };
  const scopes = [];
  return {
    lost, destroy,
    pushErrorScope: (kind) => scopes.push(kind),
    async popErrorScope() {
      return scopes.pop() === "validation" && fail === "validation" && seen.submits ? { message: "bad" } : null;
    },
    createShaderModule: () => ({}),
    createComputePipelineAsync: async () => {
      if (fail === "compile") throw new Error("no");
      return { getBindGroupLayout: () => ({}) };
    },
    createBuffer: ({ size }) => ({
      size,
      async mapAsync() {
        await wait();
        if (fail === "lost") { lose({ reason: "unknown", message: "driver reset" }); throw new Error("map failed"); }
        if (fail === "map") throw new Error("map failed");
      },
      getMappedRange: () => new ArrayBuffer(size),
    }),
    createBindGroup: () => ({}),
    createCommandEncoder: () => ({
      beginComputePass: () => ({ setPipeline() {}, setBindGroup() {}, dispatchWorkgroups() {}, end() {} }),
      copyBufferToBuffer() {}, finish: () => ({}),
    }),
    queue: { writeBuffer() {}, submit: () => { seen.submits += 1; } },
  };
}
function fakeGpu(fail, features) {
  return {
    async requestAdapter() {
      seen.adapters += 1;
      if (fail === "silent") return new Promise(() => {});
      if (fail === "adapter") return null;
      if (fail === "adapter-throws") throw new Error("crashed");
      return {
        features: new Set(features), info: { vendor: "acme", architecture: "", isFallbackAdapter: fail === "software" },
        async requestDevice({ requiredFeatures }) {
          seen.devices += 1;
          seen.features = requiredFeatures;
          if (fail === "device") throw new Error("adapter is consumed");
          return fakeDevice(fail);
        },
      };
    },
  };
}
"""


def ask(fail="", features=(), secure=True, gpu=True, times=1):
    """What asking gives: { message } or the answer, and `seen`."""
    script = f"""{GPU}
    const {{ askGpu }} = await import("{FOLDER}/answers.js");
    const [fail, features, isSecureContext, hasGpu, times] = given;
    const gpu = hasGpu ? fakeGpu(fail, features) : undefined;
    const later = globalThis.setTimeout;
    if (fail === "silent") globalThis.setTimeout = (go, ms) => later(go, ms / 100);
    let result;
    for (let k = 0; k < times; k += 1) {{
      try {{ result = await askGpu({{ gpu, isSecureContext }}); }}
      catch (error) {{ result = {{ kind: error.constructor.name, message: error.message }}; }}
    }}
    console.log(JSON.stringify({{ result, seen }}));
    process.exit(0);"""
    answer = run_node(script, [fail, list(features), secure, gpu, times])
    return answer["result"], answer["seen"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpu": False}, "this browser does not offer WebGPU"),
        ({"gpu": False, "secure": False}, "only to pages that come over https, from this computer or from a file"),
        ({"fail": "adapter"}, "has no GPU for it on this machine"),
        ({"fail": "adapter-throws"}, "has no GPU for it on this machine"),
        ({"fail": "silent"}, "the browser named no GPU within 10 seconds"),
        ({"fail": "device"}, "the browser refused the GPU (adapter is consumed)"),
        ({"fail": "lost"}, "The browser took the GPU away before it had answered (driver reset)"),
        ({"fail": "map"}, "The kernels did not run to their end (map failed)"),
        ({"fail": "validation"}, "The browser refused the kernels, so there is no answer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_each_way_to_fail_is_one_sentence(options, words):
    result, seen = ask(**options)
    assert result["kind"] == "NoAnswer"
    assert words in result["message"]
    assert result["message"].count(". ") == 0
    assert result["message"].endswith(".")
    assert seen["destroyed"] == (1 if options.get("fail") in {"lost", "map", "validation"} else 0)


def test_the_device_is_released_after_an_answer_and_each_press_takes_a_new_adapter():
    result, seen = ask(times=3)
    assert seen == {"destroyed": 3, "adapters": 3, "devices": 3, "submits": 3, "features": []}
    assert result["vendor"] == "acme"
    assert result["software"] is False


def test_only_features_that_the_browser_offers_are_asked_for():
    result, seen = ask(features=["shader-f16", "timestamp-query"])
    assert seen["features"] == ["shader-f16"]
    assert "half_ones" in result["answers"]
    assert "order_subgroup" not in result["answers"]
    result, _ = ask()
    assert "half_ones" not in result["answers"]
    assert len(result["answers"]["atomics"]) == 8


def test_a_software_renderer_is_named_as_such():
    assert ask(fail="software")[0]["software"] is True


def test_a_kernel_that_is_refused_leaves_the_others():
    result, seen = ask(fail="compile")
    assert result["answers"] == {}
    assert {"float32", "sums", "atomics"} <= set(result["refused"])
    assert seen["destroyed"] == 1
