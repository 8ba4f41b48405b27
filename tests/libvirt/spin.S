/*
 * A guest that does nothing but run: its vCPUs spin, those in the bit mask BUSY;
 * the others halt. It stands in place of the firmware, the last 64 KiB below
 * 4 GiB, so it starts at once. Intel SDM volume 3, "Processor Management and
 * Initialization": vCPU 0 starts 16 bytes below the end, in real mode, and starts
 * the others by its local APIC.
 */
        .set    ROM, 0xffff0000
        .set    APIC, 0xfee00000
        .set    LOW, 0x8000             /* where the others start, below 1 MiB */

        .macro  run
        mov     $1, %eax                /* EBX 31-24: the number of this vCPU */
        cpuid
        shr     $24, %ebx
        mov     $BUSY, %eax
        bt      %ebx, %eax
1:      jc      1b
        cli
        hlt
        .endm

        .code16
others: run
end:
        .align  8
segments:                               /* flat code, flat data; marked as used, since in ROM */
        .quad   0, 0x00cf9b000000ffff, 0x00cf93000000ffff
where:  .word   where - segments - 1
        .long   ROM + segments
first:  lgdtl   %cs:where
        mov     %cr0, %eax
        or      $1, %al                 /* the APIC is beyond real mode's reach */
        mov     %eax, %cr0
        ljmpl   $8, $(ROM + flat)

        .code32
flat:   mov     $16, %ax
        mov     %ax, %ds
        mov     %ax, %es
        cld
        mov     $(ROM + others), %esi
        mov     $LOW, %edi
        mov     $(end - others), %ecx
        rep movsb
        movl    $0x1ff, APIC + 0xf0                     /* switch it on */
        movl    $0xc4500, APIC + 0x300                  /* INIT, to all but this one */
        movl    $(0xc4600 + LOW / 0x1000), APIC + 0x300 /* start, at LOW */
        run

        .code16
        .org    0xfff0
        jmp     first
        .org    0x10000
