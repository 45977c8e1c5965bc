"""One drawing per chapter that carries its idea, in the folders of `book/`; `In pictures` shows them all."""
