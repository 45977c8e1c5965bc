"""The code of the book: each module says in its first line what it holds, and imports only from the floors below it."""
