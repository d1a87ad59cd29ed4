"""An index as the first version of the embedded engine made it."""

import tarfile
from pathlib import Path
from typing import Any

_PACKED = Path(__file__).parents[1] / "engines" / "format1.tar.xz"


def unpack_first_format(folder: Path) -> None:
    """Put it into a folder."""
    # Python 3.11 knows filters from 3.11.4 on, and the archive is ours.
    more: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(_PACKED) as packed:
        packed.extractall(folder, **more)
