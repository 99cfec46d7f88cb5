"""Finds what a lab guest boots: a stock Debian kernel, unpacked under target/ and never installed, and whether KVM
can run it.

Nothing here writes outside the folder that it is given, except for the package lists of apt when they are missing. Delete the folder
to get a newer kernel.
"""

import fcntl
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

META_PACKAGE = "linux-image-amd64"
KVM_PROBE_DEADLINE_S = 15


class Missing(Exception):
    """This machine lacks something; the text says what, and what to run."""


def ensure_kernel(folder):
    """Returns (kernel image, module folder), downloading at most once for any number of callers."""
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / "version"
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists():
            _unpack(_concrete_package(), folder)
    version = marker.read_text(encoding="utf-8").strip()
    return folder / "boot" / f"vmlinux-{version}", folder / "lib/modules" / version


def _concrete_package():
    """The meta package names the current kernel's package, which has its version in its name."""
    package = _dependency_of_meta_package()
    if package is None and os.geteuid() == 0:
        _say("fetching apt's package lists")
        subprocess.run(["apt-get", "update", "-q"], stdout=sys.stderr, check=False)
        package = _dependency_of_meta_package()
    if package is None:
        raise Missing(f"apt knows no {META_PACKAGE}; run: apt-get update (the lab kernel comes from Debian 12)")
    return package


def _dependency_of_meta_package():
    shown = subprocess.run(["apt-cache", "show", "--no-all-versions", META_PACKAGE],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    for line in shown.splitlines():
        if line.startswith("Depends:"):
            return line.split()[1].rstrip(",")
    return None


def _unpack(package, folder):
    """Unpacks beside the final place and renames, so that an interrupted download leaves nothing half done."""
    _say(f"fetching {package} into {folder} (once, about 70 MB)")
    with tempfile.TemporaryDirectory(dir=folder, prefix="unpack-") as scratch:
        scratch = Path(scratch)
        _run(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package], cwd=scratch)
        archive = next(scratch.glob("*.deb"))
        _run(["dpkg-deb", "-x", str(archive), str(scratch)])
        version = next((scratch / "lib/modules").iterdir()).name
        _run(["depmod", "-b", str(scratch), version])
        image = scratch / "boot" / f"vmlinux-{version}"
        image.write_bytes(_uncompressed(scratch / "boot" / f"vmlinuz-{version}"))
        for name in ("boot", "lib"):
            shutil.rmtree(folder / name, ignore_errors=True)
            (scratch / name).rename(folder / name)
    (folder / "version").write_text(version + "\n", encoding="utf-8")


def _uncompressed(image):
    """The ELF kernel inside a bzImage, which QEMU starts through the PVH entry.

    This saves the guest the unpacking, which takes seconds under emulation. Offsets: Documentation/arch/x86/boot.rst.
    """
    data = image.read_bytes()
    setup_bytes = ((data[0x1F1] or 4) + 1) * 512
    offset = int.from_bytes(data[0x248:0x24C], "little")
    length = int.from_bytes(data[0x24C:0x250], "little")
    payload = data[setup_bytes + offset:setup_bytes + offset + length]
    if not payload.startswith(b"\xfd7zXZ\0"):
        raise Missing(f"{image.name} is not packed with xz, which the lab expects of a Debian 12 kernel")
    return lzma.LZMADecompressor().decompress(payload)


def kvm_works(image, cache):
    """Whether KVM runs this kernel, tried once for each boot of the host.

    Some hosts offer a /dev/kvm on which a stock kernel never prints a line, so existence proves nothing. Without a
    root file system a kernel that starts panics at once, which with panic=-1 ends QEMU: that is the sign of life.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    key = f"{boot_id} {image.name} "
    if cache.exists() and cache.read_text(encoding="utf-8").startswith(key):
        return cache.read_text(encoding="utf-8").split()[-1] == "yes"
    _say(f"trying /dev/kvm (at most {KVM_PROBE_DEADLINE_S} s, once for each boot of this machine)")
    command = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-machine", "q35", "-m", "512M", "-nodefaults",
               "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", str(image),
               "-append", "console=ttyS0 panic=-1"]
    try:
        tried = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               timeout=KVM_PROBE_DEADLINE_S, check=False)
        works = tried.returncode == 0 and b"Kernel panic" in tried.stdout
    except subprocess.TimeoutExpired:
        works = False
    cache.write_text(key + ("yes" if works else "no") + "\n", encoding="utf-8")
    return works


def _run(command, **options):
    done = subprocess.run(command, stdout=sys.stderr, check=False, **options)
    if done.returncode != 0:
        raise Missing(f"{' '.join(command)}: exit code {done.returncode}")


def _say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)
