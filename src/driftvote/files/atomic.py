"""Files that appear whole or not at all, in the place of ordinary files only."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from driftvote.errors import DriftvoteError


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to. It takes the place of `path` once everything is on disk, and is removed after an error.

    Until then it lies in the folder of `path`, because a rename is atomic only within one file system.
    """
    with WholeFiles() as files:
        yield files.open(path)


class WholeFiles:
    """Several files that take their places one after the other, once all of them are on disk.

    Until then they have no name where the system allows that (Linux), so that a killed process leaves nothing behind.
    Elsewhere they are hidden files named `.part` in the same folder.
    """

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def __enter__(self) -> WholeFiles:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()

    def open(self, path: str | Path) -> BinaryIO:
        """A file to write to; files take their places in the order in which they were opened."""
        self._parts.append(_Part(Path(path)))
        return self._parts[-1].file

    def named(self, path: str | Path) -> Path:
        """A name to write to instead of `path`, with the same ending, for writers that need a name."""
        part = _Part(Path(path), named=True)
        self._parts.append(part)
        return part.temporary

    def commit(self) -> None:
        """Write everything to disk, then move every file to its place, in the order in which they were opened."""
        try:
            for part in self._parts:
                part.finish()
            for part in self._parts:
                part.publish()
                sync_folder(part.path.parent)  # so that the next file is not there before this one after a power cut
        except BaseException:
            self.discard()
            raise
        self._parts = []

    def discard(self) -> None:
        """Remove all files."""
        for part in self._parts:
            part.discard()
        self._parts = []


class _Part:
    """One file that has not taken its place yet."""

    def __init__(self, path: Path, named: bool = False) -> None:
        self.path = path = follow_links(path)
        self.temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.part{path.suffix}")
        self.file: Any = None
        self._unnamed = False
        self._published = False
        try:
            if named:
                self.temporary.touch()
                return
            handle = self._handle()
        except OSError as problem:
            # The error names the folder that is missing or closed, not the temporary file.
            raise type(problem)(problem.errno, problem.strerror, str(path.parent)) from None
        self.file = os.fdopen(handle, "wb")

    def _handle(self) -> int:
        kind = getattr(os, "O_TMPFILE", None)
        if kind is not None:
            try:
                handle = os.open(self.path.parent, kind | os.O_RDWR, 0o666)
                self._unnamed = True
                return handle
            except OSError:  # not on this file system; if the folder is at fault, the next line says so
                pass
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.stem}.", suffix=".part")
        self.temporary = Path(name)
        return handle

    def finish(self) -> None:
        """Write everything to disk and give the file its temporary name."""
        try:
            if self.file is None:
                with open(self.temporary, "rb") as file:
                    os.fsync(file.fileno())
            else:
                self.file.flush()
                os.fsync(self.file.fileno())
            follow_links(self.path)  # it may have become something else while the file was written
            if self._unnamed:
                self._name()
            os.chmod(self.temporary, _usual_mode(self.path))
        except OSError as problem:
            raise type(problem)(problem.errno, problem.strerror, str(self.path)) from None

    def _name(self) -> None:
        """Give the unnamed file its temporary name. linkat follows the link in /proc only if a folder is named too."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            source = f"/proc/self/fd/{self.file.fileno()}"
            os.link(source, self.temporary.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)
        self._unnamed = False

    def publish(self) -> None:
        os.replace(self.temporary, self.path)
        self._published = True
        if self.file is not None:
            self.file.close()

    def discard(self) -> None:
        if self.file is not None:
            with suppress(OSError):  # a full disk again, but the content is thrown away anyway
                self.file.close()
        if not self._unnamed and not self._published:
            self.temporary.unlink(missing_ok=True)


def follow_links(path: str | Path) -> Path:
    """The file that a name stands for, at the end of symbolic links; a device, a pipe or a folder is refused.

    A rename would replace a link or a device by an ordinary file: others would go on with the old target, or without
    the device.
    """
    target = Path(os.path.realpath(path))
    try:
        kind = stat.S_IFMT(target.lstat().st_mode)
    except FileNotFoundError:
        return target
    names = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    names |= {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link that leads nowhere"}
    if kind != stat.S_IFREG:
        raise DriftvoteError(
            f"{path}: this is {names.get(kind, 'no ordinary file')}, which is not replaced; name a file"
            " (- is standard output, where a command writes to it)"
        )
    return target


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _usual_mode(path: Path) -> int:
    """The mode of the old file, or that of an ordinary new one (a temporary file is private)."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
