#!/bin/bash
# Runs scripts/lab for real and looks at what it promises to its callers. Three boots, about a minute without KVM.
# With --all also two hosts, the deterministic clock and storage: three boots more.
# Exit codes: 0 all passed · 1 something failed · 77 this machine lacks what the lab needs.
set -u
cd "$(dirname "$0")/.."
root=$PWD
. tests/check.sh

# Only the guests of this very folder count: others may be somebody else's.
guests_running() { pgrep -c -f "qemu-system.*$root/target/lab/run/" || :; }

usage_error_needs_no_boot() {
    local said code
    said=$(scripts/lab --with no-such-thing -- true 2>&1)
    code=$?
    check "an unknown topology is a usage error" 2 "$code"
    check "an unknown topology's error lists what there is" yes "$([[ $said == *rxe* ]] && echo yes)"
    scripts/lab 2> /dev/null
    check "a missing command is a usage error" 2 $?
    scripts/lab --deterministic --hosts 2 -- true 2> /dev/null
    check "two hosts cannot be deterministic" 2 $?
}

command_with_everything() {
    rm -f "target/lab/out/from guest"
    (cd tests && "$root/scripts/lab" --timeout 300 -- sh -c '
        printf "%s\n" "$PWD" "$LAB $LAB_TOPOLOGY $LAB_DETERMINISTIC $LAB_HOST" "$@"
        case $PATH: in *"$1":*) ;; *) echo other-path ;; esac
        echo on-stderr >&2
        echo returned > "$LAB_OUT/from guest"
        touch /tmp/writable /usr/writable || echo not-writable
        ping6() { busybox ping -6 -c 1 fd00:6c61:7470::1 > /dev/null; }
        ping6 || echo no-ipv6
        ib_read_lat -d rxe0 -x 1 -F > /dev/null &
        while ! grep -q ":4853 .* 0A " /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done
        ib_read_lat -d rxe0 -x 1 -F 10.0.0.1 > "$LAB_OUT/read_lat" || exit 8
        exit 7' sh "$PATH" 'a b' "it's" '$x' '' '"q\' $'line\nbreak' '*') > "$scratch/out" 2> "$scratch/err"
    check "the exit code arrives" 7 $?
    check "folder, variables and arguments arrive intact, and stdout has nothing else" \
        "$root/tests"$'\n'"1 rxe 0 1"$'\n'"$PATH"$'\n''a b'$'\n'"it's"$'\n''$x'$'\n\n''"q\'$'\n'$'line\nbreak\n*' \
        "$(cat "$scratch/out")"
    check "stderr arrives on stderr" on-stderr "$(grep -x on-stderr "$scratch/err")"
    check "a file in target/lab/out is returned" returned "$(cat 'target/lab/out/from guest')"
    check "ib_read_lat measured on rxe0" 1 "$(grep -c '^ 2  *1000 ' target/lab/out/read_lat)"
    check "the host's files stayed as they were" no "$([[ -e /usr/writable || -e /tmp/writable ]] && echo yes || echo no)"
}

success_is_zero_and_output_survives_a_file() {
    echo before > "$scratch/appended"
    scripts/lab --timeout 300 -- sh -c 'seq 20000' >> "$scratch/appended" 2> "$scratch/err"
    check "success is exit code 0" 0 $?
    check "output is appended whole" "$( (echo before; seq 20000) | md5sum)" "$(md5sum < "$scratch/appended")"
}

timeout_ends_the_guest() {
    local before
    before=$(guests_running)
    scripts/lab --timeout 8 -- sleep 1000 2> "$scratch/err"
    check "out of time is exit code 124" 124 $?
    check "no QEMU is left behind" "$before" "$(guests_running)"
    check "the message says where the console is" 1 "$(grep -c 'out of time.*target/lab/log' "$scratch/err")"
}

