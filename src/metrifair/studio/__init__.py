"""A local page for people who do not write code; every step runs a command of metrifair in a process of its own.

commands: choices of the page -> commands and Python; child: limits of a process; session: one file, its steps and their
results; server: who may ask, and what is answered; page.html, studio.css, studio.js: the page.
"""
