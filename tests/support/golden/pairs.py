"""What ``shinglefold groups --pairs --json`` prints, byte for byte but for what decided and titles."""

import re
from pathlib import Path
from typing import Any

from support.golden.corpora import digest, file_of, in_blocks, printed

#: Every corpus under the default of the first indices; the other presets on the smallest one.
PRESETS = {
    "libreoffice-ru": ("once",),
    "libreoffice-zh-cn": ("once",),
    "gnome-uk": ("once", "classic", "fetterly"),
}
_BLOCK = 200


def pairs(folder: Path, corpus: str) -> dict[str, Any]:
    """Return by preset how many pairs are printed, a digest of all, and one of each 200 in order."""
    found = {}
    for preset in PRESETS[corpus]:
        out = printed("groups", "--pairs", "--json", "--preset", preset, file_of(folder, corpus))
        out = re.sub(rb', "decided_by": "\w+"(, "title_a": .*)?}\n', b"}\n", out)
        lines = out.decode().splitlines()
        found[preset] = {"pairs": len(lines), "all": digest(out), "blocks": in_blocks(lines, _BLOCK)}
    return found
