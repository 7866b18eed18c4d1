#!/usr/bin/env bash
# Checks the bets of control/luc_bets.c against confseq, the implementation by the authors of the
# method (Waudby-Smith and Ramdas, arXiv 2010.09686).
#
#   scripts/confseq.sh
#
# CONFSEQ        a folder with confseq's Python sources, in the subfolder confseq/; without it pip
#                installs the package, which needs cmake and the headers of Boost
# CONFSEQ_VENV   the virtual environment that is made for it, outside this tree
#
# The product of the bets must equal theirs up to rounding: never larger, and smaller by at most
# 6 ppm a pair. The stakes differ a little: we take the deviation of a pair from the mean of the
# pairs before it, they from the mean that includes it. After n pairs that makes our variance larger
# by a share of 2 ln(n) / n, and our stakes smaller, by at most a tenth after a hundred pairs.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly venv=${CONFSEQ_VENV:-${TMPDIR:-/tmp}/luc-confseq}

say() { printf 'confseq: %s\n' "$*"; }
die() { printf 'confseq: %s\n' "$*" >&2; exit 1; }

[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || die "cannot make $venv; install python3-venv"
if [ -n "${CONFSEQ:-}" ]; then
	[ -d "$CONFSEQ/confseq" ] || die "$CONFSEQ: no confseq/ in it"
	"$venv/bin/pip" install -q 'numpy<2' scipy matplotlib multiprocess
	export PYTHONPATH=$CONFSEQ
else
	"$venv/bin/pip" install -q confseq 'numpy<2' multiprocess ||
		die "cannot install confseq; it needs cmake and Boost, or name its sources with CONFSEQ=DIR"
fi
cargo build -q --locked -p luc-guard --example capital
capital=$(cargo build -q --locked -p luc-guard --example capital --message-format=json |
	sed -n 's/.*"executable":"\([^"]*capital\)".*/\1/p' | tail -n 1)
[ -x "$capital" ] || die "cargo named no example"
say "checking $capital"
"$venv/bin/python" - "$capital" <<'PYTHON'
import subprocess
import sys

import numpy as np
from confseq.betting import betting_mart
from confseq.betting_strategies import lambda_aKelly

LIMIT_PPM, FIRST_SPREAD, SHARE = -10050, 0.05, 0.75


def bets(x_ppm):
    text = "".join(f"{value}\n" for value in x_ppm.tolist())
    done = subprocess.run([sys.argv[1]], input=text, text=True, capture_output=True, check=True)
    return np.array([[float(word) for word in line.split()] for line in done.stdout.splitlines()]).T / 1e6


def lost_ppm(ln_ours, theirs):
    lost = (np.log(theirs) - ln_ours) * 1e6
    return float(lost.min()), float((lost / np.arange(1, len(lost) + 1)).max())


random = np.random.default_rng(17)
failed = False
for effect in (1.05, 1.0, 0.99, 0.97, 0.9):
    for spread in (0.02, 0.05, 0.2):
        x_ppm = np.rint(1e6 * (np.log(effect) + spread * random.standard_t(3, 400))).astype(int)
        bound, stake, certificate, harm = bets(x_ppm)
        stake_for, stake_against = np.maximum(stake, 0), np.maximum(-stake, 0)
        # To the unit interval, with the limit at a half, as they have it.
        y = np.clip((x_ppm - LIMIT_PPM) / 1e6, -bound, bound)
        z = (y / bound + 1) / 2
        mart = lambda stakes, theta: betting_mart(
            z, 0.5, lambdas_fn_positive=lambda *_: 2 * bound * stakes,
            lambdas_fn_negative=lambda *_: 2 * bound * stakes, theta=theta, trunc_scale=SHARE)
        least, most = zip(lost_ppm(certificate, mart(stake_for, 1)),
                          lost_ppm(harm, mart(stake_against, 0)))
        # Theirs of the same cut pairs, in units so small that their own bound does not bind.
        unit = 0.02
        theirs = lambda_aKelly((y / unit + 1) / 2, 0.5,
                               prior_variance=(FIRST_SPREAD / (2 * unit)) ** 2) / (2 * unit)
        theirs = np.clip(theirs, -SHARE / bound, SHARE / bound)
        stakes = float(np.max((np.abs(stake - theirs) * bound)[100:]))
        good = min(least) > -0.01 and max(most) < 6 and stakes < 0.1
        failed |= not good
        print(f"ratio {effect:.2f}, spread {spread:.2f}: a pair loses {max(most):.1f} ppm, "
              f"stakes differ by {stakes:.3f} of at most {SHARE}{'' if good else '  WRONG'}")
sys.exit(failed)
PYTHON
say "the bets are theirs"
