// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/fs/luc: knobs and counters, generated from the tables in abi/.
 *
 *   version, hooks		read
 *   attach			write "MAJ:MIN [knob=value]..."
 *   detach			write "MAJ:MIN"
 *   <device>/device		MAJ:MIN
 *   <device>/knobs/ 		read and write
 *   <device>/counters/ 	read
 *
 * A write also needs CAP_SYS_ADMIN: root in a container may own these files, and
 * another task may have opened a file.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "../control/luc_control.h"
#include "luc.h"

struct kobject *luc_kobj;

/* Values of ENUM knobs by name. */
#define LUC_CONTROLLER_TEXT(NAME, name, knobs, help) #name,
#define LUC_MODE_TEXT(name, text, help) text,
static const char *const luc_texts_batching[] = { LUC_BATCHINGS(LUC_CONTROLLER_TEXT) };
static const char *const luc_texts_copyout[] = { LUC_COPYOUTS(LUC_CONTROLLER_TEXT) };
static const char *const luc_texts_mode[] = { LUC_MODES(LUC_MODE_TEXT) };

enum luc_knob_kind { LUC_KIND_ENUM, LUC_KIND_BOOL, LUC_KIND_INT, LUC_KIND_CGROUP };

struct luc_knob {
	const char *name;
	enum luc_knob_kind kind;
	s64 min, max;
	const char *const *texts;	/* for an ENUM, one for each value */
};

#define LUC_TEXTS_ENUM(name) luc_texts_##name
#define LUC_TEXTS_BOOL(name) NULL
#define LUC_TEXTS_INT(name) NULL
#define LUC_TEXTS_CGROUP(name) NULL
#define LUC_KNOB_ROW(name, kind, min, max, dflt, help) \
	{ #name, LUC_KIND_##kind, min, max, LUC_TEXTS_##kind(name) },
static const struct luc_knob luc_knob[] = { LUC_KNOBS(LUC_KNOB_ROW) };

static int luc_knob_value(int index, const char *text, s64 *value)
{
	const struct luc_knob *k = &luc_knob[index];
	bool flag;
	int err;

	switch (k->kind) {
	case LUC_KIND_ENUM:
		err = __sysfs_match_string(k->texts, k->max + 1, text);
		if (err < 0)
			return -EINVAL;
		*value = err;
		return 0;
	case LUC_KIND_BOOL:
		err = kstrtobool(text, &flag);
		*value = flag;
		return err;
	default:
		err = kstrtoll(text, 10, value);
		if (!err && (*value < k->min || *value > k->max))
			err = -ERANGE;
		return err;
	}
}

static s64 *luc_knob_slot(struct luc_params *params, int index)
{
	/* abi/luc_knobs.h asserts that the struct is an array. */
	return (s64 *)params + index;
}

static int luc_knob_parse(struct luc_params *params, const char *name, const char *value)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(luc_knob); i++) {
		if (!strcmp(luc_knob[i].name, name))
			return luc_knob_value(i, value, luc_knob_slot(params, i));
	}
	return -EINVAL;
}

static struct luc_fs *luc_fs_of(struct kobject *kobj)
{
	return container_of(kobj, struct luc_fs, kobj);
}

/* One kobj_attribute per row; its position in the array is the row's index. */
static struct kobj_attribute luc_knob_attr[];
static struct kobj_attribute luc_counter_attr[];

static void luc_knob_tell(struct luc_fs *fs, int index, s64 value)
{
	char number[24];	/* 20 characters at most */

	if (luc_knob[index].kind == LUC_KIND_ENUM) {
		luc_tell_knob(fs, luc_knob[index].name, luc_knob[index].texts[value]);
		return;
	}
	snprintf(number, sizeof(number), "%lld", value);
	luc_tell_knob(fs, luc_knob[index].name, number);
}

static ssize_t luc_knob_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	struct luc_fs *fs = luc_fs_of(kobj);
	int index = attr - luc_knob_attr;
	s64 value;

	spin_lock(&fs->lock);
	value = *luc_knob_slot(&fs->params, index);
	spin_unlock(&fs->lock);
	if (luc_knob[index].kind == LUC_KIND_ENUM)
		return sysfs_emit(buf, "%s\n", luc_knob[index].texts[value]);
	return sysfs_emit(buf, "%lld\n", value);
}

static ssize_t luc_knob_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	struct luc_fs *fs = luc_fs_of(kobj);
	int index = attr - luc_knob_attr;
	s64 value;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = luc_knob_value(index, buf, &value);
	if (err)
		return err;
	spin_lock(&fs->lock);
	*luc_knob_slot(&fs->params, index) = value;
	WRITE_ONCE(fs->params_new, true);
	spin_unlock(&fs->lock);
	luc_knob_tell(fs, index, value);
	return count;
}

/* Gauges have no counter, nor has a count that is kept under a lock taken anyway. */
static s64 luc_counter_value(struct luc_fs *fs, int index)
{
	switch (index) {
	case LUC_COUNTER_sync_events:
		return READ_ONCE(fs->sync_events);
	case LUC_COUNTER_setpoint_events:
		return READ_ONCE(fs->state.setpoint_now_events);
	case LUC_COUNTER_batch_events:
		return READ_ONCE(fs->closed_events);
	case LUC_COUNTER_hold_ns:
		return max_t(s64, READ_ONCE(fs->state.hold_ns), 0);
	case LUC_COUNTER_commit_avg_ns:
		return READ_ONCE(fs->in.commit_avg_ns);
	case LUC_COUNTER_gap_avg_ns:
		return READ_ONCE(fs->state.gap_ns);
	case LUC_COUNTER_copyout_active:
		return READ_ONCE(fs->copy_now) != LUC_COPY_NONE;
	default:
		return atomic64_read(&fs->counters[index]);
	}
}

