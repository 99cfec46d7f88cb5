# Functions for topologies that make devices; guest-init sources this.
#
# The kernel numbers disks in the order in which they come, so which one is sda depends on what else is up. Tests use
# the links that are made here instead: /dev/lab/NAME.

publish() {  # NAME NODE
    mkdir -p /dev/lab
    ln -sfn "$2" "/dev/lab/$1"
}

# The next two are false while the device is not there yet, since disks are found asynchronously: use them with `poll`.

# Makes NAME-disk and NAME-sg of a logical unit of the SCSI host that has this driver.
publish_scsi() {  # NAME DRIVER LUN
    for unit in /sys/class/scsi_device/*:"$3"; do
        address=${unit##*/}
        read -r driver < "/sys/class/scsi_host/host${address%%:*}/proc_name" || continue
        disk=$(echo "$unit"/device/block/*)
        sg=$(echo "$unit"/device/scsi_generic/*)
        if [ "$driver" = "$2" ] && [ -b "/dev/${disk##*/}" ] && [ -c "/dev/${sg##*/}" ]; then
            publish "$1-disk" "/dev/${disk##*/}"
            publish "$1-sg" "/dev/${sg##*/}"
            return 0
        fi
    done
    return 1
}

# Makes NAME-disk and NAME-ng of a namespace of the NVMe subsystem that has this qualified name. A subsystem that allows
# several paths has a hidden disk for each path beside the one meant, without a node.
publish_nvme() {  # NAME NQN NAMESPACE
    for disk in /sys/block/nvme*n"$3"; do
        read -r nqn < "$disk/device/subsysnqn" || continue
        ng=$(echo "$disk"/device/ng*n"$3")
        if [ "$nqn" = "$2" ] && [ -b "/dev/${disk##*/}" ] && [ -c "/dev/${ng##*/}" ]; then
            publish "$1-disk" "/dev/${disk##*/}"
            publish "$1-ng" "/dev/${ng##*/}"
            return 0
        fi
    done
    return 1
}

mount_configfs() {
    mountpoint -q /sys/kernel/config && return
    # The folder to mount it on appears with the module.
    modprobe configfs
    mount -t configfs configfs /sys/kernel/config
}
