"""Sphinx extension: what the theme's pages need to be light, complete offline and accessible."""
def setup(app):
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
