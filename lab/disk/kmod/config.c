// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/config/lucdisk/NAME: the attributes of a disk.
 *
 *   size_mib, every knob	fixed while the disk is on; a replica has no use
 *				for them
 *   activity			"BUSY_NS READ_BYTES WRITTEN_BYTES FLUSHES" since it is
 *				on; read
 *   partitions			1: look for a partition table; while off
 *   power			0 or 1
 *   fault, fault_seed		rules and generator, see fault.c; any time
 *   fault_hits			read
 *   record			1 starts a record, 0 ends it; while on
 *   record_mib			most memory the next record may take
 *   log_entries, log_lost	read
 *   log, log_flushes		the whole record, the flushes done, as text
 *   replica			name of a recorded disk; while off
 *   cut			"INDEX MODE SEED", see replica.c
 */
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "lucdisk.h"

/* Attribute NAME shows one number, read under disk->lock. */
#define LUCDISK_SHOW(_name, _value) \
static ssize_t lucdisk_##_name##_show(struct config_item *item, char *page) \
{ \
	struct lucdisk *disk = lucdisk_of(item); \
	ssize_t len; \
\
	mutex_lock(&disk->lock); \
	len = sysfs_emit(page, "%llu\n", (u64)(_value)); \
	mutex_unlock(&disk->lock); \
	return len; \
}

/* Parses a number within bounds; it may change while the disk is off, or at any time. */
static int lucdisk_number(struct lucdisk *disk, const char *text, s64 min, s64 max, bool any_time,
			  s64 *value)
{
	s64 number;

	if (kstrtos64(text, 10, &number) || number < min || number > max)
		return -EINVAL;
	if (disk->powered && !any_time)
		return -EBUSY;
	*value = number;
	return 0;
}

static ssize_t lucdisk_knob_store(struct config_item *item, const char *text, size_t count,
				  s64 min, s64 max, s64 *knob)
{
	struct lucdisk *disk = lucdisk_of(item);
	int err;

	mutex_lock(&disk->lock);
	err = lucdisk_number(disk, text, min, max, false, knob);
	mutex_unlock(&disk->lock);
	return err ?: count;
}

#define LUCDISK_KNOB_ATTR(name, min, max, dflt, help) \
LUCDISK_SHOW(name, disk->params.name) \
static ssize_t lucdisk_##name##_store(struct config_item *item, const char *text, size_t count) \
{ \
	return lucdisk_knob_store(item, text, count, min, max, &lucdisk_of(item)->params.name); \
} \
CONFIGFS_ATTR(lucdisk_, name);
LUCDISK_KNOBS(LUCDISK_KNOB_ATTR)

static ssize_t lucdisk_u32_store(struct config_item *item, const char *text, size_t count, u32 max,
				 bool any_time, u32 *field)
{
	struct lucdisk *disk = lucdisk_of(item);
	s64 value;
	int err;

	mutex_lock(&disk->lock);
	err = lucdisk_number(disk, text, 1, max, any_time, &value);
	if (!err)
		*field = value;
	mutex_unlock(&disk->lock);
	return err ?: count;
}

/* A replica is as large as the disk that it replicates. */
LUCDISK_SHOW(size_mib, disk->replica.log ? disk->replica.log->sectors >> (20 - SECTOR_SHIFT) :
					   disk->size_mib)

static ssize_t lucdisk_size_mib_store(struct config_item *item, const char *text, size_t count)
{
	return lucdisk_u32_store(item, text, count, LUCDISK_SIZE_MIB_MAX, false,
				 &lucdisk_of(item)->size_mib);
}

LUCDISK_SHOW(record_mib, disk->record_mib)

static ssize_t lucdisk_record_mib_store(struct config_item *item, const char *text, size_t count)
{
	return lucdisk_u32_store(item, text, count, LUCDISK_RECORD_MIB_MAX, true,
				 &lucdisk_of(item)->record_mib);
}

/* 0 or 1 and nothing else; set() is called under disk->lock. */
static ssize_t lucdisk_switch_store(struct config_item *item, const char *text, size_t count,
				    int (*set)(struct lucdisk *disk, bool on))
{
	struct lucdisk *disk = lucdisk_of(item);
	unsigned int value;
	int err;

	if (kstrtouint(text, 10, &value) || value > 1)
		return -EINVAL;
	mutex_lock(&disk->lock);
	err = set(disk, value);
	mutex_unlock(&disk->lock);
	return err ?: count;
}

LUCDISK_SHOW(partitions, disk->partitions)

