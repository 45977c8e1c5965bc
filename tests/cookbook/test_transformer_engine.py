"""What the Transformer Engine recipe promises, on stand-ins with the signatures of version 2.18."""

import math
import re
import sys
import types

import pytest
import torch

import book_rules as rules
import recipe_scripts

RECIPES = ["current", "delayed", "block", "mxfp8", "nvfp4"]
CLASSES = {
    "current": "Float8CurrentScaling",
    "delayed": "DelayedScaling",
    "block": "Float8BlockScaling",
    "mxfp8": "MXFP8BlockScaling",
    "nvfp4": "NVFP4BlockScaling",
}

# transformer_engine/common/recipe/__init__.py: the classes take fields that the script does not set
RECIPE_STUB = "\n".join(f"class {name}:\n    pass\n" for name in CLASSES.values())

# transformer_engine/pytorch: signatures of v2.18 as far as the script may use them, layers of torch
ENGINE_STUB = """
import os, pickle
import torch
from torch.utils.checkpoint import checkpoint as recompute
from transformer_engine.common import recipe as recipes

SEEN = {"inside": [], "recomputed": 0, "init": []}
_active = []
HAS = set()


class autocast:
    def __init__(self, enabled=True, calibrating=False, recipe=None, amax_reduction_group=None, _graph=False):
        self.state = (enabled, recipe)

    def __enter__(self):
        _active.append(self.state)

    def __exit__(self, *error):
        _active.pop()


class quantized_model_init:
    def __init__(self, enabled=True, recipe=None, preserve_high_precision_init_val=False):
        SEEN["init"].append([enabled, type(recipe).__name__])

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


class Linear(torch.nn.Linear):
    def __init__(self, in_features, out_features, sequence_parallel=False, fuse_wgrad_accumulation=False,
                 tp_group=None, tp_size=1, get_rng_state_tracker=None, rng_tracker_name=None, init_method=None,
                 bias=True, return_bias=False, params_dtype=None, parallel_mode=None, parameters_split=None,
                 device="cuda", ub_overlap_ag=False, ub_overlap_rs=False, ub_overlap_rs_dgrad=False,
                 ub_bulk_dgrad=False, ub_bulk_wgrad=False, ub_name=None, delay_wgrad_compute=False,
                 symmetric_ar_type=None, save_original_input=False, name=None):
        super().__init__(in_features, out_features, bias, device=device, dtype=params_dtype)
        self.recipe, self.history = None, torch.zeros(4)

    def forward(self, inp, is_first_microbatch=None, fp8_output=False, fp8_grad=False):
        (enabled, recipe) = _active[-1] if _active else (False, None)
        rows = inp.numel() // inp.shape[-1]
        # what forward, backward and the documentation ask together; forward alone asks less in some recipes
        many = {"MXFP8BlockScaling": 32, "NVFP4BlockScaling": 32, "Float8BlockScaling": 128}
        size = many.get(type(recipe).__name__, 16)
        if enabled and (rows % size or inp.shape[-1] % size or self.out_features % size):
            raise ValueError(f"FP8 execution requires other sizes than {list(inp.shape)}")
        SEEN["inside"].append([enabled, type(recipe).__name__])
        self.recipe = recipe
        self.history = self.history.roll(1)
        self.history[0] = inp.detach().abs().amax()
        return super().forward(inp)

    def get_extra_state(self):
        if not isinstance(self.recipe, recipes.DelayedScaling):
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(bytearray(pickle.dumps(self.history.tolist())), dtype=torch.uint8)

    def set_extra_state(self, state):
        if state.numel() == 0:
            return
        if os.getenv("NVTE_ALLOW_UNSAFE_PICKLE_EXTRA_STATE", "0") != "1":
            raise RuntimeError("Refusing to load pickled Transformer Engine extra state")
        self.history = torch.tensor(pickle.loads(state.numpy().tobytes()))


def checkpoint(function, *args, **kwargs):
    assert set(kwargs) <= {"distribute_saved_activations", "get_rng_state_tracker", "tp_group", "use_reentrant"}
    inside = list(_active)

    def again(*args):
        before = list(_active)
        _active[:] = inside
        try:
            return function(*args)
        finally:
            _active[:] = before

    SEEN["recomputed"] += 1
    return recompute(again, *args, use_reentrant=kwargs.get("use_reentrant", True))


def _available(name):
    def is_available(return_reason=False):
        has = name in HAS
        return (has, "" if has else f"no {name} on this device.") if return_reason else has
    return is_available


is_fp8_available = _available("fp8")
is_mxfp8_available = _available("mxfp8")
is_fp8_block_scaling_available = _available("block")
is_nvfp4_available = _available("nvfp4")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Load the script with the stand-ins in place of Transformer Engine, for this test only."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train_te.py"])
    for name, source in (
        ("transformer_engine", ""),
        ("transformer_engine.common", ""),
        ("transformer_engine.common.recipe", RECIPE_STUB),
        ("transformer_engine.pytorch", ENGINE_STUB),
    ):
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
        exec(compile(source, name, "exec"), module.__dict__)
    script = recipe_scripts.load("transformer_engine")
    script.device = "cpu"
    return script


def train(script, name, until):
    """Train, and return what the stand-ins saw and what the checkpoint holds."""
    script.te.SEEN.update(inside=[], recomputed=0, init=[])
    script.train(script.RECIPES[name][0](), until)
    state = torch.load(script.CHECKPOINT, weights_only=True)
    extra = {key: value for key, value in state["model"].items() if key.endswith("_extra_state")}
    dtypes = {value.dtype for key, value in state["model"].items() if key not in extra}
    return script.te.SEEN | {"step": state["step"], "extra": extra, "dtypes": dtypes}


@pytest.fixture(scope="module")
def page():
    return rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "transformer_engine.ipynb"))


def test_without_transformer_engine_it_says_what_to_install(tmp_path):
    if not torch.cuda.is_available():
        done = recipe_scripts.run("transformer_engine", tmp_path)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert "NVIDIA GPU" in line
        assert "pip install" in line


def test_without_a_gpu_it_says_so(script, capsys):
    with pytest.raises(SystemExit) as stopped:
        script.choose("current")
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no NVIDIA GPU was found" in line


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_trains_its_layers_inside_autocast_and_saves_float32(script, name):
    facts = train(script, name, 10)
    # 10 steps, 4 layers, forward and once more in the backward pass
    assert facts["inside"] == [[True, CLASSES[name]]] * 80
    assert facts["recomputed"] == 20
    assert facts["init"] == [[False, CLASSES[name]]]
    assert facts["dtypes"] == {torch.float32}
    assert len(facts["extra"]) == 4
    assert all((state.numel() > 0) == (name == "delayed") for state in facts["extra"].values())


def test_it_learns_and_resumes(script, capsys):
    train(script, "current", 20)
    assert train(script, "current", 40)["step"] == 40
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", capsys.readouterr().out)]
    assert len(losses) == 4  # the second run began at step 21
    assert max(losses) < 0.3 * math.log(4)  # four classes


def test_a_checkpoint_of_delayed_scaling_loads_only_with_the_switch_of_the_page(script, page, monkeypatch):
    (switch,) = re.findall(r"`(NVTE_\w+)=1`", page)
    train(script, "delayed", 10)
    with pytest.raises(RuntimeError, match="Refusing"):
        train(script, "delayed", 20)
    monkeypatch.setenv(switch, "1")
    assert train(script, "delayed", 20)["step"] == 20


def test_a_stopped_run_goes_on_from_its_last_checkpoint_and_each_recipe_has_its_own(script, capsys):
    train(script, "current", 15)
    assert torch.load(script.CHECKPOINT, weights_only=True)["step"] == 10
    assert train(script, "current", 20)["step"] == 20
    assert capsys.readouterr().out.count("step 10:") == 1
    source = recipe_scripts.script_of("transformer_engine")
    names = [
        eval(re.search(r"CHECKPOINT, STEPS = (.*), 40", source)[1], {"sys": types.SimpleNamespace(argv=argv)})
        for argv in (["x.py"], ["x.py", "mxfp8"])
    ]
    assert names == ["checkpoint.pt", "checkpoint-mxfp8.pt"]


def test_a_recipe_that_the_gpu_lacks_ends_in_one_line_with_the_reason(script, capsys):
    script.device = "cuda"
    script.te.HAS.update({"fp8", "block"})  # an H100
    for name in ("current", "delayed", "block"):
        assert type(script.choose(name)).__name__ == CLASSES[name]
    for name in ("mxfp8", "nvfp4"):
        with pytest.raises(SystemExit) as stopped:
            script.choose(name)
        assert stopped.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"no {name} on this device." in line


@pytest.mark.parametrize(("name", "rows"), [("current", 16), ("block", 128), ("mxfp8", 32), ("nvfp4", 32)])
def test_rows_must_be_multiples_of_the_number_on_the_page(script, page, name, rows):
    assert "multiples of 16 for FP8, of 32 for MXFP8 and NVFP4, and, according to the documentation, of 128 for" in page
    layer = script.te.Linear(128, 128, device="cpu")
    with script.te.autocast(enabled=True, recipe=script.RECIPES[name][0]()):
        layer(torch.ones(rows, 128))
        with pytest.raises(ValueError, match="other sizes"):
            layer(torch.ones(rows // 2, 128))


def test_the_table_names_a_recipe_only_where_the_source_has_it(page):
    """`_compute_*_support` of v2.18, and NVFP4's list of devices for training in its documentation."""
    rows = {
        row[1].split(",")[0].strip(): row[2:]
        for row in (
            [cell.strip() for cell in line.split("|")[1:-1]]
            for line in page.splitlines()
            if re.match(r"\| (RTX|H100|B200)", line)
        )
    }
    assert list(rows) == ["8.9", "9.0", "10.0", "12.0"]
    for capability, (fp8, block, mxfp8, nvfp4) in rows.items():
        number = float(capability)
        assert (fp8 == "yes") == (number >= 8.9)
        assert (block == "no") == (number < 9)
        assert (mxfp8 == "yes") == (nvfp4 == "yes") == (10 <= number < 12)


