"""Signatures of files by OpenSSH's ``ssh-keygen``, which does all of the cryptography."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from metrifair.errors import DataError

_PURPOSE = "metrifair-evidence"  # a signature for anything else is not valid here
_SIGNER = "signer"
_SECONDS = 60


def sign(content: bytes, key: str | os.PathLike[str]) -> bytes:
    """The signature of the content by a private key, or by the agent with the key of a .pub
    file.
    """
    with tempfile.TemporaryDirectory(prefix="metrifair-") as name:
        file = Path(name, "content")
        file.write_bytes(content)
        done = _run("-Y", "sign", "-q", "-f", os.fspath(key), "-n", _PURPOSE, os.fspath(file))
        signature = Path(name, "content.sig")
        if done.returncode or not signature.is_file():
            raise DataError(
                f"ssh-keygen cannot sign with {os.fspath(key)}: {_reason(done)}", argument="sign"
            )
        return signature.read_bytes()


def is_signed_by(content: bytes, signature: bytes, key: str | os.PathLike[str]) -> bool:
    """Whether the signature of the content was made by the private part of this public key."""
    try:
        public = Path(key).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the public key {os.fspath(key)}: {error}", argument="verify_key"
        ) from None
    if len(public.splitlines()) != 1 or not public.startswith(("ssh-", "ecdsa-", "sk-")):
        raise DataError(
            f"{os.fspath(key)} is not the public key of one person",
            argument="verify_key",
            remedy="name a .pub file",
        )
    with tempfile.TemporaryDirectory(prefix="metrifair-") as name:
        signers = Path(name, "signers")
        signed = Path(name, "content.sig")
        signers.write_text(f"{_SIGNER} {public}\n", encoding="utf-8")
        signed.write_bytes(signature)
        options = ["-f", os.fspath(signers), "-I", _SIGNER, "-n", _PURPOSE, "-s", os.fspath(signed)]
        return _run("-Y", "verify", *options, content=content).returncode == 0


def _run(*arguments: str, content: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise DataError(
            "signatures need ssh-keygen, which is not on the PATH",
            remedy="install OpenSSH 8.2 or later",
        )
    try:
        return subprocess.run(
            [program, *arguments], input=content, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise DataError(f"ssh-keygen failed: {error}") from error


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    if lines:
        return lines[-1]
    return f"exit code {done.returncode}"
