"""The book's widgets: a folder for each, and `shared` for what several use."""
