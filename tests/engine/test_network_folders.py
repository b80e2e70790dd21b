"""Folders on network file systems are recognised by what is mounted where."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.network_folders import network_file_system

MOUNTS = """/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
me@host: /mnt/far fuse.sshfs rw 0 0
tmpfs /mnt/far/near tmpfs rw 0 0
old / nfs rw 0 0
/dev/sda2 / xfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me/ws", "nfs4"),
        ("/home", "nfs4"),
        ("/homestead", ""),
        ("/home/local/ws", ""),
        ("/mnt/my share/x", "cifs"),
        ("/mnt/far/x", "fuse.sshfs"),
        ("/mnt/far/near/x", ""),
        ("/srv", ""),
    ],
)
def test_the_innermost_and_latest_mount_counts(tmp_path: Path, folder: str, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert network_file_system(Path(folder), mounts) == kind


def test_where_nobody_can_tell_it_is_taken_for_local(tmp_path: Path) -> None:
    assert network_file_system(tmp_path, tmp_path / "absent") == ""
