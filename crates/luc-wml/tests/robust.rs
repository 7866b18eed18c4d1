//! No text, however broken, makes the parser panic, hang or exhaust memory.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use luc_wml::{BUILTINS, SOURCE_BYTES_MAX, parse};
use proptest::prelude::*;

/// More than any text of these tests needs, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads and plans a text; messages must name positions that exist.
fn read(text: &str) {
    let started = Instant::now();
    let refused = match parse("fuzz.f", text) {
        Ok(script) => {
            let _ = script.notes();
            for (name, _) in script.variables() {
                assert!(!name.is_empty());
            }
            script.plan(&[]).err()
        }
        Err(refused) => Some(refused),
    };
    if let Some(refused) = refused {
        assert!(!refused.list().is_empty(), "refused without a reason");
        let lines = text.split('\n').count();
        for diagnostic in refused.list() {
            assert!(!diagnostic.message.contains('\n'), "{refused}");
            if let Some(at) = diagnostic.at {
                assert!(at.column >= 1 && at.line as usize <= lines, "{refused}");
            }
        }
        assert!(refused.to_string().starts_with("fuzz.f:"), "{refused}");
    }
    assert!(started.elapsed() < PATIENCE, "took {:?}", started.elapsed());
}

/// Words of the language, and some others.
static PIECES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let words = "set define fileset file process thread flowop randvar cvar run psrun create files \
        echo enable lathist eventgen rate quit mode sleep system name path entries size iosize fd \
        iters instances value target read write openfile closefile hog semblock sempost bwlimit \
        randtable type parameters tabular cvar-gamma mean:1;gamma:2 $a $b ${a} $ \" = , { } ( ) \
        0 10k 99999999999g -5";
    let others = ["\"x $a\"", "# c\n", "\n"];
    words.split_whitespace().chain(others).collect()
});

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_characters(text in "\\PC{0,400}") {
        read(&text);
    }

    #[test]
    fn any_bytes_that_are_text(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn soups_of_words(
        words in prop::collection::vec((0..PIECES.len(), any::<bool>()), 0..200)
    ) {
        let mut text = String::new();
        for (index, line_ends) in words {
            text += PIECES[index];
            text.push(if line_ends { '\n' } else { ' ' });
        }
        read(&text);
    }

    #[test]
    fn overrides_of_any_text(name in "\\PC{0,20}", value in "\\PC{0,80}") {
        let (_, text) = BUILTINS[0];
        let script = parse("varmail.f", text).expect("accepted");
        for name in [name, "nfiles".into(), "filesize".into(), "dir".into()] {
            if let Err(refused) = script.plan(&[(name, value.clone())]) {
                prop_assert!(!refused.list().is_empty());
            }
        }
    }

    #[test]
    fn numbers_mean_what_they_say(number in 0_u64..1 << 40, suffix in 0_usize..4) {
        let (letter, shift) = [("", 0), ("k", 10), ("m", 20), ("g", 30)][suffix];
        let text = format!(
            "define fileset name=s,path=/d,entries=1,size={number}{letter}\ncreate files"
        );
        let planned = parse("n.f", &text).and_then(|script| script.plan(&[]));
        match number.checked_mul(1 << shift).filter(|value| i64::try_from(*value).is_ok()) {
            Some(value) => {
                let plan = planned.expect("in bounds");
                prop_assert_eq!(plan.filesets[0].size, luc_wml::plan::Value::Fixed(value));
            }
            None => prop_assert!(planned.is_err()),
        }
    }
}

/// A generator that repeats for a seed and needs no crate.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }
}

/// Makes one small change somewhere.
fn mutate(text: &str, other: &str, random: &mut Lcg) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len() + 1);
    let end = (at + 1 + random.below(12)).min(characters.len());
    match random.below(6) {
        0 => {
            characters.drain(at.min(end)..end);
        }
        1 => {
            let copy: Vec<char> = characters[at.min(end)..end].to_vec();
            characters.splice(at..at, copy);
        }
        2 => {
            let piece = PIECES[random.below(PIECES.len())];
            characters.splice(at..at, piece.chars());
        }
        3 => {
            let piece = PIECES[random.below(PIECES.len())];
            characters.splice(at.min(end)..end, piece.chars());
        }
        4 => characters.truncate(at),
        _ => {
            // Insert a stretch of another file.
            let from = random.below(other.len());
            let stretch = other.chars().skip(from).take(40);
            characters.splice(at..at, stretch);
        }
    }
    characters.into_iter().collect()
}

