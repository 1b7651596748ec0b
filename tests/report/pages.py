"""Looking into pages: their elements, the text of their scripts, the values that they carry."""

import json
import re
from html.parser import HTMLParser

HOSTILE_NAMES = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!--",
    "]]>",
    "a\u2028b\u2029c",
    "&lt;b&gt;",
    "$policy ${data}",
    "\\u003c",
    "ü ☃ 𝔘",
    "\" onclick='alert(1)'",
]


class Parsed(HTMLParser):
    """Elements with their attributes, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append((self.elements[-1][0] if self.elements else "", data))


def embedded(text, block="data"):
    (found,) = re.findall(
        rf'<script type="application/json" id="{block}">(.*?)</script>', text, re.DOTALL
    )
    return json.loads(found)


def strings(value):
    if isinstance(value, dict):
        return [text for part in value.values() for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def outside_references(text):
    """Addresses, and elements that would load something."""
    plain = re.sub(r"'sha256-[^']*'", "", text)  # a hash may hold any letters, // among them
    plain = re.sub(r"^\s*// .*$", "", plain, flags=re.MULTILINE)
    loading = [
        tag
        for tag, attributes in Parsed(text).elements
        if "src" in attributes or attributes.get("href", "data:,") != "data:,"
    ]
    return re.findall(r"https?:|//[a-z]|@import|url\(", plain) + loading


def without_figures(texts):
    """Texts that say that something is not a number."""
    return [
        part
        for part in texts
        if re.search(r"\b(nan|inf|infinity|none|null|undefined)\b", part, re.IGNORECASE)
        and "None of the" not in part
    ]
