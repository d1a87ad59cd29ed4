"""Distributions as an installer lays them out, whose entry points bring languages."""

from pathlib import Path


def install(folder: Path, name: str, *points: str) -> Path:
    """Install a distribution into a folder, and return the folder of its metadata."""
    info = folder / f"{name.replace('-', '_')}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text("\n".join(["[shinglefold.languages]", *points]))
    return info
