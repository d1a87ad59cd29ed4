"""Store the stages of a Spark job as Parquet, so that later stages read the same rows."""

from dataclasses import dataclass, field
from uuid import uuid4

from shinglefold.errors import ConfigError
from shinglefold.offline.spark.session import Frame, Session, place_of

#: The file that marks a folder as one of a ``StageStore``; it holds the name of the job.
_MARK = "_shinglefold"


@dataclass(slots=True)
class StageStore:
    """Stores the stages of a job in a folder that all machines of a cluster can read.

    Spark may compute a frame twice, with the rows in another order. A stored stage has one order.

    Args:
        folder: an address for Spark, such as ``hdfs:///tmp/groups`` or ``s3a://bucket/groups``. A missing
            folder is created. Stages of an earlier job are replaced; a folder with other files raises
            ``ConfigError``.
    """

    session: Session
    folder: str
    _kept: list[str] = field(default_factory=list)
    _name: str = field(default_factory=lambda: uuid4().hex)

    def keep(self, frame: Frame, name: str) -> Frame:
        """Compute a frame, write it as Parquet, and return a frame that reads the file."""
        if not self._kept:
            self._begin()
        self._check_own()
        place = f"{self.folder.rstrip('/')}/{name}"
        if place not in self._kept:
            # Recorded before it is written, so that ``remove`` also finds what a failed write left.
            self._kept.append(place)
        frame.write.mode("overwrite").parquet(place)
        self._check_own()
        return self.session.read.parquet(place)

    def remove(self) -> None:
        """Remove the stored stages, and the folder if it holds nothing else.

        Remove nothing if another job has begun in the same folder.
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
        """Return the name of the job that began last in this folder; empty if there is none."""
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
        """Check that no other job uses the folder, so that its stages are not read as ours.

        Raises:
            ConfigError: another job has begun in the same folder.
        """
        if self._taken_by() != self._name:
            raise ConfigError(
                f"another job works in {self.folder}, too: give each a folder of its own (--work)"
            )
