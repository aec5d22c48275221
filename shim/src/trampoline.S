/* dlsym, dlvsym and dlopen as the program sees them.

   The real functions look at their caller's address (RTLD_NEXT, run paths), so they are reached by a jump, never by a
   call. entry_lookup answers in two registers: answered (0 or 1) and the value.
   entry_open_flags takes RTLD_DEEPBIND away: a library opened with it would find the driver before this one.

   Each name exists in the version that old programs ask for and in the one that new programs ask for. */

#if defined(__x86_64__)

    .text
    .macro LOOKUP name, which, real, third
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    mov 24(%rsp), %rcx
    mov \third, %rdx
    mov $\which, %r8d
    call entry_lookup
    mov %rdx, %rcx
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %rax, %rax
    jz 1f
    mov %rcx, %rax
    ret
1:  mov \real(%rip), %r11
    jmp *%r11
    .cfi_endproc
    .size \name, . - \name
    .endm

    LOOKUP entry_dlsym, 0, entry_real_dlsym, $0
    LOOKUP entry_dlvsym, 1, entry_real_dlvsym, %rdx

    .globl entry_dlopen
    .hidden entry_dlopen
    .type entry_dlopen, @function
entry_dlopen:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    mov %esi, %edi
    call entry_open_flags
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    mov %eax, %esi
    mov entry_real_dlopen(%rip), %r11
    jmp *%r11
    .cfi_endproc
    .size entry_dlopen, . - entry_dlopen

#elif defined(__aarch64__)

    .text
    .macro LOOKUP name, which, real
    .globl \name
    .hidden \name
    .type \name, %function
\name:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-48]!
    .cfi_def_cfa_offset 48
    .cfi_offset 29, -48
    .cfi_offset 30, -40
    mov x29, sp
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    mov x3, x30
    mov w4, #\which
    bl entry_lookup
    mov x9, x0
    mov x10, x1
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_def_cfa_offset 0
    cbz x9, 1f
    mov x0, x10
    ret
1:  adrp x16, \real
    ldr x16, [x16, :lo12:\real]
    br x16
    .cfi_endproc
    .size \name, . - \name
    .endm

    LOOKUP entry_dlsym, 0, entry_real_dlsym
    LOOKUP entry_dlvsym, 1, entry_real_dlvsym

    .globl entry_dlopen
    .hidden entry_dlopen
    .type entry_dlopen, %function
entry_dlopen:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    stp x0, x1, [sp, #16]
    mov w0, w1
    bl entry_open_flags
    mov w9, w0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    mov w1, w9
    adrp x16, entry_real_dlopen
    ldr x16, [x16, :lo12:entry_real_dlopen]
    br x16
    .cfi_endproc
    .size entry_dlopen, . - entry_dlopen
#endif

#define EXPORT(name) \
    .globl vgpu_old_##name; .set vgpu_old_##name, entry_##name; \
    .globl vgpu_new_##name; .set vgpu_new_##name, entry_##name
    EXPORT(dlsym)
    EXPORT(dlvsym)
    EXPORT(dlopen)
#if defined(__x86_64__)
    .symver vgpu_old_dlsym, dlsym@GLIBC_2.2.5
    .symver vgpu_old_dlvsym, dlvsym@GLIBC_2.2.5
    .symver vgpu_old_dlopen, dlopen@GLIBC_2.2.5
#else
    .symver vgpu_old_dlsym, dlsym@GLIBC_2.17
    .symver vgpu_old_dlvsym, dlvsym@GLIBC_2.17
    .symver vgpu_old_dlopen, dlopen@GLIBC_2.17
#endif
    .symver vgpu_new_dlsym, dlsym@@GLIBC_2.34
    .symver vgpu_new_dlvsym, dlvsym@@GLIBC_2.34
    .symver vgpu_new_dlopen, dlopen@@GLIBC_2.34

    .section .note.GNU-stack, "", %progbits
