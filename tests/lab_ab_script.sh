#!/bin/bash
# Runs scripts/lab-ab for real and looks at what it promises. Ten boots, about two minutes without KVM, and one kernel more
# to download.
# Exit codes: 0 all passed · 1 something failed · 77 this machine lacks what the lab needs.
set -u
cd "$(dirname "$0")/.."
root=$PWD
. tests/check.sh

yes_if() { if "$@"; then echo yes; else echo no; fi; }

# Only the guests of this very folder count: others may be somebody else's.
guests_running() { pgrep -c -f "qemu-system.*$root/target/lab/run/" || :; }

# Archives drop old kernels, so the names come from apt: the newest two, or else another flavour of the newest.
choose_kernels() {
    local offered
    mapfile -t offered < <(apt-cache search --names-only '^linux-image-[0-9].*-amd64$' | cut -d ' ' -f 1 |
        sort -rV | grep -E '^linux-image-[0-9.]+-[0-9]+-(rt-|cloud-)?amd64$')
    mapfile -t plain < <(printf '%s\n' "${offered[@]}" | grep -E '[0-9]-amd64$')
    kernel_a=${plain[0]-}
    kernel_b=${plain[1]-$(printf '%s\n' "${offered[@]}" | grep -m 1 -E -- '-(rt|cloud)-amd64$')}
    echo "apt offers ${#plain[@]} plain kernels; compared are $kernel_a and $kernel_b"
}

measured=(--engine psync --target /dev/shm/file --buffered --rw randread --bs 4k --count 500)
make_file="head -c 1M /dev/zero > /dev/shm/file"

refused() {  # SENTENCE PATTERN OPTION…
    local sentence=$1 pattern=$2
    shift 2
    scripts/lab-ab "$@" > "$scratch/out" 2> "$scratch/err"
    check "$sentence: a usage error" 2 $?
    check "$sentence: the message" yes "$(yes_if grep -q -e "$pattern" "$scratch/err")"
}

errors_need_no_boot() {
    refused "nothing to measure" "follow .--" --kernel-a "$kernel_a"
    refused "no difference between the sides" "tells the sides apart" -- --engine null
    refused "an odd number of rounds" "--rounds 3: an even number" --kernel-a "$kernel_a" --rounds 3 -- --engine null
    refused "an output of one's own" "--output FOLDER before" --side-a true -- --engine null --output x.json
    refused "an unknown package" "--kernel-a: apt knows no package.*offers:.*$kernel_a" --kernel-a "${kernel_a/amd64/amd65}" -- --engine null
    refused "a file that is no kernel" "--kernel-b: README.md is neither" --kernel-b README.md -- --engine null
    cp "$folder_a"/boot/vmlinuz-* "$scratch/bzImage"
    refused "an image without modules" "without modules: there is no .*--modules" --kernel-a "$scratch/bzImage" -- --engine null
    refused "nothing to go on with" "--output names the folder" --side-a true --resume -- --engine null
}

two_kernels() {
    scripts/lab-ab --kernel-a "$kernel_a" --kernel-b "$kernel_b" --side-a "$make_file" --side-b "$make_file" --rounds 2 \
        --output "$scratch/two" -- "${measured[@]}" > "$scratch/out" 2> "$scratch/err"
    check "few rounds are inconclusive" 4 $?
    local versions
    versions=$(jq -c '[.rounds[].result.host.kernel]' "$scratch/two/series.json")
    check "each side was measured on its kernel, in a mirrored block" "$(jq -cn --arg a "$version_a" --arg b "$version_b" \
        --argjson found "$versions" '[$a, $b, $b, $a] as $x | if $found == $x then $x else [$b, $a, $a, $b] end')" "$versions"
    check "the comparison says that the kernels differ" yes "$(yes_if grep -q "host.kernel: \"$version_a\" → \"$version_b\"" "$scratch/out")"
    check "the series has the form of that of lat-probe ab" true \
        "$(jq '.schema == "lat-probe.series/1" and ([.rounds[].block] == [0, 0, 0, 0]) and (.seed | . < 9007199254740992)' "$scratch/two/series.json")"
    scripts/lab-ab --kernel-a "$kernel_a" --rounds 2 --output "$scratch/two" -- "${measured[@]}" 2> "$scratch/err"
    check "a series is not written over" 2 $?
    scripts/lab-ab --kernel-a "$kernel_a" --rounds 4 --output "$scratch/two" --resume -- "${measured[@]}" 2> "$scratch/err"
    check "a series is not gone on with by other sides" 2 $?
}

