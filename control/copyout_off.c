// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Stock: commits write the buffers themselves. */
#include "luc_controllers.h"

enum luc_copies luc_copyout_off_step(const struct luc_params *params, struct luc_state *state,
				     const struct luc_input *in)
{
	return LUC_COPY_NONE;
}
