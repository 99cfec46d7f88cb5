# NVMe over RDMA within one host: the kernel's target and initiator on rxe0, over a null_blk device of 64 MiB that
# completes inline, with blocks of 512 bytes: /dev/lab/nvmet-disk and /dev/lab/nvmet-ng. There is a queue for polled
# commands. The device behind it is /dev/lab/nvmet-back.
# lab-needs: rxe null_blk
modprobe -a nvmet nvmet-rdma nvme-rdma
null_blk_device nvmet-back

nvmet_target() (
    cd /sys/kernel/config/nvmet
    mkdir subsystems/lab-nvmet subsystems/lab-nvmet/namespaces/1 ports/1
    echo 1 > subsystems/lab-nvmet/attr_allow_any_host
    echo /dev/nvmet-back > subsystems/lab-nvmet/namespaces/1/device_path
    echo 1 > subsystems/lab-nvmet/namespaces/1/enable
    echo rdma > ports/1/addr_trtype
    echo ipv4 > ports/1/addr_adrfam
    echo "10.0.0.$LAB_HOST" > ports/1/addr_traddr
    echo 4420 > ports/1/addr_trsvcid
    ln -s "$PWD/subsystems/lab-nvmet" ports/1/subsystems/
)
nvmet_target

poll 10 "the NVMe fabrics device" test -c /dev/nvme-fabrics
echo "transport=rdma,traddr=10.0.0.$LAB_HOST,trsvcid=4420,nqn=lab-nvmet,nr_poll_queues=1" > /dev/nvme-fabrics
poll 20 "the NVMe over RDMA namespace" publish_nvme nvmet lab-nvmet 1
