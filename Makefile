# Each target sets up what it needs; a second call finds everything in place. Only relative paths: the folder's
# name may hold a space.
PYTHON := .venv/bin/python
export OMP_WAIT_POLICY := PASSIVE
.DEFAULT_GOAL := help
.PHONY: help set-up book pdf epub serve lab live record classroom check test audit bench sweep

help:
	@echo "make book    build the HTML book from the committed outputs; prints the page to open"
	@echo "make pdf     print the whole book into one PDF, with the browser of the tests"
	@echo "make epub    the whole book as an EPUB, for readers of electronic books"
	@echo "make check   style, layers, form, and the tests of what you changed; at most 3 minutes"
	@echo "make test    run all tests: units, notebooks, and the built pages in a real browser"
	@echo "make serve   show the built book on a local port"
	@echo "make lab     open the notebooks in JupyterLab"
	@echo "make live    run every notebook on this machine and build the book with its results"
	@echo "make record  record what the book wants of a GPU, in the time there is: ARGS=\"--minutes 50\""
	@echo "make classroom  write the exercises without solutions, to hand out or for nbgrader"
	@echo "make audit   look the pinned packages up among the known vulnerabilities"
	@echo "make bench   run the benchmarks; each prints ratios to its limit and to its peers"
	@echo "make sweep   check rounding on all 2**32 float32 inputs (hours)"
	@echo "Each of them first sets up .venv in this folder: some minutes the first time, 0.1 s later."

set-up:
	@command -v python3 > /dev/null || { echo "python3 is missing: install Python 3.11, 3.12 or 3.13." >&2; exit 1; }
	@python3 tools/set_up.py

book: set-up
	@$(PYTHON) tools/build.py

pdf: book
	@python3 tools/set_up.py --browser
	@$(PYTHON) tools/pdf.py

epub: book
	@$(PYTHON) tools/epub.py

serve: book
	@$(PYTHON) tools/serve.py

lab: set-up
	@$(PYTHON) -m jupyterlab --notebook-dir=book $$([ "$$(id -u)" != 0 ] || echo --allow-root)

live: set-up
	@$(PYTHON) tools/live.py

record: set-up
	@$(PYTHON) -m utils.experiments.record_all $(ARGS)

classroom: set-up
	@$(PYTHON) tools/classroom.py

check: set-up
	@$(PYTHON) tools/run_tests.py --changed

test:
	@command -v python3 > /dev/null || { echo "python3 is missing: install Python 3.11, 3.12 or 3.13." >&2; exit 1; }
	@python3 tools/set_up.py --browser
	@$(PYTHON) tools/run_tests.py

audit: set-up
	@$(PYTHON) tools/audit.py

bench: set-up
	@$(PYTHON) tools/run_benchmarks.py

sweep: set-up
	@$(PYTHON) -m pytest tests -m sweep -s
