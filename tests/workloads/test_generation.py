"""Generation: every way writes the same tokens, none falls back in silence, and what is kept serves the next text."""

import dataclasses

import pytest
import torch

from utils.training.recipes import RECIPES, Recipe
from utils.training.training_loop import Schedule
from utils.workloads import data, decoders, generation, language_task, models, tokenizers
from utils.workloads.generation import WAYS, Writer, generate

CPU = torch.device("cpu")
SHAPE = models.LlamaShape(
    vocabulary=40, width=16, layers=2, heads=4, groups=2, hidden=32, positions=64, tied=True, spread=0.3
)
TINY = language_task.LanguageSettings(
    characters=6_000,
    held_out=600,
    steps=4,
    batch=2,
    length=32,
    schedule=Schedule(learning_rate=1e-2),
    shape=dataclasses.replace(SHAPE, positions=32),
    entries=300,
)
PROMPT = torch.tensor([[1, 5, 9]])


@pytest.fixture
def model() -> torch.nn.Module:
    return models.build_llama(SHAPE, seed=1)


@pytest.fixture(scope="module")
def task() -> language_task.LanguageTask:
    return language_task.prepare(data.generated_prose(TINY.characters), settings=TINY)


@pytest.fixture
def traced(monkeypatch):
    """Compile as usual, but let torch run the traced step by itself: a C++ compiler takes a minute."""
    real, asked = torch.compile, []

    def compile_(function, **options):
        asked.append(options)
        options.pop("options")
        return real(function, backend="eager", **options)

    monkeypatch.setattr(torch, "compile", compile_)
    yield asked
    torch.compiler.reset()


@pytest.fixture
def replayed(monkeypatch):
    """A CUDA graph as a CPU can have it: the steps that were recorded are done again in their order."""
    log = []

    def recorded(step, *, undo, device):
        for _ in range(decoders.WARMUPS):
            step()
            undo()
        log.append("recorded")
        written = step().clone()
        undo()  # a capture computes nothing

        def replay():
            log.append("replayed")
            written.copy_(step())

        return written, replay

    monkeypatch.setattr(decoders, "recorded", recorded)
    monkeypatch.setattr(generation.GenerationMethod, "refusal", lambda *_: "")
    return log


def by_hand(model, prompt: torch.Tensor, tokens: int) -> torch.Tensor:
    """Read everything for each token, in float64."""
    model, ids = models.build_llama(SHAPE, seed=1).double(), prompt
    with torch.no_grad():
        for _ in range(tokens):
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
    return ids[:, prompt.shape[1] :]


# The same tokens


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("batch", [1, 2])
def test_every_way_writes_the_tokens_of_a_loop_by_hand(model, traced, replayed, way, batch):
    prompt = torch.tensor([[1, 5, 9], [1, 7, 30]])[:batch]
    expected = by_hand(model, prompt, 12)
    assert len(expected.unique()) > 4
    assert torch.equal(generate(model, prompt, tokens=12, way=way), expected)


@pytest.mark.parametrize("way", [name for name, way in WAYS.items() if way.reader])
def test_a_second_text_is_written_as_if_it_were_the_first(model, traced, replayed, way):
    writer = Writer(model, way, room=20)
    prompts = PROMPT, torch.tensor([[30, 2, 2, 8]]), PROMPT
    for prompt in prompts:
        assert torch.equal(writer(prompt, tokens=9), by_hand(model, prompt, 9))


def test_transformers_goes_on_after_an_end_as_the_other_ways_do(model, monkeypatch):
    ids = generate(model, PROMPT, tokens=20)
    model.generation_config.eos_token_id = int(ids[0, 3])
    plain, ends = model.generate, []

    def asked(*args, **how):
        ends.append(how["eos_token_id"])
        return plain(*args, **how)

    monkeypatch.setattr(model, "generate", asked)
    assert torch.equal(generate(model, PROMPT, tokens=20, way="transformers"), ids)
    assert ends == [40]  # one more than the last token


def test_cold_text_is_the_most_probable_one_and_warm_text_is_drawn_by_the_generator(task):
    model = task.new_model(0)
    prompt = task.held_out[None, :5]

    def drawn(seed: int, way: str = "dynamic", temperature: float = 1.0) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return generate(model, prompt, tokens=20, way=way, temperature=temperature, generator=generator)

    cold = generate(model, prompt, tokens=20)
    assert torch.equal(drawn(0), drawn(0))
    assert torch.equal(drawn(0), drawn(0, way="static"))
    assert not torch.equal(drawn(0), drawn(1))
    assert not torch.equal(drawn(0), cold)
    assert torch.equal(drawn(0, temperature=1e-4), cold)
    with pytest.raises(ValueError, match="torch's global generator"):
        drawn(0, way="transformers")


# What a way does


def test_a_compiled_step_is_one_graph_and_the_prompt_is_not_compiled(model, traced):
    writer = Writer(model, "compiled", room=20)
    assert traced[-1]["fullgraph"] is True
    assert traced[-1]["dynamic"] is False
    lengths = []
    writer.reader.compiled = lambda ids: lengths.append(ids.shape[1]) or writer.reader.plain(ids)
    writer(PROMPT, tokens=6)
    assert lengths == [1] * 5


def test_a_graph_is_recorded_once_and_replayed_for_each_token_but_the_first(model, replayed):
    writer = Writer(model, "graphs", room=20)
    for _ in range(2):
        writer(PROMPT, tokens=5)
    assert replayed == ["recorded", *["replayed"] * 8]


