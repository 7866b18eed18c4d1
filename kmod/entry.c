// SPDX-License-Identifier: GPL-2.0-only
/*
 * The trampoline: the entry of every hooked call.
 *
 * It decides within some 15 instructions whether a call concerns LUC. If not, it
 * returns into the function without saving a register or storing anything: file systems
 * that LUC is not attached to must not notice it. It compares its return address with
 * the addresses that luc_dispatch() learned, follows the first argument to a device
 * number, and looks it up in a bitmap of attached devices. Hooks of sync calls and
 * commits are then called directly. All other calls, and calls from an address not
 * learned yet, go through luc_dispatch(), which identifies hooks by their addresses.
 *
 * An fsync calls jbd2_complete_transaction(), which ends in jbd2_log_wait_commit() by a
 * tail call: both return to the same place. The second hook has nothing to add to the
 * first. So the trampoline also lets a wait pass if it returns to the same address as a
 * call that was counted.
 *
 * Two hooks run for every metadata buffer of a commit but matter only while a file
 * system copies out; otherwise their calls pass at once. One hook sees all waits for
 * bits, of which only those for one bit matter.
 *
 * At function entry, %rax, %r10 and %r11 are free, as are argument registers that the
 * function does not use.
 */
#include <linux/fs.h>
#include <linux/kallsyms.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <asm/frame.h>
#include <asm/ibt.h>
#include <asm/linkage.h>
#include <asm/nospec-branch.h>

#include "entry.h"
#include "luc.h"

#ifndef CONFIG_X86_64
#error "luc: the trampoline exists for x86-64 only"
#endif

/* Kernels that count call depth (return stuffing on Skylake) also count in thunks. */
#ifdef CALL_DEPTH_ACCOUNT
#define LUC_DEPTH_ACCOUNT CALL_DEPTH_ACCOUNT
#else
#define LUC_DEPTH_ACCOUNT ""
#endif

struct luc_entry luc_entry;

#define LUC_FROM(hook, to)						\
	"	cmpq luc_entry+LUC_ENTRY_" #hook "(%rip), %r11\n"	\
	"	je " to "\n"

/* Loads the device number into %r11. */
#define LUC_DEV_OF_FILE							\
	"	movq LUC_FILE_INODE(%rdi), %r11\n"			\
	"	movq LUC_INODE_SB(%r11), %r11\n"			\
	"	movl LUC_SB_DEV(%r11), %r11d\n"
#define LUC_DEV_OF_JOURNAL						\
	"	movq LUC_JOURNAL_FS_DEV(%rdi), %r11\n"			\
	"	movl LUC_BDEV_DEV(%r11), %r11d\n"

/* Jumps to 9 if no such device is attached, judging by the low bits of its number. */
#define LUC_IF_ATTACHED							\
	"	movq luc_entry+LUC_ENTRY_devs(%rip), %r10\n"		\
	"	btq %r11, %r10\n"					\
	"	jnc 9f\n"

/*
 * From 6.19 on (kernel commit 25e4e3565d45) bit 0 of a trampoline's address is a flag, hence
 * the alignment.
 */
asm(".pushsection .text, \"ax\", @progbits\n"
    ".balign 16\n"
    ".type luc_trampoline, @function\n"
    ".globl luc_trampoline\n"
    "luc_trampoline:\n"
    ASM_ENDBR
    "	movq (%rsp), %r11\n"
    LUC_FROM(write, "9f")
    LUC_FROM(file, "9f")
    LUC_FROM(sync_file, "1f")
    LUC_FROM(complete, "2f")
    LUC_FROM(wait_commit, "3f")
    LUC_FROM(commit, "4f")
    LUC_FROM(wait_bit, "5f")
    LUC_FROM(fast_commit, "6f")
    LUC_FROM(wait_locked, "6f")

    "7:	pushq %rbp\n"
    "	movq %rsp, %rbp\n"
    LUC_DEPTH_ACCOUNT
    "	pushq %rdi\n"
    "	pushq %rsi\n"
    "	pushq %rdx\n"
    "	pushq %rcx\n"
    "	pushq %r8\n"
    "	pushq %r9\n"
    "	movq %rsp, %rdi\n"
    "	movq 8(%rbp), %rsi\n"
    "	movq 16(%rbp), %rdx\n"
    "	call luc_dispatch\n"
    "	popq %r9\n"
    "	popq %r8\n"
    "	popq %rcx\n"
    "	popq %rdx\n"
    "	popq %rsi\n"
    "	popq %rdi\n"
    "	popq %rbp\n"
    ASM_RET

    "1:\n"
    LUC_DEV_OF_FILE
    LUC_IF_ATTACHED
    FRAME_BEGIN
    LUC_DEPTH_ACCOUNT
    "	pushq %rdi\n"
    "	pushq %rsi\n"
    "	pushq %rdx\n"
    "	pushq %rcx\n"
    "	movl %r11d, %edi\n"
    "	call luc_on_sync_file\n"
    "	popq %rcx\n"
    "	popq %rdx\n"
    "	popq %rsi\n"
    "	popq %rdi\n"
    FRAME_END
    ASM_RET

    "2:\n"
    LUC_DEV_OF_JOURNAL
    LUC_IF_ATTACHED
    FRAME_BEGIN
    LUC_DEPTH_ACCOUNT
    "	pushq %rdi\n"
    "	pushq %rsi\n"
    "	movl %r11d, %edx\n"
    "	call luc_on_complete\n"
    "	popq %rsi\n"
    "	popq %rdi\n"
    FRAME_END
    ASM_RET

    "3:	movq 8(%rsp), %rcx\n"
    "	cmpq luc_entry+LUC_ENTRY_counted_from(%rip), %rcx\n"
    "	je 9f\n"
    LUC_DEV_OF_JOURNAL
    LUC_IF_ATTACHED
    FRAME_BEGIN
    LUC_DEPTH_ACCOUNT
    "	pushq %rdi\n"
    "	pushq %rsi\n"
    "	movl %r11d, %edx\n"
    "	call luc_on_wait_commit\n"
    "	popq %rsi\n"
    "	popq %rdi\n"
    FRAME_END
    ASM_RET

    "4:\n"
    LUC_DEV_OF_JOURNAL
    LUC_IF_ATTACHED
    FRAME_BEGIN
    LUC_DEPTH_ACCOUNT
    "	pushq %rdi\n"
    "	movl %r11d, %esi\n"
    "	call luc_on_commit\n"
    "	popq %rdi\n"
    FRAME_END
    ASM_RET

    "5:	cmpl $LUC_SHADOW_BIT, %esi\n"
    "	je 7b\n"
    ASM_RET

    "6:\n"
    LUC_DEV_OF_JOURNAL
    LUC_IF_ATTACHED
    "	jmp 7b\n"
    "9:\n"
    ASM_RET
    ".size luc_trampoline, .-luc_trampoline\n"
    ".popsection\n");

