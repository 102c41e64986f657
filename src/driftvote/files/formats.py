"""File formats by name: what a file's ending says, or the first bytes of one that has none."""

from __future__ import annotations

from pathlib import Path

from driftvote.errors import DriftvoteError

ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npy": "npy",
    ".npz": "npz",
}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
TEXTS = ("csv", "tsv", "jsonl")

_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}
_SQUEEZED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


def format_of(path: str | Path, said: str | None = None, option: str = "--from") -> tuple[str, str | None]:
    """Format and compression that a file's name asks for; `said` overrules the ending.

    >>> format_of("votes.csv.gz"), format_of("votes.dat", "tsv")
    (('csv', 'gzip'), ('tsv', None))
    """
    path = Path(path)
    squeezed = COMPRESSIONS.get(path.suffix.lower())
    ending = (Path(path.stem) if squeezed else path).suffix.lower()
    if said is not None and said not in FORMATS:
        raise DriftvoteError(f"{option} {said}: there is no such format; choose one of {', '.join(FORMATS)}")
    kind = said or ENDINGS.get(ending)
    if kind is None:
        what = f"the ending {ending!r}" if ending else "a name without an ending"
        raise DriftvoteError(f"{path}: cannot tell the format from {what}; say {option} {' | '.join(FORMATS)}")
    if squeezed and kind not in TEXTS:
        raise DriftvoteError(f"{path}: {kind} files are not compressed as a whole; unpack it first")
    return kind, squeezed


def sniffed(path: str | Path, said: str | None = None) -> tuple[str, str | None]:
    """Format and compression of a file without a name, such as standard input: by its first bytes.

    Text that begins with a brace is JSON lines, other text is CSV.
    """
    with open(path, "rb") as file:
        head = file.read(256)
    squeezed = next((kind for magic, kind in _SQUEEZED.items() if head.startswith(magic)), None)
    if said is None and squeezed is None:
        said = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
        if said is None:
            said = "jsonl" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "csv"
    kind, _ = format_of("-", said or "csv")
    return kind, squeezed