static ssize_t luc_counter_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	int index = attr - luc_counter_attr;

	return sysfs_emit(buf, "%lld\n", luc_counter_value(luc_fs_of(kobj), index));
}

#define LUC_KNOB_ATTR(name, kind, min, max, dflt, help) \
	__ATTR(name, 0644, luc_knob_show, luc_knob_store),
#define LUC_COUNTER_ATTR(name, kind, help) \
	__ATTR(name, 0444, luc_counter_show, NULL),
#define LUC_KNOB_ATTR_PTR(name, kind, min, max, dflt, help) \
	&luc_knob_attr[LUC_KNOB_##name].attr,
#define LUC_COUNTER_ATTR_PTR(name, kind, help) \
	&luc_counter_attr[LUC_COUNTER_##name].attr,

static struct kobj_attribute luc_knob_attr[] = { LUC_KNOBS(LUC_KNOB_ATTR) };
static struct kobj_attribute luc_counter_attr[] = {
	LUC_COUNTERS(LUC_COUNTER_ATTR)
};

static struct attribute *luc_knob_attrs[] = {
	LUC_KNOBS(LUC_KNOB_ATTR_PTR) NULL
};

static struct attribute *luc_counter_attrs[] = {
	LUC_COUNTERS(LUC_COUNTER_ATTR_PTR) NULL
};

static const struct attribute_group luc_knob_group = {
	.name = "knobs",
	.attrs = luc_knob_attrs,
};

static const struct attribute_group luc_counter_group = {
	.name = "counters",
	.attrs = luc_counter_attrs,
};

static ssize_t device_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	dev_t dev = luc_fs_of(kobj)->dev;

	return sysfs_emit(buf, "%u:%u\n", MAJOR(dev), MINOR(dev));
}

static struct kobj_attribute luc_device_attr = __ATTR_RO(device);

static struct attribute *luc_device_attrs[] = {
	&luc_device_attr.attr,
	NULL,
};

static const struct attribute_group luc_device_group = {
	.attrs = luc_device_attrs,
};

const struct attribute_group *luc_fs_groups[] = {
	&luc_device_group,
	&luc_knob_group,
	&luc_counter_group,
	NULL,
};

static int luc_parse_device(const char *text, dev_t *dev)
{
	unsigned int major, minor;
	char rest;

	if (sscanf(text, "%u:%u%c", &major, &minor, &rest) != 2 ||
	    major >= 1u << (32 - MINORBITS) || minor > MINORMASK)
		return -EINVAL;
	*dev = MKDEV(major, minor);
	return 0;
}

static int luc_parse_attach(char *text, dev_t *dev, struct luc_params *params)
{
	char *word = strsep(&text, " ");
	int err = luc_parse_device(word, dev);

	while (!err && (word = strsep(&text, " "))) {
		char *value = word;
		char *name = strsep(&value, "=");

		if (!*name)
			continue;	/* two blanks in a row */
		err = value ? luc_knob_parse(params, name, value) : -EINVAL;
	}
	return err;
}

static ssize_t attach_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	struct luc_params params;
	char *text, *copy;
	dev_t dev;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	copy = kstrndup(buf, count, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	text = strim(copy);
	luc_params_init(&params);
	err = luc_parse_attach(text, &dev, &params);
	if (!err)
		err = luc_fs_attach(dev, &params);
	kfree(copy);
	return err ?: count;
}

static ssize_t detach_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	char text[32];	/* MAJ:MIN is 12 characters at most */
	dev_t dev;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (strscpy(text, buf, sizeof(text)) < 0)
		return -EINVAL;
	err = luc_parse_device(strim(text), &dev);
	if (!err)
		err = luc_fs_detach(dev);
	return err ?: count;
}

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%s\n", LUC_VERSION);
}

static ssize_t hooks_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	return luc_hooks_show(buf);
}

static struct kobj_attribute luc_version_attr = __ATTR_RO(version);
static struct kobj_attribute luc_hooks_attr = __ATTR_RO(hooks);
static struct kobj_attribute luc_attach_attr = __ATTR(attach, 0200, NULL, attach_store);
static struct kobj_attribute luc_detach_attr = __ATTR(detach, 0200, NULL, detach_store);

static struct attribute *luc_root_attrs[] = {
	&luc_version_attr.attr,
	&luc_hooks_attr.attr,
	&luc_attach_attr.attr,
	&luc_detach_attr.attr,
	NULL,
};

static const struct attribute_group luc_root_group = {
	.attrs = luc_root_attrs,
};

int luc_sysfs_init(void)
{
	int err;

	luc_kobj = kobject_create_and_add("luc", fs_kobj);
	if (!luc_kobj)
		return -ENOMEM;
	err = sysfs_create_group(luc_kobj, &luc_root_group);
	if (err)
		kobject_put(luc_kobj);
	return err;
}

/* Waits for an attach in progress; none can begin afterwards. */
void luc_sysfs_stop(void)
{
	sysfs_remove_group(luc_kobj, &luc_root_group);
}

void luc_sysfs_exit(void)
{
	kobject_put(luc_kobj);
}
