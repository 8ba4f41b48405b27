/*
 * A guest that reads its disk all the time. It stands in the first sector of the disk, which the
 * BIOS loads to 0x7c00. The BIOS (SeaBIOS) has the driver of virtio-blk, and waits for each read in
 * a loop: the vCPU is busy. After the first read, the guest writes to the serial port.
 */
        .code16
        .org 0
        cli
        xor %ax, %ax
        mov %ax, %ds
        mov %ax, %ss
        mov $0x7000, %sp
        sti
        call read
        mov $'R', %al
        mov $0x3f8, %dx
        outb %al, %dx
1:      call read
        jmp 1b
read:   mov $0x42, %ah                  /* extended read, of the first disk */
        mov $0x80, %dl
        mov $(0x7c00 + packet), %si
        int $0x13
        ret
        .align 8
packet: .byte 16, 0
        .word SECTORS
        .word 0, 0x1000                 /* to 0x10000 */
        .quad 2048                      /* from 1 MiB on */
        .org 510
        .word 0xaa55