/// The fuzzer: it makes several changes to the workloads that come with the program.
/// `LUC_FUZZ_ROUNDS` asks for more rounds.
#[test]
fn mutated_workloads() {
    let rounds = std::env::var("LUC_FUZZ_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(1500);
    let mut random = Lcg(20);
    let mut accepted = 0;
    for round in 0..rounds {
        let (_, text) = BUILTINS[round % BUILTINS.len()];
        let (_, other) = BUILTINS[random.below(BUILTINS.len())];
        let mut text = text.to_owned();
        for _ in 0..=random.below(6) {
            text = mutate(&text, other, &mut random);
        }
        read(&text);
        accepted += usize::from(parse("m.f", &text).is_ok());
    }
    // Both outcomes must occur, or the changes are too coarse or too fine to test anything.
    assert!(
        accepted > rounds / 50 && accepted < rounds * 49 / 50,
        "{accepted} of {rounds} accepted"
    );
}

#[test]
fn files_beyond_the_limit_are_refused_at_once() {
    let text = "#".repeat(SOURCE_BYTES_MAX + 1);
    let refused = parse("long.f", &text).expect_err("too long");
    assert!(refused.to_string().contains("1048576 bytes"), "{refused}");
    parse("long.f", &text[..SOURCE_BYTES_MAX]).expect("just fits");
}

/// Returns a file filled up to the limit.
fn filled(head: &str, piece: impl Fn(usize) -> String, tail: &str) -> String {
    let mut text = head.to_owned();
    for index in 0.. {
        let piece = piece(index);
        if text.len() + piece.len() + tail.len() > SOURCE_BYTES_MAX {
            break;
        }
        text += &piece;
    }
    text + tail
}

#[test]
fn large_files_of_one_kind_of_thing() {
    type Piece = fn(usize) -> String;
    let thread = "define process name=p{thread name=t{";
    let kinds: [(&str, Piece, &str); 13] = [
        ("", |_| "{".into(), ""),
        ("", |_| "\"".into(), ""),
        ("", |_| "$ ".into(), ""),
        ("", |_| "set ".into(), ""),
        ("", |_| "set\n".into(), ""),
        ("", |i| format!("set $v{i}=1\n"), ""),
        ("define fileset ", |_| "name=a,".into(), "name=a\n"),
        ("define flowop name=f", |i| format!(",$v{i}"), "{}"),
        (
            "set $x=randvar(type=tabular,randtable={{1,2,3}",
            |_| ",{1,2,3}".into(),
            "})",
        ),
        (
            thread,
            |i| format!("flowop opslimit name=l{i},target=zz\n"),
            "}}run 1",
        ),
        (
            thread,
            |i| format!("flowop opslimit name=l{i},target=l0\n"),
            "}}run 1",
        ),
        (
            "",
            |i| format!("define fileset name=f{i},path=/d,entries=1\n"),
            "create files",
        ),
        ("", |_| "echo \"a\"\n".into(), "create files"),
    ];
    for (head, piece, tail) in kinds {
        read(&filled(head, piece, tail));
    }
}

/// Texts that grow by doubling must be stopped.
#[test]
fn texts_cannot_double_beyond_memory() {
    let text = "set $a=xxxxxxxxxxxxxxxx\n".to_owned()
        + &"set $a=\"$a$a\"\n".repeat(60)
        + "echo \"$a$a$a\"\ncreate files";
    let refused = parse("double.f", &text)
        .expect("well written")
        .plan(&[])
        .expect_err("too long");
    assert!(refused.to_string().contains("4096 bytes"), "{refused}");
}

/// Composites that each use the previous one several times must be stopped, too.
#[test]
fn composites_cannot_double_beyond_memory() {
    let mut text = String::from("define flowop name=f0 { flowop delay name=d }\n");
    for level in 1..15 {
        let _ = writeln!(text, "define flowop name=f{level} {{");
        for copy in 0..8 {
            let _ = writeln!(text, "flowop f{} name=x{copy}", level - 1);
        }
        text += "}\n";
    }
    text += "define process name=p { thread name=t { flowop f14 name=a } }\nrun 1\n";
    let script = parse("double.f", &text).expect("well written");
    let refused = script.plan(&[]).expect_err("too many");
    assert!(refused.to_string().contains("16384 flowops"), "{refused}");

    let mut text = String::from("define flowop name=f0 { flowop delay name=d }\n");
    for level in 1..40 {
        let below = level - 1;
        let _ = writeln!(
            text,
            "define flowop name=f{level} {{ flowop f{below} name=x }}"
        );
    }
    text += "define process name=p { thread name=t { flowop f39 name=a } }\nrun 1\n";
    let script = parse("deep.f", &text).expect("well written");
    let refused = script.plan(&[]).expect_err("too deep");
    assert!(refused.to_string().contains("16 deep"), "{refused}");
}
