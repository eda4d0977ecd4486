"""Files are written under a temporary name and renamed: nobody ever sees half of one."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchkit.errors import UserError


def write(path: str, text: str, inputs: Iterable[str] = ()) -> None:
    """Writes a whole file, or leaves what was there; refuses to overwrite one of `inputs`."""
    target = Path(path)
    if any(target.exists() and Path(i).exists() and target.samefile(i) for i in inputs):
        raise UserError(f"{path}: this is an input; it is not overwritten")
    name = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".partial")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