#define LUC_SET(name, value) \
	asm volatile(".set " #name ", %c0" : : "i"(value))
#define LUC_SET_ENTRY(field) \
	LUC_SET(LUC_ENTRY_##field, offsetof(struct luc_entry, field))

/* Never called: hands offsets from the compiler to the assembler. */
static void __used luc_entry_layout(void)
{
	LUC_SET_ENTRY(write);
	LUC_SET_ENTRY(file);
	LUC_SET_ENTRY(sync_file);
	LUC_SET_ENTRY(complete);
	LUC_SET_ENTRY(wait_commit);
	LUC_SET_ENTRY(commit);
	LUC_SET_ENTRY(devs);
	LUC_SET_ENTRY(counted_from);
	LUC_SET_ENTRY(wait_bit);
	LUC_SET_ENTRY(fast_commit);
	LUC_SET_ENTRY(wait_locked);
	LUC_SET(LUC_FILE_INODE, offsetof(struct file, f_inode));
	LUC_SET(LUC_INODE_SB, offsetof(struct inode, i_sb));
	LUC_SET(LUC_SB_DEV, offsetof(struct super_block, s_dev));
	LUC_SET(LUC_JOURNAL_FS_DEV, offsetof(journal_t, j_fs_dev));
	LUC_SET(LUC_BDEV_DEV, offsetof(struct block_device, bd_dev));
	LUC_SET(LUC_SHADOW_BIT, BH_Shadow);
	BUILD_BUG_ON(sizeof_field(struct super_block, s_dev) != 4);
	BUILD_BUG_ON(sizeof_field(struct block_device, bd_dev) != 4);
}

/* Guards the number of file systems that copy out, and the next two addresses. */
static DEFINE_SPINLOCK(luc_quiet_lock);
static unsigned int luc_copying;
static unsigned long luc_quiet_write, luc_quiet_file;

static void luc_quiet_set(void)
{
	luc_learn(&luc_entry.write, luc_copying ? 0 : luc_quiet_write);
	luc_learn(&luc_entry.file, luc_copying ? 0 : luc_quiet_file);
}

void luc_entry_copying(bool more)
{
	spin_lock(&luc_quiet_lock);
	luc_copying += more ? 1 : -1;
	luc_quiet_set();
	spin_unlock(&luc_quiet_lock);
}

static void luc_learn_quiet(unsigned long *quiet, unsigned long back)
{
	if (READ_ONCE(*quiet) == back)
		return;
	spin_lock(&luc_quiet_lock);
	WRITE_ONCE(*quiet, back);
	luc_quiet_set();
	spin_unlock(&luc_quiet_lock);
}

void luc_learn_write(unsigned long back)
{
	luc_learn_quiet(&luc_quiet_write, back);
}

void luc_learn_file(unsigned long back)
{
	luc_learn_quiet(&luc_quiet_file, back);
}

static bool luc_patched __read_mostly;
/* The last return address that was not ext4's, so that its name is looked up once. */
static unsigned long luc_foreign __read_mostly;

/*
 * A tracer of returns (kretprobe, function_graph, fexit) replaces the caller's address
 * with its own, the same one for all callers: urgent waits would then pass together
 * with the counted ones. A livepatch's address may be reused by another module.
 */
static bool luc_is_ext4(unsigned long address)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, address);
	return !strncmp(name, "ext4_", 5) && (!strchr(name, '[') || strstr(name, " [ext4]"));
}

/* Only the first caller is learned: others that complete transactions are rare. */
void luc_learn_counted(unsigned long caller)
{
	if (READ_ONCE(luc_entry.counted_from) || READ_ONCE(luc_patched) ||
	    READ_ONCE(luc_foreign) == caller)
		return;
	if (luc_is_ext4(caller))
		WRITE_ONCE(luc_entry.counted_from, caller);
	else
		WRITE_ONCE(luc_foreign, caller);
}

void luc_entry_patched(void)
{
	if (READ_ONCE(luc_patched))
		return;
	WRITE_ONCE(luc_patched, true);
	WRITE_ONCE(luc_entry.counted_from, 0);
}

/* Under luc_mutex, while no hook is registered. */
void luc_entry_forget(void)
{
	const u64 devs = luc_entry.devs;

	luc_entry = (struct luc_entry){ .devs = devs };
	luc_quiet_write = 0;
	luc_quiet_file = 0;
	luc_patched = false;
	luc_foreign = 0;
}
