"""Adds a software bill of materials to the wheel (PEP 770): the package and what it requires."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def bill_of_materials(core: Any, version: str) -> dict[str, Any]:
    """A CycloneDX document. Requirements have a range instead of a version: who installs the
    wheel chooses versions.
    """
    purl = f"pkg:pypi/{core.name}@{version}"
    required = _components(core.dependencies, "required")
    texts = [text for extra in core.optional_dependencies.values() for text in extra]
    others = [text for text in texts if _package(text) != core.name]  # extras name extras
    optional = _components(others, "optional")
    own = {
        "type": "library",
        "bom-ref": purl,
        "name": core.name,
        "version": version,
        "purl": purl,
        "licenses": [{"expression": core.license_expression}],
    }
    references = [component["bom-ref"] for component in required]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [
            *required,
            *(part for part in optional if part["bom-ref"] not in references),
        ],
        "dependencies": [{"ref": purl, "dependsOn": references}],
    }


def _package(requirement: str) -> str:
    return _NAME.match(requirement)[0].lower()


def _components(requirements: list[str], scope: str) -> list[dict[str, Any]]:
    """One component a package, with all texts that require it."""
    texts_by_package: dict[str, set[str]] = {}
    for requirement in requirements:
        texts_by_package.setdefault(_package(requirement), set()).add(requirement)
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}",
            "name": name,
            "purl": f"pkg:pypi/{name}",
            "scope": scope,
            "properties": [{"name": "python:requirement", "value": text} for text in sorted(texts)],
        }
        for name, texts in sorted(texts_by_package.items())
    ]


class BillOfMaterials(BuildHookInterface):
    """The hook that hatchling calls before it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the document, and name it as a file of the wheel."""
        if version != "standard":
            return
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / f"{self.metadata.core.name}.cdx.json"
        document = bill_of_materials(self.metadata.core, self.metadata.version)
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Remove the document, which the wheel now contains."""
        if version == "standard":
            self._folder.cleanup()
