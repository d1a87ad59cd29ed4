"""ssdeep's hashes of bytes, as other tools write and compare them."""

from types import ModuleType

from shinglefold.errors import InputError, MissingExtra


def ssdeep(data: bytes) -> str:
    """Return ``size:letters:letters`` for some bytes.

    Cost: about 1 µs a byte; ppdeep is written in Python.

    Raises:
        MissingExtra: ppdeep is not installed.
    """
    return str(_ppdeep().hash(data))


def similarity(one: str, other: str) -> float:
    """Return ssdeep's score of two hashes as a share, 0 to 1.

    Raises:
        InputError: one is no such hash.
        MissingExtra: ppdeep is not installed.
    """
    try:
        return float(_ppdeep().compare(one, other)) / 100.0
    except ValueError as error:
        raise InputError(f"no hash of ssdeep's: {error}") from error


def _ppdeep() -> ModuleType:
    try:
        import ppdeep
    except ImportError as error:
        raise MissingExtra("hashes", "ssdeep's format") from error
    module: ModuleType = ppdeep
    return module
