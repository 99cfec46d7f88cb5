#!/bin/sh
# What host 1 offers in the lab with two hosts: the server of lat-probe, and those of perftest on ports of their own. One of
# perftest's ends with its client, so it is started anew. Both ends must be told the same size and count.
offer() {  # PORT COMMAND…
    port=$1
    shift
    while :; do
        "$@" -d rxe0 -x 1 -F -s 8 -n 40 -p "$port"
        sleep 0.1
    done > /dev/null 2>&1 &
}

offer 18601 ib_read_lat
offer 18602 ib_write_lat
offer 18603 ib_send_lat
offer 18604 ib_atomic_lat
exec target/release/lat-probe serve
