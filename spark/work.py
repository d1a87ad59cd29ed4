"""What a job keeps on the way: each stage is written once, and read from there by those that follow."""

from dataclasses import dataclass, field

from shinglefold.spark.frames import Frame, Session


@dataclass(slots=True)
class Work:
    """A folder of a file system that all machines of a cluster see.

    What is computed twice may come out in another order; what is kept does not.

    Args:
        folder: as Spark names it, such as ``hdfs:///tmp/groups`` or ``s3a://bucket/groups``; made where it
            is not there. Stages of an earlier job in it are replaced.
    """

    session: Session
    folder: str
    _kept: list[str] = field(default_factory=list)

    def keep(self, frame: Frame, name: str) -> Frame:
        """Compute a frame, write it as Parquet, and return what reads it."""
        place = f"{self.folder.rstrip('/')}/{name}"
        frame.write.mode("overwrite").parquet(place)
        if place not in self._kept:
            self._kept.append(place)
        return self.session.read.parquet(place)

    def remove(self) -> None:
        """Remove what was kept, and the folder where nothing else is in it."""
        files = self.session._jvm.org.apache.hadoop.fs  # noqa: SLF001 - Spark has no other door to it
        settings = self.session._jsc.hadoopConfiguration()  # noqa: SLF001
        for place in self._kept:
            path = files.Path(place)
            path.getFileSystem(settings).delete(path, True)
        folder = files.Path(self.folder)
        system = folder.getFileSystem(settings)
        if system.exists(folder) and not system.listStatus(folder):
            system.delete(folder, False)
        self._kept.clear()
