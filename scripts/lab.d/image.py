"""Reads kernel images: their version, and the ELF kernel that a bzImage holds."""

import bz2
import lzma
import re
import struct
import subprocess
import zlib


def version_of(data):
    """The version of a bzImage or an ELF kernel, as `uname -r` will say it, or None if it is neither.

    Offsets: Documentation/arch/x86/boot.rst.
    """
    if data[0x202:0x206] == b"HdrS":
        start = 0x200 + int.from_bytes(data[0x20E:0x210], "little")
        words = data[start:start + 256].split(b"\0")[0].split()
        return words[0].decode(errors="replace") if words else None
    if data.startswith(b"\x7fELF"):
        found = re.search(rb"Linux version (\S+) \(", data)
        return found[1].decode(errors="replace") if found else None
    return None


def elf_kernel(data):
    """The ELF kernel inside a bzImage, which QEMU starts through the PVH entry; None if it cannot be had that way.

    This saves the guest the unpacking, which takes seconds under emulation.
    """
    if data.startswith(b"\x7fELF"):
        kernel = data
    else:
        setup_bytes = ((data[0x1F1] or 4) + 1) * 512
        offset = int.from_bytes(data[0x248:0x24C], "little")
        length = int.from_bytes(data[0x24C:0x250], "little")
        kernel = _unpacked(data[setup_bytes + offset:setup_bytes + offset + length])
    return kernel if kernel is not None and _has_pvh_entry(kernel) else None


def _unpacked(payload):
    """What the payload unpacks to, None for a kind of packing that is not known here."""
    try:
        if payload.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(31).decompress(payload)
        if payload.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
            return lzma.LZMADecompressor().decompress(payload)
        if payload.startswith(b"BZh"):
            return bz2.BZ2Decompressor().decompress(payload)
        if payload.startswith(b"\x28\xb5\x2f\xfd"):
            # The kernel's build appends the unpacked size, which zstd would take for a broken frame.
            return subprocess.run(["zstd", "-dc"], input=payload[:-4], stdout=subprocess.PIPE, check=True).stdout
    except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.CalledProcessError):
        pass
    return None


def _has_pvh_entry(kernel):
    """Whether the ELF note is there by which QEMU finds the entry: XEN_ELFNOTE_PHYS32_ENTRY, of 4 or 8 bytes."""
    return any(struct.pack("<3I", 4, size, 18) + b"Xen\0" in kernel for size in (4, 8))
