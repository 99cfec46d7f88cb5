# QEMU's NVMe controller with two namespaces of 128 MiB: /dev/lab/nvme-disk and /dev/lab/nvme-ng with blocks of 512 bytes,
# /dev/lab/nvme-4k-disk and /dev/lab/nvme-4k-ng with blocks of 4096. A command transfers at most 128 KiB (mdts=5), and
# there is a queue for polled commands.
#
# Every register that the driver touches is emulated: this shows that an engine works, not how long a command takes.
# With --deterministic it is not deterministic, since the device waits for real files.
#
# With snapshot=on, each of two hosts writes to a temporary file of its own, and a flush waits for no disk.
# lab-disk: nvme.img 128M
# lab-disk: nvme-4k.img 128M
# lab-qemu: -drive file=@RUN@/nvme.img,if=none,id=nvme-drive,format=raw,snapshot=on
# lab-qemu: -drive file=@RUN@/nvme-4k.img,if=none,id=nvme-4k-drive,format=raw,snapshot=on
# lab-qemu: -device nvme,id=nvme,serial=lab,mdts=5
# lab-qemu: -device nvme-ns,bus=nvme,drive=nvme-drive,nsid=1,logical_block_size=512,physical_block_size=512
# lab-qemu: -device nvme-ns,bus=nvme,drive=nvme-4k-drive,nsid=2,logical_block_size=4096,physical_block_size=4096
modprobe nvme poll_queues=1
poll 20 "the first NVMe namespace" publish_nvme nvme nqn.2019-08.org.qemu:lab 1
poll 20 "the second NVMe namespace" publish_nvme nvme-4k nqn.2019-08.org.qemu:lab 2
