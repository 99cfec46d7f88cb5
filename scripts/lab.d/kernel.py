"""Finds what a lab guest boots: a Debian kernel or one of the user's own, unpacked under target/ and never installed, and
whether KVM can run it.

Nothing here writes outside the folder that it is given, except for the package lists of apt when they are missing.
"""

import difflib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import image

META_PACKAGE = "linux-image-amd64"
PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
KVM_PROBE_DEADLINE_S = 15


class Missing(Exception):
    """This machine lacks something; the text says what, and what to run."""


class Unusable(Exception):
    """The kernel that was asked for cannot be had; the text says why."""


class Kernel(NamedTuple):
    """A kernel ready to boot. Its folder holds boot/ and lib/modules/, and belongs to this kernel alone."""

    folder: Path
    version: str

    @property
    def image(self):
        """Unpacked if it could be."""
        unpacked = self.folder / "boot" / f"vmlinux-{self.version}"
        return unpacked if unpacked.exists() else self.folder / "boot" / f"vmlinuz-{self.version}"

    @property
    def modules(self):
        return self.folder / "lib/modules" / self.version


def ensure_kernel(lab, wanted=None, modules=None):
    """The kernel that `wanted` names, fetched and unpacked at most once for any number of callers.

    `wanted` is a package, an image with `modules` as the root of its modules, or the folder of a kernel from an earlier
    call. Without it Debian's current kernel is taken, once: delete its folder to get a newer one.
    """
    if wanted is None:
        return _once(lab / "kernel", lambda folder: _unpack(_concrete_package(META_PACKAGE), folder))
    path = Path(wanted)
    if path.is_dir():
        if not (path / "version").exists() or not (path / "boot").is_dir():
            raise Unusable(f"{wanted} is a folder; name the kernel's image in it")
        return _once(path.resolve(), None)
    if path.is_file():
        return _ensure_own(lab / "kernels", path, modules)
    if "/" in wanted or not PACKAGE_NAME.fullmatch(wanted):
        raise Unusable(f"there is no file {wanted}")
    if modules is not None:
        raise Unusable(f"there is no file {wanted}, and a package brings its modules along")
    if not (lab / "kernels" / wanted / "version").exists():
        wanted = _concrete_package(wanted)
    return _once(lab / "kernels" / wanted, lambda folder: _unpack(wanted, folder))


def _once(folder, fill):
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / "version"
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists():
            fill(folder)
    return Kernel(folder, marker.read_text(encoding="utf-8").strip())


def _concrete_package(name):
    """A meta package names the current kernel's package, which has its version in its name."""
    depends = _dependencies(name)
    if depends is None and os.geteuid() == 0 and (name == META_PACKAGE or not _offered()):
        _say("fetching apt's package lists")
        subprocess.run(["apt-get", "update", "-q"], stdout=sys.stderr, check=False)
        depends = _dependencies(name)
    if depends is None:
        offered = _offered()
        if not offered or name == META_PACKAGE:
            raise Missing(f"apt knows no {name}; run: apt-get update (the lab's own kernel comes from Debian 12)")
        similar = difflib.get_close_matches(name, offered, n=6, cutoff=0.5) or offered
        raise Unusable(f"apt knows no package {name}, and there is no such file; apt offers: {', '.join(similar)}")
    concrete = [word for word in depends if re.match(r"linux-image-[0-9]", word)]
    return concrete[0] if concrete and not re.match(r"linux-image-[0-9]", name) else name


