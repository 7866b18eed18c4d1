//! Parts of help texts and man pages other than the arguments: examples, and the tables of
//! policies, knobs and counters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use luc_control::{Enumerator, Knob, KnobKind, counters, knobs, policies};

/// First line of a verb's examples; its declaration has them as `after_help`.
pub const EXAMPLES: &str = "Examples:";

/// The examples of a verb, one command line each.
pub fn examples(command: &clap::Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string);
    let text = text.unwrap_or_default();
    let lines = text.lines().skip_while(|line| *line != EXAMPLES).skip(1);
    lines.map(|line| line.trim().to_owned()).collect()
}

/// Gives a verb with subcommands the first example of each. Adds the examples to the long help,
/// too, before the tables that some verbs end with.
pub fn with_examples(command: clap::Command) -> clap::Command {
    let mut command = command.mut_subcommands(with_examples);
    if command.has_subcommands() {
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let firsts = verbs.filter_map(|verb| examples(verb).into_iter().next());
        let lines: Vec<String> = std::iter::once(EXAMPLES.to_owned()).chain(firsts).collect();
        command = command.after_help(lines.join("\n  "));
    }
    let (Some(short), Some(long)) = (command.get_after_help(), command.get_after_long_help())
    else {
        return command;
    };
    let both = format!("{short}\n\n{long}");
    command.after_long_help(both)
}

/// Lists the verbs in groups, which clap cannot do.
///
/// # Panics
/// A verb that is shown is in no group, or a group names a verb that is not there.
pub fn grouped(command: clap::Command, groups: &[(&str, &[&str])]) -> clap::Command {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let abouts: BTreeMap<&str, String> = shown
        .map(|verb| {
            let about = verb.get_about().map(ToString::to_string);
            (verb.get_name(), about.unwrap_or_default())
        })
        .collect();
    let named: usize = groups.iter().map(|(_, verbs)| verbs.len()).sum();
    assert_eq!(abouts.len(), named, "each verb is in one group");
    let width = abouts.keys().map(|name| name.len()).max().unwrap_or(0);
    let mut lists = String::new();
    for (heading, verbs) in groups {
        // Writing to a String cannot fail.
        let _ = writeln!(lists, "{heading}:");
        for verb in *verbs {
            let _ = writeln!(lists, "  {verb:width$}  {}", abouts[verb]);
        }
        lists.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{lists}Options:\n{{options}}{{after-help}}"
    ))
}

/// The values that a knob takes: `stock|static|pid`, or `0 to 1000`.
pub fn range(knob: &Knob) -> String {
    match knob.kind {
        KnobKind::Enum(_) => knob.words().join("|"),
        KnobKind::Bool | KnobKind::Int => format!("{} to {}", knob.min, knob.max),
        KnobKind::Cgroup => "a path or an id".into(),
    }
}

/// The meaning of `policy`, for each list of knobs.
pub const POLICY_HELP: &str = "one name for batching and copyout; custom if the pair has none";

/// The knobs that choose a controller, with their words.
pub fn controllers() -> impl Iterator<Item = (&'static Knob, &'static [Enumerator])> {
    knobs().iter().filter_map(|knob| match knob.kind {
        KnobKind::Enum(words) if words.iter().any(|word| !word.knobs.is_empty()) => {
            Some((knob, words))
        }
        _ => None,
    })
}

/// A controller's help, with the knobs that it reads in addition to the shared ones.
pub fn word_help(word: &Enumerator) -> String {
    let knobs: Vec<_> = word.knobs.split_whitespace().collect();
    if knobs.is_empty() {
        return word.help.to_owned();
    }
    format!("{} (knobs: {})", word.help, knobs.join(", "))
}

/// The policies and knobs as text, for `--help`.
pub fn knob_table() -> String {
    let named = policies()
        .iter()
        .map(|policy| (policy.text, policy.help.to_owned()));
    let rows = knobs().iter().map(|knob| {
        let range = range(knob);
        let default = knob.format(knob.default);
        (
            knob.name,
            format!("{} ({range}; default {default})", knob.help),
        )
    });
    let mut lists = vec![list("Policies:", named), list("Knobs:", rows)];
    for (knob, words) in controllers() {
        let words = words.iter().map(|word| (word.text, word_help(word)));
        lists.push(list(&format!("Values of {}:", knob.name), words));
    }
    lists.join("\n\n")
}

/// The counters as text, for `--help`.
pub fn counter_table() -> String {
    let rows = counters()
        .iter()
        .map(|counter| (counter.name, counter.help.to_owned()));
    list("Counters:", rows)
}

fn list(title: &str, rows: impl Iterator<Item = (&'static str, String)>) -> String {
    let head = std::iter::once(title.to_owned());
    let rows = rows.map(|(name, help)| format!("  {name}\n          {help}"));
    head.chain(rows).collect::<Vec<_>>().join("\n")
}

/// Checks that every verb of a command line has examples that parse, and shows them.
///
/// # Panics
/// If one has none, or one that does not parse.
pub fn check_examples(command: &clap::Command) {
    let mut all = Vec::new();
    verbs(command, command.get_name(), &mut all);
    for (path, verb) in all {
        let examples = examples(verb);
        assert!(!examples.is_empty(), "{path} has no example");
        for line in examples {
            assert!(line.starts_with(&path), "{path}: {line}");
            let parsed = command.clone().try_get_matches_from(words(&line));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
        let mut verb = verb.clone();
        let (short, long) = (verb.render_help(), verb.render_long_help());
        for help in [short.to_string(), long.to_string()] {
            assert!(help.contains(EXAMPLES), "{path}: {help}");
        }
    }
}

/// Collects every verb that is not hidden, with the words that call it.
fn verbs<'a>(command: &'a clap::Command, path: &str, found: &mut Vec<(String, &'a clap::Command)>) {
    found.push((path.to_owned(), command));
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        verbs(verb, &format!("{path} {}", verb.get_name()), found);
    }
}

/// Splits a line into words as a shell does, up to a redirection; without nested quotes.
fn words(line: &str) -> Vec<String> {
    let line = line.split(" > ").next().unwrap_or(line);
    let quoted = line.split('\'').enumerate();
    let words = quoted.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}
