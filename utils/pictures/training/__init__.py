"""The pictures of Part II, a module per chapter."""
