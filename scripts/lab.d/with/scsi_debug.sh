# A SCSI disk without a device: scsi_debug, 64 MiB in memory with sectors of 512 bytes: /dev/lab/scsi_debug-disk and
# /dev/lab/scsi_debug-sg.
#
# Its sectors have one size for all of the module, and 520 or 528 bytes it refuses; srp has a disk with 4096 bytes.
# With `echo 2 > /sys/bus/pseudo/drivers/scsi_debug/opts` reads of sectors 4660 to 4669 end with MEDIUM ERROR; echo 0
# ends that. It is off at first, since random reads would meet them.
modprobe -a sd_mod sg
# Without a delay a command completes inside of its submission; otherwise it waits for a timer tick, 4 ms.
modprobe scsi_debug dev_size_mb=64 sector_size=512 delay=0
poll 10 "the disk of scsi_debug" publish_scsi scsi_debug scsi_debug 0
