"""Whether a folder lies on a network file system, where locks may not hold and a database may be damaged."""

from __future__ import annotations

import re
from pathlib import Path

_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|fuse\.sshfs|9p|afs|ceph|fuse\.ceph.*|lustre|gpfs|glusterfs|fuse\.glusterfs|beegfs|davfs|fuse\.s3fs.*"
)
_ESCAPED = re.compile(r"\\([0-7]{3})")
MOUNTS = Path("/proc/self/mounts")


def network_file_system(folder: Path, mounts: Path = MOUNTS) -> str:
    """The type of network file system that ``folder`` lies on (``nfs4``); "" for a local one, and where nobody can tell."""
    try:
        target = folder.resolve()
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = -1, ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[1]))
        # Of two mounted at the same place the later one is seen.
        if (point == target or point in target.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind if _NETWORK.fullmatch(kind) else ""
