"""The pictures of Part III, a module per chapter."""
