# SPDX-License-Identifier: BSD-3-Clause
"""What the machines of machines.py run, as scripts of busybox's shell: after INIT one of the others."""

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tmpfs t /tmp
mount -t debugfs g /sys/kernel/debug; leaks=/sys/kernel/debug/kmemleak
[ ! -e /proc/sys/debug ] || echo 0 > /proc/sys/debug/exception-trace # what fuzzing kills would fill the log
for i in $(cat /proc/cmdline); do case $i in q.*=*) k=${i#q.}; export "${k%%=*}=${k#*=}";; esac; done
dmesg -n 4
for m in $(cat /drivers) $(cat /modules); do a=; [ $m = quoit_ntb ] && a="patience_ms=10000 parts=${PARTS:-0}"; insmod /lib/$m.ko $a || poweroff -f; done
for m in tun e1000; do [ -f /lib/$m.ko ] && insmod /lib/$m.ko; done
for i in 1 2 3 4 5; do [ -c /dev/ntb0 ] || ! grep -q quoit_ntb /modules && break; sleep 1; done
echo # what the firmware wrote ends without a new line
echo "iommu $(ls /sys/class/iommu | tr '\n' ' ')"
echo "booted $(cut -d' ' -f1 /proc/uptime) s, Linux $(uname -r)"
sh /run.sh; echo "status $?"
grep -q quoit_ntb /modules || > /modules # ntb_transport warns of an address that it unmaps when it is unloaded
failed=0; for m in $(tac /modules); do rmmod $m || failed=1; done; echo "unloaded $failed"
dmesg | grep -v 'loading out-of-tree module' | grep -A 30 -E 'WARNING|BUG|Oops|Call Trace|quoit_ntb:' | sed 's/^/kernel: /'
[ ! -e $leaks ] || { sleep 6; echo scan > $leaks; sleep 1; echo scan > $leaks; sed 's/^/kernel: /' $leaks; }
[ ! -e /proc/sys/kernel ] || echo "tainted $(cat /proc/sys/kernel/tainted)"
grep -s debug_locks: /proc/lockdep_stats
echo "ended"
poweroff -f
"""


RING = """
ifconfig lo up
quoit ring join --host $HOST --hosts $HOSTS > /tmp/ring 2>&1 &
keeper=$!
for h in $(seq 1 $HOSTS); do
    [ $h = $((HOST + 1)) ] || until ping -c 1 -W 5 10.77.0.$h 2> /dev/null | grep ' 0% packet loss'; do sleep 1; done
done
echo "reached at $(cut -d' ' -f1 /proc/uptime) s"
quoit ring doctor; doctor=$?
echo "doctor has looked"
vm_ring_traffic $HOST $HOSTS $ARGS; traffic=$?
quoit ring status
quoit ring down; down=$?
wait $keeper; keeper=$?
cat /tmp/ring
echo "doctor $doctor, traffic $traffic, down $down, keeper $keeper"
[ $doctor$traffic$down$keeper = 0000 ]
"""


# What the module holds is what it held before, and the ports work, after random calls of which the kernel fails many.
FAILURES = """
cd /sys/module/quoit_ntb/parameters
before=$(cat held)
echo 20 > fail_every
slab=/sys/kernel/debug/failslab # a kernel that has it fails the kernel's own allocations for the module too
if [ -d $slab ]; then
    echo Y > $slab/task-filter; echo 0 > $slab/verbose; echo -1 > $slab/times; echo 1 > $slab/probability
fi
({ echo 1 > /proc/self/make-it-fail; } 2> /dev/null; exec vm_port_fuzz /dev/ntb0 /dev/ntb1 $ARGS)
echo 0 > fail_every
vm_port_fuzz /dev/ntb0 /dev/ntb1 0 || exit 1
after=$(cat held)
echo "failed $(cat failed) times; held before: $before, after: $after"
[ "$before" = "$after" ] && [ $(cat failed) -gt 0 ]
"""


# On host0 the job; on the others a remote shell until host0 has ended the test.
JOB = """
ifconfig lo up
if [ $HOST = 0 ]; then
    list=127.0.0.1:2
    for h in $(seq 1 $((HOSTS - 1))); do
        ifconfig eth$((h - 1)) 10.78.$h.1 netmask 255.255.255.0 up
        list=$list,10.78.$h.2:2
    done
    vm_remote_shell serve &
    shell=$!
    failed=0
    for program in $PROGRAMS; do # with a colon before each argument
        echo "running $program"
        begin=$(cut -d. -f1 /proc/uptime)
        oshrun --host $list --rsh vm_remote_shell --link-timeout 60s --link-limit 60s --network-limit 60s $OPTIONS \\
            $(echo $program | tr : ' ') $ARGS
        status=$?
        echo "$program: status $status, $(($(cut -d. -f1 /proc/uptime) - begin)) s"
        [ $status = 0 ] || failed=1
    done
    echo "jobs are over"
    for h in $(seq 1 $((HOSTS - 1))); do timeout 10 vm_remote_shell 10.78.$h.2 touch /tmp/over; done
    kill $shell
    [ $failed = ${FAILS:-0} ]
else
    ifconfig eth0 10.78.$HOST.2 netmask 255.255.255.0 up
    vm_remote_shell serve &
    while [ ! -e /tmp/over ]; do sleep 1; done
    kill $!
fi
"""


# Before JOB: an adapter of soft-RoCE on the network beside the ring, and names, for which librdmacm looks.
ROCE = """
printf '127.0.0.1 localhost\\n10.78.1.1 host0\\n10.78.1.2 host1\\n' > /etc/hosts
echo 'hosts: files' > /etc/nsswitch.conf
hostname host$HOST
ifconfig eth0 10.78.1.$((HOST + 1)) netmask 255.255.255.0 up
dmesg -n 1 # libfabric asks soft-RoCE for more than it has until it knows its limits
rdma link add rxe0 type rxe netdev eth0 || exit 1
until rdma link | grep -q 'state ACTIVE'; do sleep 0.2; done
ulimit -l unlimited
quoit info networks
""" + JOB


# Ethernet on the first part of each port, jobs on the second, started over that Ethernet; all by host0.
SHARED = """
ifconfig lo up
quoit ring join --host $HOST --hosts $HOSTS > /tmp/ring 2>&1 &
keeper=$!
for h in $(seq $HOSTS); do
    [ $h = $((HOST + 1)) ] || until ping -c 1 -W 5 10.77.0.$h 2> /dev/null | grep -q ' 0% packet loss'; do sleep 1; done
done
echo "reached at $(cut -d' ' -f1 /proc/uptime) s"
vm_remote_shell serve &
shell=$!
others=$(seq $((HOSTS - 1)))
on() { vm_remote_shell 10.77.0.$(($1 + 1)) "$2"; }

traffic() { # every host to every other one, again and again, each byte compared
    rounds=0
    until [ -e /tmp/over ]; do
        for h in $others; do on $h "vm_ring_traffic $h $HOSTS 128" > /tmp/traffic$h & done
        vm_ring_traffic 0 $HOSTS 128 > /tmp/traffic0
        wait
        for h in 0 $others; do grep -q "host $h passed" /tmp/traffic$h || { cat /tmp/traffic$h; return 1; }; done
        rounds=$((rounds + 1)); echo $rounds > /tmp/rounds
    done
    echo "$rounds rounds of traffic"
}
list=127.0.0.1; for h in $others; do list=$list,10.77.0.$((h + 1)); done
job() {
    before=$(cat /tmp/rounds)
    oshrun --driver linux --bridges /dev/ntb0.1,/dev/ntb1.1 --host $list --rsh vm_remote_shell --link-timeout 60s \\
        --link-limit 60s --timeout 150s "$@"
    status=$?
    echo "$1: status $status, $(($(cat /tmp/rounds) - before)) rounds of traffic beside it"
    return $status
}
outages() {
    for h in 0 $others; do on $h "quoit ring status --json"; done | grep -o '"outages": *[0-9]*' | grep -vc '[^0-9]0$'
}

if [ $HOST = 0 ]; then
    echo 0 > /tmp/rounds
    traffic & traffic=$!
    failed=0
    job mix --seconds 5 --max-bytes 16384 || failed=1
    [ $(cat /tmp/rounds) -gt 0 ] || { echo "no traffic beside the job"; failed=1; }
    job mix --seconds 300 --max-bytes 16384 > /tmp/mix 2>&1 & mix=$!
    until grep -q ' PEs begin' /tmp/mix || ! kill -0 $mix; do sleep 1; done
    sleep 5
    on 1 'kill -9 $(pidof mix oshrun)'
    wait $mix && { echo "the job outlived its processes"; failed=1; }
    tail -n 5 /tmp/mix
    grep -q ' PEs begin' /tmp/mix || { echo "the job that was to be killed never ran"; failed=1; }
    job mix --seconds 5 --max-bytes 16384 || failed=1
    touch /tmp/over
    wait $traffic || { echo "traffic failed"; failed=1; }
    outages=$(outages)
    echo "$outages ends of links of Ethernet had an outage"
    [ ${CUT:-0} = $((outages > 0)) ] || failed=1
    for h in $others; do on $h "touch /tmp/over"; done
else
    until [ -e /tmp/over ]; do sleep 1; done
    failed=0
fi
quoit ring down
wait $keeper || failed=1
cat /tmp/ring
kill $shell
[ $failed = 0 ]
"""


# host0 logs in on the others over the ring, and runs jobs there.
SSH = """
hostname host$HOST
ifconfig lo up
quoit ring join --host $HOST --hosts $HOSTS > /tmp/ring 2>&1 &
keeper=$!
/bin/sshd -D &
server=$!
for h in $(seq $HOSTS); do
    [ $h = $((HOST + 1)) ] || until ping -c 1 -W 5 10.77.0.$h 2> /dev/null | grep -q ' 0% packet loss'; do sleep 1; done
done
echo "reached at $(cut -d' ' -f1 /proc/uptime) s"
job() { exec oshrun --ring ring -n $((2 * HOSTS)) --link-timeout 60s --link-limit 60s --timeout 200s "$@"; }

failed=0
if [ $HOST = 0 ]; then
    others=$(seq $((HOSTS - 1)))
    dd if=/dev/urandom of=/tmp/file bs=64k count=32 2> /dev/null
    for h in $others; do
        until name=$(ssh 10.77.0.$((h + 1)) hostname); do sleep 1; done
        ssh 10.77.0.$((h + 1)) 'cat > /tmp/file' < /tmp/file
        sum=$(ssh 10.77.0.$((h + 1)) 'sha256sum < /tmp/file')
        ssh 10.77.0.$((h + 1)) 'cat /tmp/file' > /tmp/back
        cmp /tmp/file /tmp/back && [ "$name" = host$h ] && [ "$sum" = "$(sha256sum < /tmp/file)" ] || failed=1
        echo "ssh: $name, a file with the sum $sum"
    done
    for n in 1 2; do # both parts that the ring leaves; the jobs stand still, so that they take no time
        job mix --seconds 300 --max-bytes 16384 > /tmp/job$n 2>&1 & eval job$n=$!
        until grep -q ' PEs begin' /tmp/job$n || ! eval kill -0 \$job$n; do sleep 1; done
        kill -STOP $(pidof mix)
    done
    (job true) > /tmp/none 2>&1 && { echo "a third job ran"; failed=1; }
    cat /tmp/none
    grep -q 'all 3 parts' /tmp/none || { cat /tmp/job1 /tmp/job2; failed=1; }
    kill $job1; wait $job1
    (job conformance_query) || failed=1
    kill $job2; wait $job2
    cat /tmp/job1 /tmp/job2
    for h in $others; do ssh 10.77.0.$((h + 1)) touch /tmp/over; done
else
    until [ -e /tmp/over ]; do sleep 1; done
    sleep 2
fi
quoit ring down
wait $keeper || failed=1
cat /tmp/ring
kill $server
[ $failed = 0 ]
"""


# Rates of Ethernet devices: host 1 serves, host 0 sends as often.
IPERF_RUNS = 3
IPERF = f"""
RUNS="$(seq {IPERF_RUNS})"
""" + """
if [ $HOST = 1 ]; then
    for i in $RUNS; do iperf3 -s -1 > /tmp/iperf; done
else
    for i in $RUNS; do
        for try in $(seq 60); do iperf3 -c $PEER -t 6 -f m > /tmp/iperf 2>&1 && break; sleep 1; done
        awk '/receiver/ { print "rate " $7 " Mbit/s"; found = 1 } END { exit !found }' /tmp/iperf || cat /tmp/iperf
    done
fi
"""
ETHERNET = """
ifconfig lo up
quoit ring join --host $HOST --hosts $HOSTS > /tmp/ring 2>&1 &
keeper=$!
PEER=10.77.0.$((2 - HOST))
until ping -c 1 -W 5 $PEER 2> /dev/null | grep -q ' 0% packet loss'; do sleep 1; done
echo "MTU $(cat /sys/class/net/quoit0/mtu)"
""" + IPERF + """
sleep 2
quoit ring down
wait $keeper
"""
NETDEV = """
ifconfig lo up
sleep 4 # ntb_transport: its link comes up twice
ifconfig eth0 10.79.0.$((HOST + 1)) netmask 255.255.255.0 up
PEER=10.79.0.$((2 - HOST))
until ping -c 1 -W 5 $PEER 2> /dev/null | grep -q ' 0% packet loss'; do sleep 1; done
echo "MTU $(cat /sys/class/net/eth0/mtu)"
""" + IPERF + """
sleep 2
ifconfig eth0 down
"""
