"""The book's widgets: one Python file, one ES module and one style sheet for each."""