def test_a_warm_up_leaves_no_trace_in_the_cache(model, replayed):
    graphs, static = (Writer(model, way, room=8) for way in ("graphs", "static"))  # 3 + 6 - 1: not a position more
    for writer in (graphs, static):
        writer(PROMPT, tokens=6)
    for one, other in zip(graphs.reader.cache.layers, static.reader.cache.layers, strict=True):
        assert int(one.cumulative_length) == int(other.cumulative_length) == 8
        assert torch.equal(one.keys, other.keys)


def test_a_fixed_cache_stays_where_it_is(model):
    writer = Writer(model, "static", room=20)
    writer(PROMPT, tokens=5)
    places = [layer.keys.data_ptr() for layer in writer.reader.cache.layers]
    writer(PROMPT, tokens=9)
    assert [layer.keys.data_ptr() for layer in writer.reader.cache.layers] == places
    assert writer.reader.cache.layers[0].keys.shape == (1, 2, 20, 4)


def test_no_cache_reads_all_and_the_others_read_what_is_new(model):
    seen = []
    model.register_forward_pre_hook(lambda _, args, kwargs: seen.append(kwargs["input_ids"].shape[1]), with_kwargs=True)
    generate(model, PROMPT, tokens=4, way="no-cache")
    assert seen == [3, 4, 5, 6]
    seen.clear()
    generate(model, PROMPT, tokens=4, way="static")
    assert seen == [3, 1, 1, 1]


def test_the_recipe_holds_while_it_writes(model):
    dtypes = set()
    model.lm_head.register_forward_hook(lambda module, args, out: dtypes.add(out.dtype))
    generate(model, PROMPT, tokens=3, recipe=RECIPES["bf16-mixed"])
    assert dtypes == {torch.bfloat16}


# Refusals


def test_what_does_not_fit_is_refused_before_anything_is_written(model):
    for way in ("static", "compiled"):
        writer = Writer(model, way, room=8)
        with pytest.raises(ValueError, match="9 positions do not fit into a cache of 8"):
            writer(PROMPT, tokens=7)
    assert len(Writer(model, "dynamic", room=8)(PROMPT, tokens=7)[0]) == 7


def test_a_graph_is_refused_on_a_cpu_and_for_weights_that_are_cast_for_each_token(model):
    with pytest.raises(ValueError, match=r"graphs: a CUDA graph records .* not of a cpu; take static"):
        Writer(model, "graphs")
    cuda = torch.device("cuda")
    assert WAYS["graphs"].refusal(RECIPES["bf16-true"], cuda) == ""
    assert "take bf16-true" in WAYS["graphs"].refusal(RECIPES["bf16-mixed"], cuda)


@pytest.mark.parametrize("emulated", [True, False])
def test_a_compiled_step_is_refused_where_products_are_emulated_beyond_its_sight(model, monkeypatch, emulated):
    monkeypatch.setattr(Recipe, "emulated", lambda recipe, device: emulated)
    said = WAYS["compiled"].refusal(RECIPES["16-true"], CPU)
    assert said == (
        ""
        if not emulated
        else "compiled: this CPU's float16 products are emulated beyond the compiler's sight; take static"
    )
    assert WAYS["compiled"].refusal(RECIPES["32-true"], CPU) == ""


def test_an_unknown_way_is_refused(model):
    with pytest.raises(ValueError, match="unknown way 'fast'; the known ones are no-cache, dynamic"):
        Writer(model, "fast")


# Texts


def test_what_is_written_is_what_is_generated_after_a_begin(task):
    model, prompt = task.new_model(0), "One windy evening"
    ids = torch.tensor([[tokenizers.BEGIN, *task.tokenizer(prompt)["input_ids"]]])
    tokens = generate(model, ids, tokens=9)[0]
    assert tokenizers.END not in tokens
    assert generation.write(model, task.tokenizer, prompt, tokens=9) == task.tokenizer.decode(tokens)


def test_writing_stops_where_the_model_ends_the_piece(task, monkeypatch):
    ids = [*task.tokenizer("So they went home.")["input_ids"], tokenizers.END, 50, 51]
    monkeypatch.setattr(generation, "generate", lambda *_, **__: torch.tensor([ids]))
    assert generation.write(task.new_model(0), task.tokenizer, "x") == "So they went home."


def test_the_first_difference_is_a_place_or_none():
    ids = torch.tensor([[4, 5, 6, 7]])
    assert generation.first_difference(ids, ids) is None
    assert generation.first_difference(ids, torch.tensor([[4, 5, 0, 0]])) == 2


# Times


def test_a_timing_has_a_sample_for_each_repeat_and_a_rate(model):
    found = generation.writing_time(model, PROMPT, tokens=2, recipe=RECIPES["32-true"], repeats=3, way="static")
    assert len(found.samples) == 3
    time = generation.TokenTime("32-true", 10, dataclasses.replace(found, samples=(100.0, 100.0)), emulated=False)
    assert time.per_second == 100


@pytest.mark.gpu
@pytest.mark.parametrize("way", [way for way in WAYS if way != "compiled"])  # that is in a file of its own
def test_every_way_writes_the_same_tokens_on_a_gpu(way):
    model = models.build_llama(SHAPE, seed=1).cuda()
    assert torch.equal(generate(model, PROMPT.cuda(), tokens=12, way=way).cpu(), by_hand(model, PROMPT, 12))
