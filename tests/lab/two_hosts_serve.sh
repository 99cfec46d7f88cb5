#!/bin/sh
# What the first of two hosts runs for tests/lab_two_hosts.rs: lat-probe's server, and one of each of perftest's, which end
# after every client. Ports of the latter: 18601 read, 18602 write, 18603 send, 18604 compare and swap, 18605 fetch and add.
target/release/lat-probe serve &
server=$!
trap 'kill $server; exit' TERM

serve_perftest() {  # PORT TOOL OPTION…
    port=$1
    shift
    while :; do "$@" -d rxe0 -x 1 -F -p "$port" -n 30 -s 8; done > /dev/null 2>&1
}

serve_perftest 18601 ib_read_lat &
serve_perftest 18602 ib_write_lat &
serve_perftest 18603 ib_send_lat &
serve_perftest 18604 ib_atomic_lat -A CMP_AND_SWAP &
serve_perftest 18605 ib_atomic_lat -A FETCH_AND_ADD &
wait $server
