"""Generated English: movie reviews with a mood, and small stories; for machines that have no data and no network.

A review is a few clauses from a template grammar. Its label is the mood of its last word on the matter, so a bag of
words reaches about 86 %: negations ("not at all dull"), contrasts ("the plot was thin, but the acting was superb"),
hype ("critics called it brilliant") and sarcasm have to be read in order.
"""

# ruff: noqa: SIM905 - long word lists read better as text than as lists

import random
from dataclasses import dataclass

LIKED, DISLIKED = 1, 0

STRONG = {
    LIKED: (
        "brilliant wonderful gripping moving charming clever stunning superb delightful excellent memorable inspired "
        "witty graceful thrilling sharp tender dazzling fresh satisfying"
    ).split(),
    DISLIKED: (
        "dull tedious clumsy awful boring lifeless shallow predictable dreadful messy forgettable lazy painful wooden "
        "pointless bland grating stale hollow tiresome"
    ).split(),
}
WEAK = {
    LIKED: "fine decent pleasant watchable competent likable tidy capable".split(),
    DISLIKED: "slow uneven thin ordinary noisy rushed plain dated".split(),
}
VERDICT = {
    LIKED: (
        "i would happily watch it again|worth every minute|go and see it|it stayed with me for days|"
        "i left the cinema smiling|do not miss it|i could not look away"
    ).split("|"),
    DISLIKED: (
        "i want my money back|two hours i will never get back|save your evening|i checked my watch constantly|"
        "i nearly walked out|do not bother|i could not wait for it to end"
    ).split("|"),
}
ASPECT = (
    "acting|plot|script|soundtrack|camera work|editing|dialogue|pacing|ending|cast|lead actor|directing|story|score|"
    "humour|third act|opening scene|villain|set design|romance"
).split("|")
ADVERB = "truly really quite utterly rather surprisingly consistently oddly genuinely plainly".split()
HERO = (
    "retired detective|young teacher|baker|small town doctor|jazz singer|lonely pilot|lighthouse keeper|fisherman|"
    "chess player|nurse|carpenter|librarian"
).split("|")
DEED = (
    "returns home|falls in love|inherits an old house|loses everything|hunts for the truth|starts over|"
    "crosses the desert|opens a cafe|uncovers a family secret|meets a stranger"
).split("|")
SETTING = (
    "in lisbon|during the war|by the sea|in a small town|in the nineties|over one long summer|in the mountains|"
    "after midnight|in the far north|on a train"
).split("|")
NEGATION = "not|never|hardly|far from|anything but|not at all|by no means".split("|")
SARCASM = (
    "oh great , yet another {bad} sequel|what a {good} way to waste an evening|"
    "if you enjoy watching paint dry , this is {good}|a {good} cure for insomnia|{good} , if you are five years old"
).split("|")
HYPE = (
    "the trailer promised something {word}|critics called it {word}|my friends said it was {word}|"
    "the poster looked {word}|i expected something {word}"
).split("|")
CONTRAST = ("{first} , but {last}", "although {first} , {last}", "{first} . still , {last}")


@dataclass(frozen=True)
class Mix:
    """How often each construction occurs, and the share of labels that are wrong.

    With negations at 0.2 or above, training sits on a plateau at 87 % and leaves it at a moment that the seed decides:
    luck would look like an effect of the precision.
    """

    plot: float = 0.5
    hype: float = 0.25
    sarcasm: float = 0.12
    contrast: float = 0.3
    weak: float = 0.6
    negation: float = 0.1
    adverb: float = 0.35
    verdict: float = 0.3
    wrong_label: float = 0.03


def reviews(count: int, *, seed: int, mix: Mix | None = None) -> tuple[list[str], list[int]]:
    """Return `count` generated reviews and their labels (1 liked, 0 disliked); the same seed gives the same ones."""
    mix = mix or Mix()
    rng = random.Random(seed)
    texts, labels = [], []
    for _ in range(count):
        label = rng.choice((LIKED, DISLIKED))
        texts.append(_review(rng, label, mix))
        labels.append(1 - label if rng.random() < mix.wrong_label else label)
    return texts, labels


