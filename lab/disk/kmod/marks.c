// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/NAME-log, and the record as text.
 *
 * write(2) of 1 to 4096 bytes appends a mark to the record: entries of earlier
 * completions precede it, entries of later requests follow it. read(2) returns
 * the marks one after the other, each as
 *
 *	u32 bytes, u64 index of its log entry, that many bytes
 *
 * little endian, without gaps, as a file that can be read in pieces and from
 * any position. The file of a replica ends at its cut.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "lucdisk.h"

/* Longest line: three numbers of 64 bits, two of 32, the operation, "fua". */
#define LUCDISK_LINE_BYTES 120

static struct lucdisk *lucdisk_of_file(struct file *file)
{
	struct miscdevice *misc = file->private_data;

	return container_of(misc, struct lucdisk, marks);
}

/* The misc device cannot go away before this returns; the disk may, later. */
static int lucdisk_marks_open(struct inode *inode, struct file *file)
{
	config_item_get(&lucdisk_of_file(file)->item);
	return 0;
}

static int lucdisk_marks_release(struct inode *inode, struct file *file)
{
	config_item_put(&lucdisk_of_file(file)->item);
	return 0;
}

static ssize_t lucdisk_marks_write(struct file *file, const char __user *buf, size_t bytes,
				   loff_t *pos)
{
	struct lucdisk *disk = lucdisk_of_file(file);
	struct lucdisk_mark *mark;
	int err;

	if (!bytes || bytes > LUCDISK_MARK_BYTES_MAX)
		return -EINVAL;
	mark = kmalloc(struct_size(mark, data, bytes), GFP_KERNEL);
	if (!mark)
		return -ENOMEM;
	mark->head.bytes = cpu_to_le32(bytes);
	if (copy_from_user(mark->data, buf, bytes)) {
		kfree(mark);
		return -EFAULT;
	}
	mutex_lock(&disk->io_mutex);
	err = lucdisk_log_mark(disk, mark);
	mutex_unlock(&disk->io_mutex);
	if (err) {
		kfree(mark);
		return err;
	}
	return bytes;
}

static u64 lucdisk_mark_end(const struct lucdisk_mark *mark)
{
	return mark->pos + sizeof(mark->head) + le32_to_cpu(mark->head.bytes);
}

