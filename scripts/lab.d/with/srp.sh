# SCSI over RDMA within one host: LIO's SRP target and the kernel's initiator on rxe0, with two RAM disks of 64 MiB:
# /dev/lab/srp-disk and /dev/lab/srp-sg with blocks of 512 bytes, /dev/lab/srp-4k-disk and /dev/lab/srp-4k-sg with 4096.
#
# To log out: echo 1 > /sys/class/srp_remote_ports/port-*/delete. To log in again: sh /dev/lab/srp-login, after
# `modprobe -r ib_srp; modprobe ib_srp OPTION…` if other options are wanted; wait for the disk, which gets the same
# names as before when it is the only one to come back. The kernel log explains a refusal.
# lab-needs: rxe
modprobe -a target_core_mod sd_mod sg ib_srpt
mount_configfs

srp_disk() {  # NAME BLOCK-BYTES
    mkdir -p "core/rd_mcp_0/$1"
    echo rd_pages=16384 > "core/rd_mcp_0/$1/control"
    echo 1 > "core/rd_mcp_0/$1/enable"
    echo "$2" > "core/rd_mcp_0/$1/attrib/block_size"
}

# Exports a disk as a logical unit of the port, and shows it to the one initiator that may log in.
srp_unit() {  # NAME LUN
    mkdir "$port/lun/lun_$2" "$port/acls/$initiator/lun_$2"
    ln -s "$PWD/core/rd_mcp_0/$1" "$port/lun/lun_$2/"
    ln -s "$port/lun/lun_$2" "$port/acls/$initiator/lun_$2/"
}

srp_target() (
    cd /sys/kernel/config/target
    srp_disk disk 512
    srp_disk disk-4k 4096
    mkdir srpt
    # Without it the target listens to the InfiniBand connection manager alone, which rxe does not have.
    echo 5555 > srpt/discovery_auth/rdma_cm_port
    # The target's port is named by the first GID, the initiator by the device's GUID; both have just one.
    read -r gid < /sys/class/infiniband/rxe0/ports/1/gids/0
    port=$PWD/srpt/0x$(echo "$gid" | tr -d :)
    port=$port/${port##*/}
    mkdir -p "$port"
    initiator=0x0000000000000000$srp_guid
    mkdir "$port/acls/$initiator"
    srp_unit disk 0
    srp_unit disk-4k 1
    echo 1 > "$port/enable"
)

read -r srp_guid < /sys/module/ib_srpt/parameters/srpt_service_guid
srp_guid=${srp_guid#0x}
srp_target

# One channel is enough for one command at a time, and each takes its own connection.
modprobe ib_srp ch_count=1
mkdir -p /dev/lab
echo "echo id_ext=$srp_guid,ioc_guid=$srp_guid,dest=10.0.0.$LAB_HOST:5555 > /sys/class/infiniband_srp/srp-rxe0-1/add_target" \
    > /dev/lab/srp-login
poll 10 "the SRP initiator on rxe0" test -e /sys/class/infiniband_srp/srp-rxe0-1/add_target
sh /dev/lab/srp-login
poll 20 "the SRP disk" publish_scsi srp ib_srp 0
poll 20 "the SRP disk of 4096-byte blocks" publish_scsi srp-4k ib_srp 1
