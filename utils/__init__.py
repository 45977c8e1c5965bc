"""The code of the book, in layers: each module says in its first line what it holds. ARCHITECTURE.md has the order."""