/* The first of n marks that ends after a position. */
static u64 lucdisk_mark_find(struct lucdisk_log *log, u64 n, u64 pos)
{
	u64 low = 0;

	while (low < n) {
		u64 middle = low + (n - low) / 2;

		if (lucdisk_mark_end(xa_load(&log->mark, middle)) <= pos)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

static ssize_t lucdisk_marks_copy(struct lucdisk_log *log, u64 cut, char __user *buf,
				  size_t bytes, loff_t *pos)
{
	/* Pairs with the release in lucdisk_log_mark(). */
	u64 n = smp_load_acquire(&log->marks);
	u64 i = lucdisk_mark_find(log, n, *pos);
	size_t done = 0;

	for (; i < n && done < bytes; i++) {
		struct lucdisk_mark *mark = xa_load(&log->mark, i);
		size_t offset = *pos - mark->pos;
		size_t part = min_t(size_t, lucdisk_mark_end(mark) - *pos, bytes - done);

		if (mark->index >= cut)
			break;
		/* The data follows the head without a gap. */
		if (copy_to_user(buf + done, (u8 *)mark + offsetof(struct lucdisk_mark, head) +
				 offset, part))
			return -EFAULT;
		done += part;
		*pos += part;
	}
	return done;
}

static ssize_t lucdisk_marks_read(struct file *file, char __user *buf, size_t bytes,
				  loff_t *pos)
{
	struct lucdisk *disk = lucdisk_of_file(file);
	struct lucdisk_replica *replica = &disk->replica;
	ssize_t done = 0;

	if (*pos < 0)
		return -EINVAL;
	/* Keeps the record and the cut where they are. */
	if (mutex_lock_interruptible(&disk->lock))
		return -ERESTARTSYS;
	if (replica->log)
		done = lucdisk_marks_copy(replica->log, replica->cut, buf, bytes, pos);
	else if (disk->log)
		done = lucdisk_marks_copy(disk->log, U64_MAX, buf, bytes, pos);
	mutex_unlock(&disk->lock);
	return done;
}

static const struct file_operations lucdisk_marks_fops = {
	.owner = THIS_MODULE,
	.open = lucdisk_marks_open,
	.release = lucdisk_marks_release,
	.read = lucdisk_marks_read,
	.write = lucdisk_marks_write,
	.llseek = default_llseek,
};

int lucdisk_marks_register(struct lucdisk *disk)
{
	snprintf(disk->marks_name, sizeof(disk->marks_name), "%s" LUCDISK_LOG_SUFFIX,
		 config_item_name(&disk->item));
	disk->marks = (struct miscdevice) {
		.minor = MISC_DYNAMIC_MINOR,
		.name = disk->marks_name,
		.fops = &lucdisk_marks_fops,
		.mode = 0600,
	};
	return misc_register(&disk->marks);
}

static const char *const lucdisk_log_name[] = {
	[LUCDISK_LOG_NONE] = "none",
	[LUCDISK_LOG_WRITE] = "write",
	[LUCDISK_LOG_WRITE_DONE] = "write-done",
	[LUCDISK_LOG_DISCARD] = "discard",
	[LUCDISK_LOG_DISCARD_DONE] = "discard-done",
	[LUCDISK_LOG_FLUSH] = "flush",
	[LUCDISK_LOG_FLUSH_DONE] = "flush-done",
	[LUCDISK_LOG_MARK] = "mark",
};

/*
 * Lines of text, copied into a buffer or, without one, only measured. configfs
 * asks first for the length and then returns exactly that many bytes.
 */
struct lucdisk_text {
	char *buf;
	size_t size;
	size_t used;
};

static bool lucdisk_text_add(struct lucdisk_text *text, const char *line, size_t bytes)
{
	if (text->buf) {
		if (text->used + bytes > text->size)
			return false;
		memcpy(text->buf + text->used, line, bytes);
	}
	text->used += bytes;
	return true;
}

static ssize_t lucdisk_text_end(struct lucdisk_text *text)
{
	/* A new record between the two calls may be shorter. */
	if (text->buf)
		memset(text->buf + text->used, 0, text->size - text->used);
	return text->used;
}

/* "INDEX TIME_NS OPERATION SECTOR BYTES [fua] [of INDEX]" */
ssize_t lucdisk_log_text(struct lucdisk_log *log, char *buf, size_t size)
{
	struct lucdisk_text text = { .buf = buf, .size = size };
	char line[LUCDISK_LINE_BYTES];
	u64 i, len = lucdisk_log_len(log);

	for (i = 0; i < len; i++) {
		const struct lucdisk_entry *entry = lucdisk_log_entry(log, i);
		size_t n = scnprintf(line, sizeof(line), "%llu %llu %s %llu %u%s", i,
				     entry->time_ns, lucdisk_log_name[entry->op], entry->sector,
				     entry->bytes, entry->fua ? " fua" : "");

		if (entry->op >= LUCDISK_LOG_WRITE_DONE && entry->op <= LUCDISK_LOG_FLUSH_DONE)
			n += scnprintf(line + n, sizeof(line) - n, " of %llu", entry->ref);
		n += scnprintf(line + n, sizeof(line) - n, "\n");
		if (!lucdisk_text_add(&text, line, n))
			break;
		cond_resched();
	}
	return lucdisk_text_end(&text);
}

/* Indices of completed flushes, one per line. */
ssize_t lucdisk_log_flush_text(struct lucdisk_log *log, char *buf, size_t size)
{
	struct lucdisk_text text = { .buf = buf, .size = size };
	char line[LUCDISK_LINE_BYTES];
	u64 i, len = lucdisk_log_len(log);

	for (i = 0; i < len; i++) {
		if (lucdisk_log_entry(log, i)->op == LUCDISK_LOG_FLUSH_DONE &&
		    !lucdisk_text_add(&text, line,
				      scnprintf(line, sizeof(line), "%llu\n", i)))
			break;
		cond_resched();
	}
	return lucdisk_text_end(&text);
}
