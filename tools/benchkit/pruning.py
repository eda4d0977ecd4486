"""Old nights, packed: every raw file becomes `.json.gz` with the same bytes inside.

Nothing that was measured goes: an original is removed only after its packed twin was read back.
Journals, nights under way and single result files are left alone. Done twice, it does nothing.
"""

import gzip
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchkit.errors import UserError
from benchkit.index import NIGHT_NAME


def candidates(folder: Path, days: int) -> list[Path]:
    """Raw files of the nights in a machine's folder that are older than that, oldest first."""
    limit = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y%m%d")
    nights = (path for path in folder.glob("*_*/") if NIGHT_NAME.fullmatch(path.name))
    old = (night for night in sorted(nights) if re.sub(r"\D", "", night.name)[:8] < limit)
    return [file for night in old for file in sorted(night.glob("*.json"))]


def pack(files: Sequence[Path]) -> int:
    """Their size afterwards. When it is interrupted, each file is either packed or not."""
    return sum(map(_pack, files))


def _pack(file: Path) -> int:
    packed, partial = file.with_name(file.name + ".gz"), file.with_name(file.name + ".gz.partial")
    try:
        data = file.read_bytes()
        partial.write_bytes(gzip.compress(data, mtime=0))  # the same bytes on every machine
        if gzip.decompress(partial.read_bytes()) != data:
            raise UserError(f"{partial}: was not written as it should be; {file.name} stays")
        partial.replace(packed)
        file.unlink()
    except OSError as error:
        raise UserError(f"{file}: cannot be packed: {error.strerror}") from error
    return packed.stat().st_size
