"""In the place of a package that jsonschema imports where it can, for a kind of address that no notebook has.

It builds 38 grammars when it is imported: 2 of the 2.3 s that `import nbformat` takes, in each of many processes.
`tools/run_tests.py` puts this folder before the installed packages.
"""

raise ImportError("not needed by the tests")
