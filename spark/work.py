"""What a job keeps on the way: each stage is written once, and read from there by those that follow."""

from dataclasses import dataclass, field
from typing import Any

from shinglefold.errors import ConfigError
from shinglefold.spark.frames import Frame, Session

#: A file by which a folder is known for one that work was done in.
_MARK = "_shinglefold"


@dataclass(slots=True)
class Work:
    """A folder of a file system that all machines of a cluster see.

    What is computed twice may come out in another order; what is kept does not.

    Args:
        folder: as Spark names it, such as ``hdfs:///tmp/groups`` or ``s3a://bucket/groups``; made where it
            is not there. Stages of an earlier job in it are replaced; a folder that holds anything else is
            refused by a ``ConfigError``.
    """

    session: Session
    folder: str
    _kept: list[str] = field(default_factory=list)

    def keep(self, frame: Frame, name: str) -> Frame:
        """Compute a frame, write it as Parquet, and return what reads it."""
        if not self._kept:
            self._begin()
        place = f"{self.folder.rstrip('/')}/{name}"
        frame.write.mode("overwrite").parquet(place)
        if place not in self._kept:
            self._kept.append(place)
        return self.session.read.parquet(place)

    def remove(self) -> None:
        """Remove what was kept, and the folder where nothing else is in it."""
        for place in self._kept:
            system, path = place_of(self.session, place)
            system.delete(path, True)
        system, folder = place_of(self.session, self.folder)
        if self._kept and [one.getPath().getName() for one in system.listStatus(folder)] == [_MARK]:
            system.delete(folder, True)
        self._kept.clear()

    def _begin(self) -> None:
        system, folder = place_of(self.session, self.folder)
        mark = folder.suffix(f"/{_MARK}")
        if system.exists(folder) and not system.exists(mark) and len(system.listStatus(folder)):
            raise ConfigError(f"{self.folder} holds other files: name an empty or a new folder with --work")
        system.create(mark, True).close()


def place_of(session: Session, address: str) -> tuple[Any, Any]:
    """Return the file system of an address, and its path there, whole."""
    files = session._jvm.org.apache.hadoop.fs  # noqa: SLF001 - Spark has no other door to it
    path = files.Path(address)
    system = path.getFileSystem(session._jsc.hadoopConfiguration())  # noqa: SLF001
    return system, system.makeQualified(path)