static int lucdisk_partitions_set(struct lucdisk *disk, bool on)
{
	if (disk->powered)
		return -EBUSY;
	disk->partitions = on;
	return 0;
}

static ssize_t lucdisk_partitions_store(struct config_item *item, const char *text, size_t count)
{
	return lucdisk_switch_store(item, text, count, lucdisk_partitions_set);
}

LUCDISK_SHOW(power, disk->powered)

static int lucdisk_power_set(struct lucdisk *disk, bool on)
{
	if (on && !disk->powered)
		return lucdisk_power_on(disk);
	if (!on && disk->powered)
		lucdisk_power_off(disk);
	return 0;
}

static ssize_t lucdisk_power_store(struct config_item *item, const char *text, size_t count)
{
	return lucdisk_switch_store(item, text, count, lucdisk_power_set);
}

static ssize_t lucdisk_activity_show(struct config_item *item, char *page)
{
	struct lucdisk *disk = lucdisk_of(item);
	struct lucdisk_activity done;
	ssize_t len = -ENODEV;

	mutex_lock(&disk->lock);
	if (disk->powered) {
		done = lucdisk_queue_activity(disk);
		len = sysfs_emit(page, "%llu %llu %llu %llu\n", done.busy_ns, done.read_bytes,
				 done.written_bytes, done.flushes);
	}
	mutex_unlock(&disk->lock);
	return len;
}

static ssize_t lucdisk_fault_attr_show(struct config_item *item, char *page)
{
	return lucdisk_fault_show(lucdisk_of(item), page);
}

static ssize_t lucdisk_fault_attr_store(struct config_item *item, const char *text, size_t count)
{
	return lucdisk_fault_add(lucdisk_of(item), text) ?: count;
}

LUCDISK_SHOW(fault_hits, READ_ONCE(disk->faults.hits))
LUCDISK_SHOW(fault_seed, disk->faults.seed)

static ssize_t lucdisk_fault_seed_store(struct config_item *item, const char *text, size_t count)
{
	struct lucdisk *disk = lucdisk_of(item);
	u64 seed;

	if (kstrtou64(text, 10, &seed))
		return -EINVAL;
	mutex_lock(&disk->io_mutex);
	lucdisk_faults_init(&disk->faults, seed);
	mutex_unlock(&disk->io_mutex);
	return count;
}

LUCDISK_SHOW(record, disk->log && disk->log->state != LUCDISK_LOG_STOPPED)

static ssize_t lucdisk_record_store(struct config_item *item, const char *text, size_t count)
{
	return lucdisk_switch_store(item, text, count, lucdisk_record);
}

LUCDISK_SHOW(log_entries, disk->log ? lucdisk_log_len(disk->log) : 0)
LUCDISK_SHOW(log_lost, disk->log ? READ_ONCE(disk->log->lost) : 0)

/* A disk's record as text; nothing without a record. */
static ssize_t lucdisk_record_read(struct config_item *item, void *buf, size_t size,
				   ssize_t (*text)(struct lucdisk_log *, char *, size_t))
{
	struct lucdisk *disk = lucdisk_of(item);
	ssize_t len;

	mutex_lock(&disk->lock);
	len = disk->log ? text(disk->log, buf, size) : 0;
	mutex_unlock(&disk->lock);
	return len;
}

static ssize_t lucdisk_log_read(struct config_item *item, void *buf, size_t size)
{
	return lucdisk_record_read(item, buf, size, lucdisk_log_text);
}

static ssize_t lucdisk_log_flushes_read(struct config_item *item, void *buf, size_t size)
{
	return lucdisk_record_read(item, buf, size, lucdisk_log_flush_text);
}

static ssize_t lucdisk_replica_attr_show(struct config_item *item, char *page)
{
	struct lucdisk *disk = lucdisk_of(item);
	ssize_t len;

	mutex_lock(&disk->lock);
	len = sysfs_emit(page, "%s\n", disk->replica.name);
	mutex_unlock(&disk->lock);
	return len;
}

/* A reference to the record of a disk; taken before another disk's lock. */
static struct lucdisk_log *lucdisk_log_of(const char *name)
{
	struct config_item *item = lucdisk_find(name);
	struct lucdisk_log *log;
	struct lucdisk *disk;

	if (!item)
		return NULL;
	disk = lucdisk_of(item);
	mutex_lock(&disk->lock);
	log = disk->log;
	if (log)
		kref_get(&log->kref);
	mutex_unlock(&disk->lock);
	config_item_put(item);
	return log;
}

