//! Recognizes the commands of `system` that need no shell: syncing, and dropping the page cache.

use crate::plan::{Action, Position};

/// Characters of the shell that make a word more than its text.
const SPECIAL: &[char] = &['|', '&', '<', '>', '`', '$', '(', ')', '"', '\'', '*', '?'];

/// Returns the steps of a command, or the command itself if any of its parts needs the shell.
pub(super) fn actions(command: &str, at: Position) -> Vec<Action> {
    known(command).unwrap_or_else(|| {
        vec![Action::Command {
            command: command.into(),
            at,
        }]
    })
}

fn known(command: &str) -> Option<Vec<Action>> {
    let command = without_sudo(command.trim().trim_end_matches(';').trim_end());
    if let Some(inner) = given_to_a_shell(command) {
        return known(inner);
    }
    let parts = command.split([';', '\n']).flat_map(|it| it.split("&&"));
    let mut parts = parts.map(str::trim).filter(|part| !part.is_empty());
    let (first, second) = (parts.next()?, parts.next());
    let Some(second) = second else {
        return one(first).map(|action| vec![action]);
    };
    let mut all = known(first)?;
    for part in [second].into_iter().chain(parts) {
        all.extend(known(part)?);
    }
    Some(all)
}

fn without_sudo(command: &str) -> &str {
    let rest = command
        .split_once(char::is_whitespace)
        .filter(|(word, _)| program(word) == "sudo");
    rest.map_or(command, |(_, rest)| rest.trim_start())
}

/// Returns the command line that `sh -c` gets, if it is one quoted word.
fn given_to_a_shell(command: &str) -> Option<&str> {
    let (shell, rest) = command.split_once(char::is_whitespace)?;
    let line = rest.trim_start().strip_prefix("-c")?.trim();
    let quote = line.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = line.strip_prefix(quote)?.strip_suffix(quote)?;
    (matches!(program(shell), "sh" | "bash") && !inner.contains(quote)).then_some(inner)
}

/// Returns the step of a command without separators.
fn one(command: &str) -> Option<Action> {
    if let Some((echoes, writes)) = command.split_once('|') {
        let (echo, level) = echoes.trim().split_once(char::is_whitespace)?;
        let words: Vec<&str> = without_sudo(writes.trim()).split_whitespace().collect();
        let (tee, rest) = words.split_first()?;
        let is_known = program(echo) == "echo" && program(tee) == "tee";
        let target = rest.concat().replace(">/dev/null", "");
        return (is_known && target == DROP_CACHES).then(|| drop_caches(level))?;
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    match (program(first), rest) {
        // Whatever it names, the file system of the run is the one that matters here.
        ("sync", rest) if !rest.iter().any(|word| word.contains(SPECIAL)) => Some(Action::Sync),
        ("echo", [level, rest @ ..]) => {
            let rest = rest.concat();
            let target = rest.strip_prefix('>')?;
            (target == DROP_CACHES).then(|| drop_caches(level))?
        }
        ("sysctl", [flags @ .., setting]) if flags.iter().all(|it| it.starts_with('-')) => {
            drop_caches(setting.strip_prefix("vm.drop_caches=")?)
        }
        _ => None,
    }
}

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

fn drop_caches(level: &str) -> Option<Action> {
    let level = level.trim_matches(['"', '\'', ' ']).parse().ok();
    let level = level.filter(|level| (1..=3).contains(level))?;
    Some(Action::DropCaches(level))
}

/// Returns a program's name without the path to it.
fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