def _review(rng: random.Random, label: int, mix: Mix) -> str:
    parts = []
    if rng.random() < mix.plot:
        parts.append(f"a {rng.choice(HERO)} {rng.choice(DEED)} {rng.choice(SETTING)}")
    if rng.random() < mix.hype:  # what others said tells nothing about the label
        parts.append(rng.choice(HYPE).format(word=rng.choice(STRONG[rng.choice((LIKED, DISLIKED))])))
    parts += _opinion(rng, label, mix)
    if rng.random() < mix.verdict:
        parts.append(rng.choice(VERDICT[label]))
    return " . ".join(parts) + " ."


def _opinion(rng: random.Random, label: int, mix: Mix) -> list[str]:
    if label == DISLIKED and rng.random() < mix.sarcasm:
        words = {"good": rng.choice(STRONG[LIKED]), "bad": rng.choice(STRONG[DISLIKED])}
        parts = [rng.choice(SARCASM).format(**words)]
        return [*parts, _clause(rng, label, mix)] if rng.random() < 0.5 else parts
    if rng.random() < mix.contrast:  # the second half decides
        first = _weak_clause(rng, 1 - label, mix) if rng.random() < mix.weak else _clause(rng, 1 - label, mix)
        return [rng.choice(CONTRAST).format(first=first, last=_clause(rng, label, mix))]
    return [_clause(rng, label, mix) for _ in range(rng.choice((1, 2)))]


def _clause(rng: random.Random, mood: int, mix: Mix) -> str:
    if rng.random() < mix.negation:
        return f"the {rng.choice(ASPECT)} was {rng.choice(NEGATION)} {rng.choice(STRONG[1 - mood])}"
    return f"the {rng.choice(ASPECT)} was {_adverb(rng, mix)}{rng.choice(STRONG[mood])}"


def _weak_clause(rng: random.Random, mood: int, mix: Mix) -> str:
    return f"the {rng.choice(ASPECT)} was {_adverb(rng, mix)}{rng.choice(WEAK[mood])}"


def _adverb(rng: random.Random, mix: Mix) -> str:
    return f"{rng.choice(ADVERB)} " if rng.random() < mix.adverb else ""


PERSON = "miller baker sailor weaver shepherd gardener painter fiddler".split()
OTHER = "old woman|young boy|tall stranger|quiet girl|tired soldier|merry cook".split("|")
PLACE = "old bridge|market square|empty mill|harbour wall|forest path|stone well".split("|")
HOUR = "One morning|One evening|Late in autumn|On the first day of spring|After the storm|Before sunrise".split("|")
SKY = (
    "It was late, and the moon was bright over the roofs.|The rain had stopped, and the road shone.|"
    "A cold wind came from the hills.|The sun was warm on the stones.|Fog lay on the river."
).split("|")
THING = "blue stone|silver key|loaf of bread|broken clock|small lamp|letter without a name".split("|")
ASKS = (
    "Tell me what you see|Will you walk with me|Who lost this|How far is the sea|What would you give for it|"
    "Do you remember the song"
).split("|")
ANSWERS = (
    "I see a road and nothing more|Only if we are home before dark|It was mine when I was young|"
    "Two days on foot, and one in a cart|All that I have, which is little|I remember every word"
).split("|")
END = (
    "They laughed, and the day was short.|Then they went home without another word.|"
    "The bell rang, and the story was over.|From then on they met there every week.|Nobody in the town ever knew."
).split("|")


def story(rng: random.Random) -> str:
    """Return one generated story of six sentences."""
    person, other, thing = rng.choice(PERSON), rng.choice(OTHER), rng.choice(THING)
    return (
        f"{rng.choice(HOUR)} the {person} walked to the {rng.choice(PLACE)}. {rng.choice(SKY)} "
        f"In one hand the {person} carried a {thing}. "
        f'"{rng.choice(ASKS)}," said the {person} to the {other}. '
        f'"{rng.choice(ANSWERS)}," said the {other}, and looked at the {thing}. {rng.choice(END)}'
    )


def stories(characters: int, *, seed: int) -> str:
    """Return at least `characters` characters of stories, one a line; the same seed gives the same text."""
    rng = random.Random(seed)
    lines, length = [], 0
    while length < characters:
        lines.append(story(rng))
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"
