"""Which journal the store may use: a write-ahead log needs memory that all its processes share, so one machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

Journal = Literal["WAL", "DELETE"]

# https://www.sqlite.org/wal.html: "WAL does not work over a network filesystem".
_NETWORK = {
    "9p", "afp", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs",
    "nfs", "nfs4", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs", "wekafs",
}  # fmt: skip
# Most FUSE file systems are remote; these are not.
_LOCAL_FUSE = {"fuseblk", "fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.mergerfs", "fuse.lxcfs"}


def journal_for(folder: Path, mounts: str | None = None) -> Journal:
    """The journal for a store in `folder`; `mounts` is the text of /proc/mounts."""
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text(errors="replace")
        except OSError:  # another system than Linux: this one is safe everywhere
            return "DELETE"
    kind = _kind(folder.resolve(), mounts)
    remote = kind in _NETWORK or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)
    return "DELETE" if remote else "WAL"


def _kind(path: Path, mounts: str) -> str:
    """The type of the file system that holds `path`: that of the deepest mount point above it, the last if two."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[1]))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind
