"""What the recipe on dtypes promises: the advice of the book's one decision, for every card that the book knows."""

import re
from types import SimpleNamespace

import pytest
import torch

import book_rules as rules
import recipe_scripts
from utils.cost import memory
from utils.cost.cards import CARDS, TENSOR, TENSOR_CORES, TYPES
from utils.cost.decide import decide, suited

NAMES = {  # the recipes of `decide` in the words of the script
    "bf16-mixed": "bfloat16 autocast",
    "bf16-true": "bfloat16 weights",
    "16-mixed": "float16 autocast with GradScaler",
    "16-true": "float16 weights",
    "32-true": "float32",
}
NO_DTYPE = ("checkpointing", "8-bit Adam")  # levers that the page names before its list
TASKS = {"train": "train", "fine-tune": "fine_tune", "infer": "generate"}
FLAGS = {"CPU bf16": ["avx2", "avx512_bf16"]}
ROWS = {"other CPU": "CPU", "CPU with AVX512-BF16 or AMX": "CPU bf16"}
NOT_IN_THE_BOOK = {"RTX 20", "TPU", "MI350X", "Apple M3 or newer", "Apple M1", "M2"}


@pytest.fixture
def script():
    return recipe_scripts.load("dtype_for_my_card")


@pytest.fixture(scope="module")
def page():
    return rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "dtype_for_my_card.ipynb"))


def rows_of(page, heading):
    table = page[page.index(heading) :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def advice_for(script, name):
    return script.advice(script.native(CARDS[name].capability or "cpu", FLAGS.get(name, ())))


def decided(name, task):
    """The best recipe, and the dtypes that `decide` tries after it, for a model that is too large for any card."""
    best = NAMES[suited(CARDS[name], task)[0]]
    levers = [pulled.lever for pulled in decide(name, task, 10**12).taken if pulled.lever not in NO_DTYPE]
    return [best, *(NAMES.get(lever, lever) for lever in levers)]


def test_it_runs_as_it_stands(tmp_path):
    if torch.version.cuda or torch.version.hip:  # the last line of the page is that of a build without
        done = recipe_scripts.run("dtype_for_my_card", tmp_path)
        assert done.returncode == 0, done.stderr
    else:
        done = recipe_scripts.run_as_shown("dtype_for_my_card", tmp_path, last_line_only=True)
    assert " (cpu) multiplies natively: " in done.stdout
    for task in TASKS:
        assert re.search(rf"^  {task} +(bfloat16|float16|float32)", done.stdout, re.MULTILINE)
    if not torch.cuda.is_available() and not torch.version.cuda:
        assert done.stdout.splitlines()[-1] == "This build of PyTorch supports neither NVIDIA nor AMD GPUs."


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("task", TASKS)
def test_the_script_advises_what_the_book_decides(script, name, task):
    assert advice_for(script, name)[task].split(", ") == decided(name, TASKS[task])


def test_before_it_changes_the_dtype_the_book_checkpoints_and_takes_8_bit_moments():
    levers = [pulled.lever for pulled in decide("A100", "fine_tune", 10**12, batch=8).taken]
    assert levers == ["the batch in parts", "checkpointing", "8-bit Adam", "bf16-true", "LoRA", "QLoRA"]


def test_the_matrix_units_are_those_of_the_books_table(script):
    table = {chip: " ".join(TYPES[name] for name in names) for chip, names in TENSOR_CORES.items()}
    ours = {chip: names.replace(" (FNUZ)", "").replace(",", "") for chip, names in script.MATRIX_UNITS.items()}
    assert ours.pop("gfx950") == "float64 float32 bfloat16 float16 FP8 FP6 FP4"  # an MI350: the book has no data sheet
    assert ours == table


@pytest.mark.parametrize(
    ("chip", "like"), [("8.7", "8.6"), ("10.1", "10.0"), ("12.1", "12.0"), ("13.0", "12.0"), ("7.2", "7.0")]
)
def test_a_chip_that_is_not_in_the_table_is_taken_for_the_one_before(script, chip, like):
    assert script.native(chip) == script.MATRIX_UNITS[like]


@pytest.mark.parametrize(
    ("chip", "flags", "best"),
    [
        ("6.1", (), "float32"),  # no tensor cores
        ("gfx90a", (), "bfloat16"),
        ("gfx950", (), "bfloat16"),
        ("gfx1100", (), "bfloat16"),
        ("gfx906", (), "float32"),
        ("gfx1030", (), "float32"),  # no matrix units
        ("mps", ("Apple", "M4", "Pro"), "bfloat16"),
        ("mps", ("Apple", "M2"), "float16"),
        ("cpu", ("avx2", "avx512_fp16"), "float32"),
        ("cpu", ("amx_bf16",), "bfloat16"),
        ("cpu", ("neon", "bf16"), "bfloat16"),
    ],
)
def test_the_advice_for_devices_without_a_data_sheet_in_the_book(script, chip, flags, best):
    assert script.advice(script.native(chip, flags)) == script.ADVICE[best]


@pytest.mark.parametrize(
    ("hip", "chip"), [(None, "8.9"), ("6.4", "gfx942")], ids=["on CUDA", "on ROCm, without the architecture's options"]
)
def test_a_gpu_is_named_with_its_chip(script, monkeypatch, hip, chip):
    found = SimpleNamespace(name="the card", major=8, minor=9, gcnArchName="gfx942:sramecc+:xnack-")
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: found)
    assert next(iter(script.devices())) == ("the card", chip, ())


