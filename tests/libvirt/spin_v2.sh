#!/bin/busybox sh
# The first process of a guest with cgroup v2. For each file in /contests it lays out cgroups as
# libvirt does on a host with systemd, lets a thread spin in each, and prints the CPU time that each
# scope and each thread have had, again and again. Each line of a file is a thread: its scope, the weight of that, its
# own cgroup below, and its CPUs. SETTLE, WINDOW (seconds) and COUNT come from the kernel's command
# line.
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
cd /sys/fs/cgroup || exit

hand_down() { # the CPU controller to what stands below each cgroup of a path, from the top
    [ "$1" = . ] || hand_down "$(dirname "$1")"
    echo +cpu > "$1/cgroup.subtree_control"
}

hold() { # a contest
    threads=
    while read -r scope weight thread cpus; do
        mkdir -p "$scope/$thread"
        hand_down "$(dirname "$scope/$thread")"
        echo "$weight" > "$scope/cpu.weight"
        sh -c 'echo $$ > "$0/cgroup.procs"; exec taskset -c "$1" sh -c "while :; do :; done"' \
            "$scope/$thread" "$cpus" &
        threads="$threads $!"
    done < "$1"
    set --
    for file in */*.scope/cpu.stat system.slice/cpu.stat; do
        [ -e "$file" ] && set -- "$@" "$file"
    done
    for thread in $threads; do
        set -- "$@" "/proc/$thread/schedstat"
    done
    sleep "$SETTLE"
    read_all "$@"
    for _ in $(seq "$COUNT"); do
        sleep "$WINDOW"
        read_all "$@"
    done
    # shellcheck disable=SC2086  # one word each
    kill -9 $threads
    # shellcheck disable=SC2086
    wait $threads
    find ./*.slice -depth -type d -exec rmdir {} \;
}

read_all() { # by one process, since it takes long to start processes in an emulated guest
    echo uptime
    grep -H -E 'usage_usec|\.|^[0-9]+ [0-9]+ [0-9]+$' /proc/uptime "$@"
}

for contest in /contests/*; do
    echo contest
    hold "$contest"
done
echo done
sleep 1000000
