# Block devices of known latency: null_blk, in memory, so that what was written can be read back. All are of 64 MiB, with
# blocks of 512 bytes and one submission queue of 64, except where this list says otherwise. A command transfers at most
# 512 KiB. In /dev/lab/ and in /dev/:
#
#   n0      completes inside of the submission: the shortest way through the block layer
#   n200us  completes by a timer, 200 µs after the command was issued
#   n500us  the same after 500 µs
#   n1ms    the same after 1 ms
#   npoll   n0 with a poll queue beside: a polled read (RWF_HIPRI, io_uring with IOPOLL) completes when it is polled for
#   n4k     n0 with blocks of 4096 bytes
#   nbad    n0, but what touches sectors 2048 to 2055 (4 KiB at 1 MiB), or sector 65537, ends with EIO
#
# To change one: echo 0 > /sys/kernel/config/nullb/NAME/power, write its attributes, echo 1 > …/power.
modprobe null_blk nr_devices=0
mount_configfs

null_blk_device() {  # NAME ATTRIBUTE=VALUE…
    null_blk_name=$1
    shift
    mkdir "/sys/kernel/config/nullb/$null_blk_name"
    # The kernel would give every device a poll queue, which passes by the timer, and split commands at 127.5 KiB.
    for setting in size=64 blocksize=512 max_sectors=1024 poll_queues=0 memory_backed=1 irqmode=0 "$@" power=1; do
        echo "${setting#*=}" > "/sys/kernel/config/nullb/$null_blk_name/${setting%%=*}"
    done
    publish "$null_blk_name" "/dev/$null_blk_name"
}

null_blk_device n0
null_blk_device n200us irqmode=2 completion_nsec=200000
null_blk_device n500us irqmode=2 completion_nsec=500000
null_blk_device n1ms irqmode=2 completion_nsec=1000000
null_blk_device npoll poll_queues=1
null_blk_device n4k blocksize=4096
null_blk_device nbad badblocks=+2048-2055 badblocks=+65537-65537
