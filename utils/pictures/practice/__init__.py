"""The pictures of Part V, a module per chapter."""