/* An empty line makes it an ordinary, empty disk again. */
static ssize_t lucdisk_replica_attr_store(struct config_item *item, const char *text, size_t count)
{
	struct lucdisk *disk = lucdisk_of(item);
	char name[LUCDISK_NAME_BYTES_MAX + 2];
	struct lucdisk_log *log = NULL;
	int err = 0;

	if (strscpy(name, text, sizeof(name)) < 0)
		return -EINVAL;
	strim(name);
	if (*name) {
		log = lucdisk_log_of(name);
		if (!log)
			return -EINVAL;
	}
	mutex_lock(&disk->lock);
	if (disk->powered)
		err = -EBUSY;
	else if (log)
		err = lucdisk_replica_set(disk, log, name);
	else if (disk->replica.log)
		lucdisk_replica_clear(disk);
	mutex_unlock(&disk->lock);
	if (err == -EBUSY)
		lucdisk_log_put(log);
	return err ?: count;
}

static ssize_t lucdisk_cut_show(struct config_item *item, char *page)
{
	struct lucdisk *disk = lucdisk_of(item);
	ssize_t len;

	mutex_lock(&disk->lock);
	len = lucdisk_replica_show(disk, page);
	mutex_unlock(&disk->lock);
	return len;
}

static ssize_t lucdisk_cut_store(struct config_item *item, const char *text, size_t count)
{
	struct lucdisk *disk = lucdisk_of(item);
	int err;

	mutex_lock(&disk->lock);
	err = lucdisk_replica_cut(disk, text);
	mutex_unlock(&disk->lock);
	return err ?: count;
}

CONFIGFS_ATTR(lucdisk_, size_mib);
CONFIGFS_ATTR(lucdisk_, record_mib);
CONFIGFS_ATTR(lucdisk_, partitions);
CONFIGFS_ATTR(lucdisk_, power);
CONFIGFS_ATTR_RO(lucdisk_, activity);
CONFIGFS_ATTR(lucdisk_, fault_seed);
CONFIGFS_ATTR_RO(lucdisk_, fault_hits);
CONFIGFS_ATTR(lucdisk_, record);
CONFIGFS_ATTR_RO(lucdisk_, log_entries);
CONFIGFS_ATTR_RO(lucdisk_, log_lost);
CONFIGFS_ATTR(lucdisk_, cut);
CONFIGFS_BIN_ATTR_RO(lucdisk_, log, NULL, 0);
CONFIGFS_BIN_ATTR_RO(lucdisk_, log_flushes, NULL, 0);

/* Declared by hand: other files use the plain names of their functions. */
static struct configfs_attribute lucdisk_attr_fault = {
	.ca_name = "fault",
	.ca_mode = 0644,
	.ca_owner = THIS_MODULE,
	.show = lucdisk_fault_attr_show,
	.store = lucdisk_fault_attr_store,
};

static struct configfs_attribute lucdisk_attr_replica = {
	.ca_name = "replica",
	.ca_mode = 0644,
	.ca_owner = THIS_MODULE,
	.show = lucdisk_replica_attr_show,
	.store = lucdisk_replica_attr_store,
};

#define LUCDISK_KNOB_ATTR_REF(name, min, max, dflt, help) &lucdisk_attr_##name,

static struct configfs_attribute *lucdisk_attrs[] = {
	&lucdisk_attr_size_mib,
	LUCDISK_KNOBS(LUCDISK_KNOB_ATTR_REF)
	&lucdisk_attr_partitions,
	&lucdisk_attr_power,
	&lucdisk_attr_activity,
	&lucdisk_attr_fault,
	&lucdisk_attr_fault_seed,
	&lucdisk_attr_fault_hits,
	&lucdisk_attr_record,
	&lucdisk_attr_record_mib,
	&lucdisk_attr_log_entries,
	&lucdisk_attr_log_lost,
	&lucdisk_attr_replica,
	&lucdisk_attr_cut,
	NULL,
};

static struct configfs_bin_attribute *lucdisk_bin_attrs[] = {
	&lucdisk_attr_log,
	&lucdisk_attr_log_flushes,
	NULL,
};

/* The last reference is gone: directory removed, /dev/NAME-log closed. */
static void lucdisk_release(struct config_item *item)
{
	struct lucdisk *disk = lucdisk_of(item);

	lucdisk_replica_clear(disk);
	lucdisk_store_clear(&disk->store);
	lucdisk_log_put(disk->log);
	kfree(disk);
}

static struct configfs_item_operations lucdisk_item_ops = {
	.release = lucdisk_release,
};

const struct config_item_type lucdisk_item_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &lucdisk_item_ops,
	.ct_attrs = lucdisk_attrs,
	.ct_bin_attrs = lucdisk_bin_attrs,
};
