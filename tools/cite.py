"""Write the public address of _config.yml into CITATION.cff and README.md, or take it out where none is set.

Those two are read where nothing is built. Usage: .venv/bin/python tools/cite.py; tests/tools/test_cite.py fails until
it ran.
"""

import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

FIELDS = {"url": "site", "repository-code": "repository"}  # a field of CITATION.cff -> what `address` calls it
CITE = "To cite the book: [CITATION.cff](CITATION.cff)."
CITED = re.compile(re.escape(CITE) + r".*")


def address():
    """Return the addresses that _config.yml names: `site` (html.baseurl) and `repository` (repository.url).

    Raises: ValueError for one that is not https.
    """
    from book_address import checked

    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    named = {"site": config["html"].get("baseurl"), "repository": config.get("repository", {}).get("url")}
    places = {name: checked(value) for name, value in named.items() if value}
    if "repository" in places:
        places["repository"] = places["repository"].rstrip("/")
    return places


def citation(text, places):
    """The text of CITATION.cff with a line for each address that is set, after its type."""
    kept = [line for line in text.splitlines() if line.split(":")[0] not in FIELDS]
    added = [f"{field}: {places[key]}" for field, key in FIELDS.items() if key in places]
    after = next(at for at, line in enumerate(kept) if line.startswith("type:")) + 1
    return "\n".join(kept[:after] + added + kept[after:]) + "\n"


def readme(text, places):
    """The text of README.md whose line on citing the book names the address that is set."""
    place = places.get("site") or places.get("repository")
    return CITED.sub(f"{CITE} The book is at <{place}>." if place else CITE, text)


FILES = {"CITATION.cff": citation, "README.md": readme}


def main():
    """Write both files."""
    places = address()
    for name, write in FILES.items():
        path = ROOT / name
        path.write_text(write(path.read_text("utf8"), places), "utf8")
    print(f"CITATION.cff and README.md name {places.get('site') or places.get('repository') or 'no address'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
