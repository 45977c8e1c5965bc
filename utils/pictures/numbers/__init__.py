"""The pictures of Part I, a module per chapter."""