two_hosts_reach_each_other() {
    local before
    before=$(guests_running)
    LAB_SERVE="ib_read_lat -d rxe0 -x 1 -F" scripts/lab --hosts 2 --timeout 300 -- sh -c '
        echo "$LAB_HOST $LAB_PEER"
        busybox ping -6 -c 1 fd00:6c61:7470::1 > /dev/null || echo no-ipv6
        ib_read_lat -d rxe0 -x 1 -F "$LAB_PEER" | grep -c "^ 2  *1000 "
        exit 9' > "$scratch/out" 2> "$scratch/err"
    check "host 2's exit code arrives" 9 $?
    check "ib_read_lat measured across the cable" $'2 10.0.0.1\n1' "$(cat "$scratch/out")"
    check "host 1's log is kept" yes "$(grep -q 'RDMA_Read Latency Test' target/lab/out/host1.log && echo yes)"
    check "neither host is left behind" "$before" "$(guests_running)"
}

counted_instructions_are_the_clock() {
    scripts/lab --deterministic --timeout 300 -- sh -c '
        cat /sys/devices/system/clocksource/clocksource0/current_clocksource
        echo "$LAB_DETERMINISTIC $(nproc)"' > "$scratch/out" 2> "$scratch/err"
    check "the deterministic lab keeps time by the TSC on one CPU" $'tsc\n1 1' "$(cat "$scratch/out")"
}

storage_topologies_work_together() {
    scripts/lab --with srp,nvmet,null_blk,nvme,scsi_debug --timeout 300 -- sh -c '
        cd /dev/lab
        echo "$LAB_TOPOLOGY"
        for disk in n0 n200us n500us n1ms npoll n4k nbad scsi_debug-disk nvme-disk nvme-4k-disk srp-disk srp-4k-disk nvmet-disk; do
            dd if=$disk of=/dev/null bs=4096 count=1 iflag=direct 2> /dev/null || echo "$disk does not answer"
        done
        # 0x15 is 21, the major number of sg.
        for sg in scsi_debug-sg srp-sg srp-4k-sg; do
            [ "$(stat -L -c "%F %t" $sg)" = "character special file 15" ] || echo "$sg is no sg node"
        done
        for ng in nvme-ng nvme-4k-ng nvmet-ng; do [ -c $ng ] || echo "$ng is no character device"; done
        blockdev --getss n0 n4k nvme-disk nvme-4k-disk srp-disk srp-4k-disk nvmet-disk | xargs
        for disk in srp-disk scsi_debug-disk; do
            read -r vendor < "/sys/class/block/$(basename "$(readlink $disk)")/device/vendor"
            echo "$disk is of $vendor"
        done
        dd if=nbad of=/dev/null bs=4096 skip=256 count=1 iflag=direct 2>&1 | grep -o "Input/output error"
        fio --name=n200us --filename=/dev/lab/n200us --rw=read --ioengine=psync --direct=1 --bs=4k --number_ios=200 \
            --output-format=json --output="$LAB_OUT/n200us.json"' > "$scratch/out" 2> "$scratch/err"
    check "all storage topologies come up in one boot" 0 $?
    check "what a topology needs comes before it" rxe,srp,null_blk,nvmet,nvme,scsi_debug "$(head -n 1 "$scratch/out")"
    check "every device in /dev/lab answers and is what its name says" \
        $'512 4096 512 4096 512 4096 512\nsrp-disk is of LIO-ORG\nscsi_debug-disk is of Linux\nInput/output error' \
        "$(tail -n +2 "$scratch/out")"
    check "fio reads n200us in 200 µs or more" true \
        "$(jq '.jobs[0].read | .total_ios == 200 and .clat_ns.mean >= 200000' target/lab/out/n200us.json)"
}

scripts/setup --lab --check > /dev/null || exit 77
usage_error_needs_no_boot
command_with_everything
success_is_zero_and_output_survives_a_file
timeout_ends_the_guest
if [[ ${1-} == --all ]]; then
    two_hosts_reach_each_other
    counted_instructions_are_the_clock
    storage_topologies_work_together
fi
end_of_checks
