"""`make record`: fill the book's GPU figures with one command, in the time there is."""