def test_weights_of_the_memory_example_need_the_bytes_of_the_page(page):
    """A weight, an input and an output of 1,024 x 1,024 in bfloat16."""
    assert "6.00 in bfloat16" in page
    assert 3 * 1024 * 1024 * 2 / 2**20 == 6


def test_the_lines_of_the_chapter_train_on_the_stand_ins_too(script):
    """The block of `eight_bits/fp8_training` that takes its lines from this script."""
    chapter = rules.markdown(rules.read_page(rules.BOOK / "eight_bits" / "fp8_training.ipynb"))
    (lines,) = re.findall(r"```python\n(import transformer_engine.*?)```", chapter, re.DOTALL)
    script.te.SEEN.update(inside=[])
    model = torch.nn.Sequential(script.te.Linear(16, 32, device="cpu"), torch.nn.Linear(32, 4))
    x, y = script.batch(0)
    names = {"torch": torch, "device": "cpu", "cross_entropy": script.cross_entropy}
    exec(lines, names | {"model": model, "x": x, "y": y})
    assert script.te.SEEN["inside"] == [[True, CLASSES["current"]]]
    assert {weight.grad.dtype for weight in model.parameters()} == {torch.float32}


@pytest.mark.gpu
@pytest.mark.parametrize("name", RECIPES)
def test_a_gpu_with_transformer_engine_trains(tmp_path, name):
    pytest.importorskip("transformer_engine")
    done = recipe_scripts.run("transformer_engine", tmp_path, name)
    if done.returncode == 2:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]
    assert max(losses) < 0.3 * math.log(4)  # four classes
