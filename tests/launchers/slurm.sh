#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A Slurm of two nodes on this machine, each a network namespace, in which COMMAND runs; nothing stays. Needs root and the
# packages slurm-wlm and munge.
#   unshare -n -m -u -p -f --mount-proc --kill-child bash slurm.sh COMMAND...
set -eu
nodes="0 1"
tree=$(cd "$(dirname "$0")/../.." && pwd -P)
mount --make-rprivate /
home=$(mktemp -d /var/tmp/quoit-slurm.XXXXXX)
trap 'rm -rf "$home"' EXIT
chmod 755 "$home"
mkdir -m 700 "$home/munge"
hostname front
ip link set lo up
ip link add bridge0 type bridge
ip address add 10.98.7.1/24 dev bridge0
ip link set bridge0 up
{
    echo "127.0.0.1 localhost"
    echo "10.98.7.1 front"
    for node in $nodes; do echo "10.98.7.1$node node$node"; done
} >"$home/hosts"
mount --bind "$home/hosts" /etc/hosts
head -c 1024 /dev/urandom >"$home/munge/key"
chmod 400 "$home/munge/key"
munged --force --socket="$home/socket" --key-file="$home/munge/key" --pid-file="$home/munge/pid" \
    --log-file="$home/munge/log" --seed-file="$home/munge/seed"
cat >"$home/slurm.conf" <<END
ClusterName=quoit
SlurmctldHost=front(10.98.7.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$home/socket
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool.%n
SlurmctldPidFile=$home/controller.pid
SlurmdPidFile=$home/%n.pid
SlurmctldLogFile=$home/controller.log
SlurmdLogFile=$home/%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
KillWait=2
NodeName=node[0-1] CPUs=8
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE
END
echo CgroupPlugin=cgroup/v1 >"$home/cgroup.conf"
mkdir "$home/state"
export SLURM_CONF=$home/slurm.conf
slurmctld -c -i
for node in $nodes; do
    mkdir "$home/spool.node$node"
    mkfifo "$home/begin$node"
    unshare -n -m -u bash -c "hostname node$node; exec 9<'$tree'; mount -t tmpfs none /tmp
        case '$tree' in /tmp/*) mkdir -p '$tree' && mount --no-canonicalize --bind /proc/self/fd/9 '$tree' ;; esac
        exec 9<&-; read -r line <$home/begin$node
        mount -t sysfs none /sys # of its own devices, by which UCX finds them
        ip link set lo up; ip address add 10.98.7.1$node/24 dev inner; ip link set inner up
        exec slurmd -D -N node$node" >"$home/node$node.out" 2>&1 &
    until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
    ip link add outer$node type veth peer name inner netns $!
    ip link set outer$node master bridge0 up
    echo begin >"$home/begin$node"
done
for _ in $(seq 3000); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
    sleep 0.02
done
status=0
"$@" || status=$?
exit $status
