"""One drawing per chapter that carries its idea; `In pictures` shows them all. A module per part of the book."""
