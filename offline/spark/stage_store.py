"""The stages of a job, each written once, so that later stages read the same rows."""

from dataclasses import dataclass, field
from uuid import uuid4

from shinglefold.errors import ConfigError
from shinglefold.offline.spark.session import Frame, Session, place_of

#: A file by which a folder is known for one that work was done in.
_MARK = "_shinglefold"


@dataclass(slots=True)
class StageStore:
    """A folder of a file system that all machines of a cluster see.

    Rows computed twice may come in another order; rows that are kept do not.

    Args:
        folder: as Spark names it, such as ``hdfs:///tmp/groups`` or ``s3a://bucket/groups``; made where it
            is not there. Stages of an earlier job in it are replaced; a folder that holds anything else is
            refused by a ``ConfigError``.
    """

    session: Session
    folder: str
    _kept: list[str] = field(default_factory=list)
    _name: str = field(default_factory=lambda: uuid4().hex)

    def keep(self, frame: Frame, name: str) -> Frame:
        """Compute a frame, write it as Parquet, and return what reads it."""
        if not self._kept:
            self._begin()
        self._check_own()
        place = f"{self.folder.rstrip('/')}/{name}"
        if place not in self._kept:
            # Before it is written, as what a failure leaves of it is removed, too.
            self._kept.append(place)
        frame.write.mode("overwrite").parquet(place)
        self._check_own()
        return self.session.read.parquet(place)

    def remove(self) -> None:
        """Remove what was kept, and the folder where nothing else is in it.

        Nothing is removed where another job has taken the folder over.
        """
        if self._kept and self._taken_by() == self._name:
            for place in self._kept:
                system, path = place_of(self.session, place)
                system.delete(path, True)
            system, folder = place_of(self.session, self.folder)
            if [one.getPath().getName() for one in system.listStatus(folder)] == [_MARK]:
                system.delete(folder, True)
        self._kept.clear()

    def _begin(self) -> None:
        system, folder = place_of(self.session, self.folder)
        mark = folder.suffix(f"/{_MARK}")
        if system.exists(folder) and not system.exists(mark) and len(system.listStatus(folder)):
            raise ConfigError(f"{self.folder} holds other files: name an empty or a new folder with --work")
        written = system.create(mark, True)
        written.writeBytes(self._name)
        written.close()

    def _taken_by(self) -> str:
        """Return the name of the job that the folder is of, as its mark says."""
        system, folder = place_of(self.session, self.folder)
        mark = folder.suffix(f"/{_MARK}")
        if not system.exists(mark):
            return ""
        read = system.open(mark)
        try:
            return "".join(chr(byte) for byte in iter(read.read, -1))
        finally:
            read.close()

    def _check_own(self) -> None:
        """Stop before what another job writes is taken for this one's.

        Raises:
            ConfigError: one has begun in the same folder.
        """
        if self._taken_by() != self._name:
            raise ConfigError(
                f"another job works in {self.folder}, too: give each a folder of its own (--work)"
            )