def _dependencies(package):
    """The names in the package's Depends, None if apt does not know the package."""
    shown = subprocess.run(["apt-cache", "show", "--no-all-versions", package],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    if not shown.strip():
        return None
    found = re.search(r"^Depends: *(.*)$", shown, re.MULTILINE)
    return [word.split()[0] for word in re.split("[,|]", found[1]) if word.strip()] if found else []


def _offered():
    """The kernels that apt offers, newest first."""
    found = subprocess.run(["apt-cache", "search", "--names-only", "^linux-image-[0-9].*"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    names = [line.split()[0] for line in found.splitlines() if line.strip()]
    names = [name for name in names if not name.endswith(("-dbg", "-unsigned"))]
    return sorted(names, key=lambda name: [int(number) for number in re.findall("[0-9]+", name)], reverse=True)


def _unpack(package, folder):
    """Unpacks beside the final place and renames, so that an interrupted download leaves nothing half done."""
    _say(f"fetching {package} into {folder} (once, about 70 MB)")
    with tempfile.TemporaryDirectory(dir=folder, prefix="unpack-") as scratch:
        scratch = Path(scratch)
        _run(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package], cwd=scratch)
        archive = next(scratch.glob("*.deb"))
        _run(["dpkg-deb", "-x", str(archive), str(scratch)])
        images = sorted((scratch / "boot").glob("vmlinuz-*"))
        if not images:
            raise Unusable(f"{package} holds no kernel")
        version = images[0].name.removeprefix("vmlinuz-")
        if not (scratch / "lib").exists() and (scratch / "usr/lib/modules").exists():
            (scratch / "usr/lib").rename(scratch / "lib")
        if not (scratch / "lib/modules" / version).is_dir():
            raise Unusable(f"{package} holds a kernel without its modules")
        _settle(scratch, folder, version, images[0].read_bytes())


def _ensure_own(kernels, path, modules):
    """A kernel of the user's own is copied, so that a build that goes on meanwhile does not change what is measured.

    Its folder is named by what is in it: the same version may be built many times.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    version = image.version_of(data)
    if version is None:
        raise Unusable(f"{path} is neither a package nor a kernel image for x86 (bzImage, vmlinuz or vmlinux)")
    resolved = path.resolve()
    roots = [Path(modules)] if modules else [resolved.parent.parent, resolved.parent]
    places = [root / "lib/modules" / version for root in roots]
    place = next((place for place in places if place.is_dir()), None)
    if place is None:
        raise Unusable(f"{path} is {version}, without modules: there is no {' and no '.join(map(str, places))}; "
                       "say where they are by --modules DIR, which holds lib/modules/VERSION "
                       "(make modules_install INSTALL_MOD_PATH=DIR)")

    def fill(folder):
        _say(f"copying {path} and its modules into {folder}")
        with tempfile.TemporaryDirectory(dir=folder, prefix="unpack-") as scratch:
            scratch = Path(scratch)
            for name in ("boot", f"lib/modules/{version}"):
                (scratch / name).mkdir(parents=True)
            _run(["cp", "-a", "--reflink=auto", f"{place}/.", str(scratch / "lib/modules" / version)])
            (scratch / "boot" / f"vmlinuz-{version}").write_bytes(data)
            _settle(scratch, folder, version, data)
    return _once(kernels / f"{version}-{_digest(data, place)}", fill)


def _digest(data, place):
    """Tells builds apart: all of the image; of the modules the size and the time, since they may be gigabytes."""
    digest = hashlib.sha256(data)
    for file in sorted(place.rglob("*.ko*")):
        status = file.lstat()
        digest.update(f"{file.relative_to(place)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]


def _settle(scratch, folder, version, data):
    """The last steps, alike for all kernels; the marker comes at the very end."""
    _run(["depmod", "-b", str(scratch), version])
    kernel = image.elf_kernel(data)
    if kernel is None:
        _say(f"{version} is booted packed, which takes longer: its packing is not known here, or it lacks CONFIG_PVH")
    else:
        (scratch / "boot" / f"vmlinux-{version}").write_bytes(kernel)
    for name in ("boot", "lib"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (scratch / name).rename(folder / name)
    (folder / "version").write_text(version + "\n", encoding="utf-8")


def kvm_works(kernel):
    """Whether KVM runs this kernel, tried once for each boot of the host.

    Some hosts offer a /dev/kvm on which a stock kernel never prints a line, so existence proves nothing. Without a
    root file system a kernel that starts panics at once, which with panic=-1 ends QEMU: that is the sign of life.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    cache = kernel.folder / "kvm"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    key = f"{boot_id} {kernel.version} "
    if cache.exists() and cache.read_text(encoding="utf-8").startswith(key):
        return cache.read_text(encoding="utf-8").split()[-1] == "yes"
    _say(f"trying /dev/kvm (at most {KVM_PROBE_DEADLINE_S} s, once for each boot of this machine)")
    command = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-machine", "q35", "-m", "512M", "-nodefaults",
               "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", str(kernel.image),
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