# Images are made up here: one small ELF kernel with the entry note that QEMU looks for, in every packing.
packed_images_are_understood() {
    python3 -B > "$scratch/out" 2> "$scratch/err" <<'END'
import bz2, gzip, lzma, struct, subprocess, sys
sys.path.insert(0, "scripts/lab.d")
import image

elf = b"\x7fELF" + bytes(60) + struct.pack("<3I", 4, 8, 18) + b"Xen\0" + b"Linux version 9.8.7-own (x@y)" + bytes(99)
zstd = subprocess.run(["zstd", "-c"], input=elf, stdout=subprocess.PIPE, check=True).stdout
packings = {"gzip": gzip.compress(elf), "bzip2": bz2.compress(elf), "xz": lzma.compress(elf), "zstd": zstd,
            "lzma": lzma.compress(elf, lzma.FORMAT_ALONE), "lz4": b"\x02\x21\x4c\x18" + elf}


def bzimage(payload):
    data = bytearray(1024) + payload + struct.pack("<I", len(elf))
    data[0x1F1], data[0x202:0x206] = 1, b"HdrS"
    data[0x20E:0x210] = struct.pack("<H", 0x100)
    data[0x300:0x310] = b"9.8.7-own (x@y) "
    data[0x248:0x250] = struct.pack("<2I", 0, len(payload) + 4)
    return bytes(data)


for name, payload in packings.items():
    print(name, image.version_of(bzimage(payload)), image.elf_kernel(bzimage(payload)) == elf)
print("elf", image.version_of(elf), image.elf_kernel(elf) == elf)
print("without", image.elf_kernel(elf.replace(b"Xen", b"xen")), "other", image.version_of(b"no kernel"), image.version_of(b""))
END
    check "images are unpacked from every usual packing, and booted as they are from others" \
        "gzip True, bzip2 True, xz True, zstd True, lzma True, lz4 False, elf True" \
        "$(sed -n 's/ 9.8.7-own / /p' "$scratch/out" | paste -sd , | sed 's/,/, /g')"
    check "what is no kernel for this is told" "without None other None None" "$(tail -n 1 "$scratch/out")"
}

# An image of one's own, a side that cannot be made a second time, and the continuation.
own_image_with_two_settings() {
    local call=(scripts/lab-ab --kernel-a "$scratch/bzImage" --modules-a "$folder_a" --rounds 2 --deterministic --with null_blk
        --output "$scratch/own" --side-a "test -e '$scratch/go' || mkdir \"\$LAB_OUT/once\"" --side-b "test \$LAB_DETERMINISTIC = 1"
        -- --engine psync --target /dev/lab/n0 --rw randread --bs 4k --count 500)
    rm -rf target/lab/out/once
    "${call[@]}" > "$scratch/out" 2> "$scratch/err"
    check "a side that cannot be made ends the series" 1 $?
    check "the message names the command and how to go on" 2 "$(grep -c -e "side's command failed: test -e" -e 'resume goes on' "$scratch/err")"
    check "the rounds before it are kept" yes "$(yes_if [ "$(jq '.rounds | length' "$scratch/own/series.json")" -ge 2 ])"
    rm -rf target/lab/out/once
    touch "$scratch/go"
    "${call[@]:0:1}" --resume "${call[@]:1}" > "$scratch/out" 2> "$scratch/err"
    check "it goes on where it stopped" 4 $?
    check "the counter was the clock" '["tsc"]' "$(jq -c '[.rounds[].result.clock.source] | unique' "$scratch/own/series.json")"
    check "equal code has equal length, but for a few instructions of 4 ns" true \
        "$(jq '[.rounds[].result.points[0].latency_ns.percentiles["50"]] | length == 4 and max - min < 100' "$scratch/own/series.json")"
    jq -c '["p50 of the four boots", .rounds[].result.points[0].latency_ns.percentiles["50"]]' "$scratch/own/series.json"
}

a_signal_ends_the_boot() {
    local before
    before=$(guests_running)
    scripts/lab-ab --side-a "sleep 1000" --side-b "sleep 1000" --output "$scratch/signal" -- --engine null 2> "$scratch/err" &
    sleep 5
    kill -TERM $!
    wait $!
    check "SIGTERM is exit code 143" 143 $?
    check "no QEMU is left behind" "$before" "$(guests_running)"
}

scripts/setup --lab --check > /dev/null || exit 77
[[ -x target/release/lat-probe ]] || { echo "target/release/lat-probe is not there; run: cargo build --release"; exit 1; }
touch "$scratch/err"
choose_kernels
[[ -n $kernel_a && -n $kernel_b ]] || { echo "apt offers no two kernels; run: apt-get update"; exit 77; }
folder_a=target/lab/kernels/$kernel_a version_a=${kernel_a#linux-image-} version_b=${kernel_b#linux-image-}
two_kernels
errors_need_no_boot
packed_images_are_understood
own_image_with_two_settings
a_signal_ends_the_boot
end_of_checks
