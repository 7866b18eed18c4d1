// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device that will not suspend. The kernel freezes all tasks and asks the
 * devices; this one takes its time, during which every task stays frozen, and
 * then refuses, so that the kernel thaws them again. A suspend up to there is
 * what concerns LUC, and no machine has to be woken.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/platform_device.h>

static unsigned int frozen_ms = 200;
module_param(frozen_ms, uint, 0644);
MODULE_PARM_DESC(frozen_ms, "how long the device takes to refuse");

static unsigned int asked;
module_param(asked, uint, 0444);
MODULE_PARM_DESC(asked, "how often it was asked to suspend");

static int pressure_suspend(struct device *dev)
{
	asked++;
	msleep(frozen_ms);
	return -EBUSY;
}

static const struct dev_pm_ops pressure_pm = { .suspend = pressure_suspend };

static struct platform_driver pressure_driver = {
	.driver = { .name = "pressure", .pm = &pressure_pm },
};

static struct platform_device *pressure_device;

static int __init pressure_init(void)
{
	int err = platform_driver_register(&pressure_driver);

	if (err)
		return err;
	pressure_device = platform_device_register_simple("pressure", -1, NULL, 0);
	err = PTR_ERR_OR_ZERO(pressure_device);
	if (err)
		platform_driver_unregister(&pressure_driver);
	return err;
}

static void __exit pressure_exit(void)
{
	platform_device_unregister(pressure_device);
	platform_driver_unregister(&pressure_driver);
}

module_init(pressure_init);
module_exit(pressure_exit);

MODULE_DESCRIPTION("Refuses to suspend, for a test");
MODULE_LICENSE("GPL");