def test_each_card_of_the_book_has_one_row_with_its_formats_and_advice(script, page):
    seen = []
    for device, formats, train, infer in rows_of(page, "| device |"):
        words = [ROWS[device]] if device in ROWS else device.split(", ")
        names = [
            name
            for name in CARDS
            for word in words
            if name == word or (word in {"RTX 30", "RTX 40", "RTX 50"} and name.startswith(word))
        ]
        assert names or set(words) <= NOT_IN_THE_BOOK, device
        assert all(word in NOT_IN_THE_BOOK or any(name.startswith(word) for name in names) for word in words)
        also = ["bfloat16", "float16", "TF32"] if formats.startswith("as A100, and ") else []
        given = {*also, *formats.removeprefix("as A100, and ").replace(" (FNUZ)", "").split(", ")}
        for name in names:
            support, best = CARDS[name].support, advice_for(script, name)
            own = {
                TYPES[dtype] for dtype, how in support.items() if how == TENSOR and dtype not in {"float64", "float32"}
            }
            if not CARDS[name].capability:
                own = {*CARDS[name].products} or {"float32"}
            assert given == own, name
            assert best["train"] == train.replace(", loss scaling", " with GradScaler")
            assert best["fine-tune"].split(", ")[0] == best["train"]
            assert best["infer"].split(", ")[0].removesuffix(" weights") == infer
        seen += names
    assert sorted(seen) == sorted(CARDS)


def test_the_bytes_of_a_parameter_are_those_of_the_ledger(page):
    rows = {row[0]: row[1:] for row in rows_of(page, "| bytes per parameter |")}
    named = {"float32, or autocast (which halves activations)": "bf16-mixed", "bfloat16 weights": "bf16-true"}
    for row, recipe in named.items():
        ledger = memory.predict("LLaMA 7B", recipe, optimizer="adamw", batch=1, length=8, device="cuda")
        parts = ledger.weights + ledger.master, ledger.gradients, ledger.optimizer
        assert [str(round(part / ledger.parameters)) for part in parts] == rows[row]
    assert rows["inference in 16, 8, 4 bits"][0] == "2, 1, 0.5"


def test_the_rates_are_those_of_the_data_sheets(page):
    a100, h100 = CARDS["A100"].roof(40).peaks, CARDS["H100"].roof(80).peaks
    line = next(line for line in page.splitlines() if "data sheets promise" in line).partition("promise")[2]
    rates = [float(number.replace(",", "")) for number in re.findall(r"(?<![\w-])\d[\d,]*(?:\.\d+)?(?=[ ,.]|$)", line)]
    wanted = [a100["float32"], a100["tf32"], a100["bfloat16"], h100["float32"], h100["tf32"], h100["float16"]]
    assert rates == [*wanted, h100["float8"]]
    assert (a100["float16"], h100["bfloat16"]) == (a100["bfloat16"], h100["float16"])


def test_emulation_counts_as_support_and_amd_is_always_supported(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(major=7))
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda device: True)
    assert torch.cuda.is_bf16_supported()
    assert not torch.cuda.is_bf16_supported(including_emulation=False)
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert torch.cuda.is_bf16_supported(including_emulation=False)


def test_the_same_byte_means_half_as_much_in_fnuz():
    fn, fnuz = torch.float8_e4m3fn, torch.float8_e4m3fnuz
    assert (torch.finfo(fn).max, torch.finfo(fnuz).max) == (448, 240)
    codes = torch.arange(256, dtype=torch.uint8)
    one, other = codes.view(fn).float(), codes.view(fnuz).float()
    both = one.isfinite() & other.isfinite()
    assert both.sum() == 253  # all but the two NaNs of one, and of the other the code of -0
    assert torch.equal(one[both], 2 * other[both])


def test_float16_ends_at_65504():
    assert torch.tensor(65504.0).half().isfinite()
    assert torch.tensor(65520.0).half().isinf()


@pytest.mark.gpu
def test_a_gpu_is_advised_what_torch_says_of_it(script):
    name, chip, flags = next(iter(script.devices()))
    bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    assert name == torch.cuda.get_device_name(0)
    assert ("bfloat16" in script.native(chip, flags).split(", ")) == bfloat16
