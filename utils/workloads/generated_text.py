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


# A story: who, where, what is carried, a question, an answer, and an end that refers back to all of them. Each animal
# has something of its own, each place its own weather: a reader who counts nothing sees what a damaged model forgets.
WALKER = {
    "fox": ("she", "silver key", "It opens a door that nobody has found."),
    "owl": ("she", "small lamp", "It burns as long as someone tells a story."),
    "goose": ("she", "green bottle", "There is a letter in it from the sea."),
    "hare": ("he", "broken clock", "It is right twice a day, and that is enough."),
    "mole": ("he", "blue stone", "It fell from the sky and is still warm."),
    "frog": ("he", "wooden flute", "It knows only one song, but a good one."),
}
ASKER = {
    "goat": ("she", "warm scarf"),
    "heron": ("she", "pair of boots"),
    "cat": ("she", "bowl of milk"),
    "badger": ("he", "loaf of bread"),
    "bear": ("he", "jar of honey"),
    "wolf": ("he", "bag of nuts"),
}
FORM = {"she": ("her", "her"), "he": ("his", "him")}  # what belongs to her or him; given to her or him
HOUR = (
    "One morning in May|One windy evening|Late on a winter night|On the first day of autumn|After the long rain|"
    "Before the sun was up"
).split("|")
PLACE = {
    "down to the old mill": "The wheel was turning, and nobody was at home.|Flour lay on the steps like snow.",
    "to the harbour": "The boats were asleep, and the gulls were not.|Fog hid everything but one window.",
    "up the hill": "The whole valley lay below in the sun.|The wind had swept all the clouds away.",
    "into the forest": "It was dark there, and smelled of mushrooms.|A woodpecker was counting to a hundred.",
    "along the river": "The water was high and in a hurry.|The moon was swimming between the reeds.",
    "to the market": "The stalls were closed, but one apple was left.|Somebody had lost a single red glove.",
}
CARRIED = (
    "Under {its} arm {it} carried a {thing}.",
    "In {its} bag {it} had a {thing}.",
    "As always, {it} had {its} {thing} with {itself}.",
)
ASKED = ("What have you got there", "What is that", "What do you carry about all day")
THOUGHT = ("thought for a while", "laughed", "said nothing for a long time", "came a step closer")
AGREED = ("Yes, if you are kind to it", "Yes, but only until tomorrow", "Take it, then")
REFUSED = ("No, I would miss it too much", "No, not for all the world", "Ask me again next year")
END = {
    True: "So the {other} went home with a {thing}, and the {hero} with a {offer}.",
    False: "So the {other} went home with {his} {offer}, and the {hero} with {its} {thing}.",
}


def story(rng: random.Random) -> str:
    """Return one generated story: two animals meet, and one of them would like to have what the other carries."""
    hero, other, place = (rng.choice(tuple(words)) for words in (WALKER, ASKER, PLACE))
    it, thing, tale = WALKER[hero]
    he, offer = ASKER[other]
    is_named = rng.random() < 0.5
    words = {"hero": hero, "other": other, "thing": thing, "offer": offer, "it": it}
    words |= {"its": FORM[it][0], "itself": FORM[it][1], "his": FORM[he][0]}
    parts = (
        f"{rng.choice(HOUR)} the {{hero}} went {place}.",
        rng.choice(PLACE[place].split("|")),
        rng.choice(CARRIED),
        "There {it} met the {other}.",
        f'"{rng.choice(ASKED)}?" asked the {{other}}.',
        f'"A {{thing}}," said the {{hero}}. "{tale}"',
        f"The {{other}} {rng.choice(THOUGHT)}.",
        '"Will you give it to me for a {offer}?"',
        f'"{rng.choice(AGREED if is_named else REFUSED)}," said the {{hero}}.',
        END[is_named],
    )
    return " ".join(parts).format(**words)


def stories(characters: int, *, seed: int) -> str:
    """Return at least `characters` characters of stories, one a line; the same seed gives the same text."""
    rng = random.Random(seed)
    lines, length = [], 0
    while length < characters:
        lines.append(story(rng))
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"
