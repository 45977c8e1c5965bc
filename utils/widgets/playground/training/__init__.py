"""The training behind the playground, in the page and in Python, bit for bit."""
