# Soft-RoCE: rxe0 with 10.0.0.N and fd00:6c61:7470::N, on a veth pair, or with two hosts on the cable between them.
modprobe -a rdma_rxe ib_uverbs rdma_ucm
if [ "$LAB_HOSTS" = 2 ]; then
    modprobe virtio_net
    rxe_link=eth0
else
    ip link add v0 type veth peer name v1
    ip link set v1 mtu 9000 up
    rxe_link=v0
fi
# The IPv4 address comes first, so that GID 1 is always the IPv4-mapped one.
ip addr add "10.0.0.$LAB_HOST/24" dev $rxe_link
ip addr add "fd00:6c61:7470::$LAB_HOST/64" dev $rxe_link nodad
ip link set $rxe_link mtu 9000 up
rdma link add rxe0 type rxe netdev $rxe_link

# The GIDs follow the addresses asynchronously.
rxe_has_gids() (
    cd /sys/class/infiniband/rxe0/ports/1/gids
    cat 0 1 2 3 | grep -q '^0000:.*:ffff:0a00:' && cat 0 1 2 3 | grep -q '^fd00:6c61:7470:'
)
poll 10 "the GIDs of rxe0" rxe_has_gids
