"""A local page for people who do not write code; every step runs a command of metrifair in a
process of its own.

commands, scripts: choices of the page -> commands and Python; child: limits of a process; session:
one file, its steps and their results; messages: sentences of commands -> sentences of the page;
page_texts: texts of its script; access: tokens, key and tickets; folders: private folders; server:
requests and answers; page.html, studio.css, studio.js: the page.
"""
