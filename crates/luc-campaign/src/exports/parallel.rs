//! A script that runs the cells through GNU parallel.

use super::{Export, lines};
use crate::error::Result;

/// moreutils' program of the same name would ignore the cells and succeed.
const HEAD: &str = r#"# Needs GNU parallel, which gets the arguments of this script.
case "$(parallel --version 2>/dev/null </dev/null)" in
"GNU parallel "*) ;;
*)
	echo "$0: no GNU parallel in PATH; install it, or export --format lines for xargs" >&2
	exit 1
	;;
esac
exec parallel "$@" <<'CELLS'
"#;

/// # Errors
/// A path or a key cannot be passed to a shell.
pub fn text(export: &Export<'_>) -> Result<String> {
    let lines = lines::text(export)?;
    if lines.is_empty() {
        return Ok(lines);
    }
    let title = export.title();
    Ok(format!(
        "#!/bin/sh\n# The next wave of the campaign: {title}\n{HEAD}{lines}CELLS\n"
    ))
}
