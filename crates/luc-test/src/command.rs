//! Programs as a shell sees them, and files for them to read.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use luc_trace::{Header, Span, Writer};

/// Returns the output of a command as a terminal would show it, and the exit code.
pub fn run(command: &mut Command) -> String {
    let (code, out, err) = outputs(command);
    format!("{out}{err}[exit {code}]\n")
}

/// Returns the exit code of a command, standard output and standard error.
pub fn outputs(command: &mut Command) -> (i32, String, String) {
    let output = command.output().expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("no signal");
    (code, text(output.stdout), text(output.stderr))
}

/// Makes a script that can be run.
///
/// A child writes it. Were it open here, programs that other tests start at that moment would
/// inherit the descriptor, and the kernel runs no file that anybody has open for writing.
pub fn script(path: &Path, text: &str) {
    let mut writer = Command::new("sh");
    writer.args(["-c", r#"cat > "$1" && chmod 755 "$1""#, "sh"]);
    writer.arg(path).write_stdin(text).assert().success();
}

/// Fails unless the text holds this part.
#[track_caller]
pub fn assert_holds(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in:\n{text}");
}

/// Fails unless the text begins like this.
#[track_caller]
pub fn assert_begins(text: &str, begin: &str) {
    assert!(text.starts_with(begin), "{begin:?} does not begin:\n{text}");
}

/// Fails unless the text ends like this.
#[track_caller]
pub fn assert_ends(text: &str, end: &str) {
    assert!(text.ends_with(end), "{end:?} does not end:\n{text}");
}

/// Formats JSON with one line per object or list that holds no other object.
pub fn dense(json: &str) -> String {
    use serde_json::Value;
    fn put(value: &Value, deep: usize, to: &mut String) {
        let holds = |one: &Value| one.to_string().contains('{');
        let (begin, rows, end): (_, Vec<(String, &Value)>, _) = match value {
            Value::Object(map) if map.values().any(holds) => {
                let rows = map.iter().map(|(key, value)| (format!("{key}: "), value));
                ("{", rows.collect(), "}")
            }
            Value::Array(all) if all.iter().any(holds) => {
                let rows = all.iter().map(|value| (String::new(), value));
                ("[", rows.collect(), "]")
            }
            _ => return *to += &value.to_string(),
        };
        *to += begin;
        for (key, value) in rows {
            to.extend(["\n", &"  ".repeat(deep + 1), &key]);
            put(value, deep + 1, to);
        }
        to.extend(["\n", &"  ".repeat(deep), end]);
    }
    let value = serde_json::from_str(json).expect("JSON");
    let mut shown = String::new();
    put(&value, 0, &mut shown);
    shown
}

/// A program of the workspace; what it says does not depend on where the tests run.
pub fn program(name: &str) -> Command {
    let mut command = Command::cargo_bin(name).expect("the program is built");
    command.env("COLUMNS", "100").env_remove("LUC_SYSROOT");
    command
}

/// Writes a recording of `spans`.
pub fn record(file: &Path, header: &Header, spans: impl IntoIterator<Item = Span>) {
    let file = fs::File::create(file).expect("temporary file");
    let mut writer = Writer::new(file, header).expect("temporary file");
    for span in spans {
        writer.span(&span).expect("temporary file");
    }
    writer.finish().expect("temporary file");
}
