"""The pictures of Part IV, a module per chapter."""
