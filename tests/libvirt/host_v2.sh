#!/bin/busybox sh
# The first process of a guest that is a host with cgroup v2: libvirtd without systemd, so that
# libvirt makes the cgroups itself. The second serial port leads to libvirtd. Who writes the name
# of a file to the third serial port gets the content of the file, with a NUL character after it.
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/usr/sbin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -s /run /var/run

for port in /dev/ttyS1 /dev/ttyS2; do
    stty raw -echo < $port
done
libvirtd &
until [ -S /run/libvirt/libvirt-sock ]; do
    sleep 0.1
done
virt-ssh-helper qemu:///system < /dev/ttyS1 > /dev/ttyS1 &
while read -r path; do
    cat "$path"
    printf '\0'
done < /dev/ttyS2 > /dev/ttyS2 &
echo done
while sleep 1; do # the first process reaps guests that have ended
    :
done
