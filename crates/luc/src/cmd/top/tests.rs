//! The view without a terminal: states step by step, screens of all sizes.

use std::time::Duration;

use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw::draw;
use super::state::{Action, Event, Key, Sort, State, View};
use super::{terminal, text};
use crate::cmd::means::ByMeans;
use luc_model::blame::{Asker, Blame, Commits, WaitedFor, WaitedTime, Waiter};
use luc_watch::blame::BlameSample;
use luc_watch::sample::toys::sample_of;
use luc_watch::sample::{ProcessSample, Snapshot, WaitingSyncs};

const SIZES: [(u16, u16); 5] = [(80, 24), (120, 40), (200, 50), (40, 10), (20, 5)];

fn screen(state: &State, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal.draw(|frame| draw(frame, state)).expect("drawn");
    terminal
}

fn after(events: impl IntoIterator<Item = Event>) -> State {
    let begin = State::new(Duration::from_secs(1));
    let step = |state: State, event| state.step(event, Duration::ZERO).0;
    events.into_iter().fold(begin, step)
}

/// The column of the slowest sync: one that goes on, if it has lasted longer than all that ended.
#[test]
fn a_sync_that_goes_on_is_shown_once_it_is_the_slowest() {
    let slowest = |longest_ns: Option<u64>| {
        let mut snapshot = sample_of();
        let journal = &mut snapshot.journals[0];
        journal.waiting = longest_ns.map(|longest_ns| WaitingSyncs {
            syncs: 1,
            longest_ns,
        });
        let [_, _, _, _, _, slowest, ..] = text::journal_cells(journal);
        slowest
    };
    let ended = slowest(None);
    assert!(!ended.starts_with('>'), "{ended}");
    assert_eq!(slowest(Some(3_000_000)), ended);
    assert_eq!(slowest(Some(12_000_000_000)), ">12.0 s");
}

fn sample() -> Event {
    Event::Sample(sample_of())
}

/// Many journals with long names, many processes.
fn crowd() -> Snapshot {
    let mut snapshot = sample_of();
    let journal = snapshot.journals[0].clone();
    snapshot.journals = (0..40)
        .map(|minor| {
            let mut journal = journal.clone();
            journal.device.minor = minor;
            journal.mount_points = vec![
                format!(
                    "/srv/Ünterlagen/{}/volume-{minor}",
                    "deep/".repeat(minor as usize)
                )
                .into(),
            ];
            journal
        })
        .collect();
    snapshot.processes = (0..1000)
        .map(|pid| ProcessSample {
            pid,
            name: format!("a process with a long name {pid}"),
            syncs_per_s: 1e9 / f64::from(pid + 1),
            lost_ns_per_s: Some(f64::from(pid) * 1e6),
            ..ProcessSample::default()
        })
        .collect();
    snapshot.lacks = vec!["a long line about something that could not be had, ".repeat(5); 9];
    snapshot
}

/// Ten seconds of the first journal, in which etcd waits for others, mostly for dpkg.
fn blame() -> BlameSample {
    let by = |asker, name: Option<&str>, commits_ns| WaitedFor {
        asker,
        name: name.map(str::to_owned),
        time: WaitedTime {
            commits_ns,
            ..WaitedTime::default()
        },
        ..WaitedFor::default()
    };
    let waiter = |name: &str, group: Option<&str>, commits_asked, waited_for| Waiter {
        name: name.into(),
        cgroup: group.map(str::to_owned),
        syncs: 400,
        commits_asked,
        sync_ns: 9e9,
        waited_for,
        ..Waiter::default()
    };
    let of = |waiters| Blame {
        waiters,
        commits: Commits {
            all: 200,
            unasked: 7,
            unknown: 3,
        },
    };
    let others = |dpkg: &str| {
        vec![
            by(Asker::Known, Some(dpkg), 4e9),
            by(Asker::Nobody, None, 2e8),
            by(Asker::Unknown, None, 1e8),
        ]
    };
    BlameSample {
        device: sample_of().journals[0].device,
        covered: Duration::from_secs(10),
        lost: 0,
        processes: of(vec![
            waiter("etcd", Some("/kube/etcd"), 40, others("dpkg")),
            waiter("dpkg", Some("/system.slice/unpack"), 149, Vec::new()),
            waiter("mail", None, 1, vec![by(Asker::Unknown, None, 1e6)]),
        ]),
        control_groups: of(vec![
            waiter("/kube/etcd", None, 40, others("/system.slice/unpack")),
            waiter("/system.slice/unpack", None, 149, Vec::new()),
            waiter("an unknown control group", None, 1, Vec::new()),
        ]),
    }
}

fn blaming(times: usize) -> impl Iterator<Item = Event> {
    let keys = std::iter::repeat_n(Event::Key(Key::Blame), times);
    std::iter::once(sample())
        .chain(keys)
        .chain([Event::Blamed(blame())])
}

fn type_in(text: &str) -> impl Iterator<Item = Event> {
    text.chars().map(|letter| Event::Key(Key::Type(letter)))
}

fn states() -> Vec<(&'static str, State)> {
    let mut empty = sample_of();
    empty.journals.clear();
    empty.processes.clear();
    let many = || (0..600).map(|_| sample());
    let press = |key| [sample(), Event::Key(key)];
    let failed =
        Event::Failed("cannot set policy of /srv/data: not permitted; run it as root".into());
    vec![
        ("nothing yet", after([])),
        ("no journals", after([Event::Sample(empty)])),
        ("work", after(many())),
        (
            "crowd",
            after([Event::Sample(crowd()), Event::Key(Key::Down)]),
        ),
        ("paused", after(press(Key::Pause))),
        ("help", after(press(Key::Help))),
        (
            "filter",
            after(
                [sample(), Event::Key(Key::Filter)]
                    .into_iter()
                    .chain(type_in("post")),
            ),
        ),
        ("failed", after([sample(), failed])),
        ("to blame", after([sample(), Event::Key(Key::Blame)])),
        ("blame", after(blaming(1))),
        ("blame of groups", after(blaming(2))),
    ]
}

#[test]
fn every_state_fits_every_screen() {
    for (name, state) in states() {
        for size in SIZES
            .into_iter()
            .chain([(1, 1), (3, 2), (80, 1), (1, 24), (300, 100)])
        {
            let shown = screen(&state, size).backend().to_string();
            assert_eq!(
                shown.lines().count(),
                usize::from(size.1),
                "{name} {size:?}"
            );
        }
    }
}

/// Shows equal rows once, with their number.
#[test]
fn screens_look_as_they_should() {
    let mut shown = Vec::new();
    for size in [(80, 24), (40, 10)] {
        for (name, state) in states() {
            shown.push(format!("{name}, {size:?}"));
            let rows = lines(&state, size);
            for alike in rows.chunk_by(|one, other| one == other) {
                shown.push(format!("{:>2} {}", alike.len(), alike[0].trim_end()));
            }
        }
    }
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn plain_text_says_the_same() {
    let mut out = Vec::new();
    text::print(&sample_of(), &mut out).expect("written");
    assert_snapshot!("plain", String::from_utf8(out).expect("text"));
}

#[test]
fn the_chosen_journal_stays_chosen_when_others_go() {
    let mut state = after([Event::Sample(crowd())]);
    for _ in 0..50 {
        state = state.step(Event::Key(Key::Down), Duration::ZERO).0;
    }
    assert_eq!(state.chosen_at(), 39);
    state = state.step(Event::Key(Key::Up), Duration::ZERO).0;
    let mut fewer = crowd();
    fewer.journals.drain(..30);
    state = state.step(Event::Sample(fewer.clone()), Duration::ZERO).0;
    assert_eq!(state.chosen_at(), 8);
    fewer.journals.truncate(3);
    state = state.step(Event::Sample(fewer), Duration::ZERO).0;
    assert_eq!(state.chosen_at(), 0, "it is gone itself");
    assert_eq!(state.history().len(), 3);
}

#[test]
fn keys_that_set_ask_for_it_where_luc_is_on() {
    let step = |state: State, key| state.step(Event::Key(key), Duration::ZERO);
    let (state, action) = step(after([sample()]), Key::Policy);
    let Some(Action::Set {
        shown, knob, value, ..
    }) = action
    else {
        panic!("{action:?}");
    };
    // luc is the last policy, stock the first.
    assert_eq!((shown.as_str(), knob, value), ("/srv/data", "policy", 0));
    let (state, action) = step(state, Key::Mode);
    assert!(matches!(action, Some(Action::Set { knob: "mode", .. })));
    // LUC is off for the second journal.
    let (state, _) = step(state, Key::Down);
    let (state, action) = step(state, Key::Policy);
    assert_eq!(action, None);
    let message = state.message.expect("a word about it");
    assert!(
        message.bad && message.text.contains("luc on /"),
        "{message:?}"
    );
    let (_, action) = step(after([]), Key::Mode);
    assert_eq!(action, None);
    assert_eq!(step(after([]), Key::Quit).1, Some(Action::Quit));
}

#[test]
fn messages_go_and_paused_views_stand_still() {
    let state = after([sample(), Event::Failed("no".into())]);
    let (state, _) = state.step(Event::Tick, Duration::from_secs(4));
    assert!(state.message.is_some());
    let (state, _) = state.step(Event::Tick, Duration::from_secs(5));
    assert!(state.message.is_none());
    let (state, _) = state.step(Event::Key(Key::Pause), Duration::ZERO);
    let (state, _) = state.step(Event::Sample(crowd()), Duration::ZERO);
    assert_eq!(state.journals().len(), 2);
    let (state, _) = state.step(Event::Key(Key::Pause), Duration::ZERO);
    let (state, _) = state.step(Event::Sample(crowd()), Duration::ZERO);
    assert_eq!(state.journals().len(), 40);
}

#[test]
fn intervals_have_steps_and_ends() {
    let mut state = State::new(Duration::from_millis(700));
    let mut seen = Vec::new();
    for key in [Key::Slower, Key::Faster, Key::Faster, Key::Faster] {
        state = state.step(Event::Key(key), Duration::ZERO).0;
        seen.push(state.interval.as_millis());
    }
    assert_eq!(seen, [1000, 500, 200, 200]);
    for _ in 0..20 {
        state = state.step(Event::Key(Key::Slower), Duration::ZERO).0;
    }
    assert_eq!(state.interval, Duration::from_secs(60));
    for bad in ["0.1", "61", "NaN", "-1", "x", ""] {
        assert!(super::interval::<60>(bad).is_err(), "{bad}");
    }
}

#[test]
fn processes_are_sorted_as_asked() {
    let state = after([sample()]);
    let first = |state: &State| state.processes()[0].name.clone();
    assert_eq!(first(&state), "mailer");
    let (state, _) = state.step(Event::Key(Key::Sort), Duration::ZERO);
    assert_eq!(state.sort, Sort::Lost);
    assert_eq!(first(&state), "database");
}

#[test]
fn keys_of_a_keyboard() {
    let key = |code, modifiers| terminal::key(KeyEvent::new(code, modifiers));
    let none = KeyModifiers::NONE;
    assert_eq!(key(KeyCode::Char('q'), none), Some(Key::Quit));
    assert_eq!(
        key(KeyCode::Char('c'), KeyModifiers::CONTROL),
        Some(Key::Quit)
    );
    assert_eq!(key(KeyCode::Char('p'), KeyModifiers::CONTROL), None);
    assert_eq!(key(KeyCode::Tab, none), Some(Key::Sort));
    assert_eq!(
        key(KeyCode::Char('+'), KeyModifiers::SHIFT),
        Some(Key::Slower)
    );
    assert_eq!(key(KeyCode::F(1), none), None);
}

#[test]
fn small_rates_are_not_shown_as_nothing() {
    let shown = [0.0, 0.001, 0.5, 9.99, 12.34, 123.4, 9_999.6, 1e6, 1e12].map(text::rate);
    assert_eq!(
        shown,
        [
            "0", "<0.01", "0.50", "9.99", "12.3", "123", "10.0k", "1.0M", "lots"
        ]
    );
}

/// At every width, a number is whole or absent.
#[test]
fn no_number_is_cut() {
    let mut snapshot = sample_of();
    let luc = snapshot.journals[0].luc.as_mut().expect("on");
    luc.setpoint_events = Some(1_000_000);
    let state = after([Event::Sample(snapshot)]);
    for width in 30..200 {
        let shown = screen(&state, (width, 24)).backend().to_string();
        let row = shown.lines().nth(2).expect("a row");
        // commits/s, which fits at every such width, and then the ratio.
        let words: Vec<_> = row.trim_matches('"').split_whitespace().collect();
        assert_eq!(words[1], "10.0", "{width}: {row}");
        assert!(
            words
                .get(2)
                .is_none_or(|word| ["##########", "14.9"].contains(word)),
            "{row}"
        );
    }
}

/// A screen as lines of text.
fn lines(state: &State, size: (u16, u16)) -> Vec<String> {
    let terminal = screen(state, size);
    let buffer = terminal.backend().buffer();
    let row = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect();
    (0..size.1).map(row).collect()
}

#[test]
fn a_large_screen_is_used_and_numbers_stay_near_their_names() {
    let lines = lines(&after([Event::Sample(crowd())]), (200, 50));
    let named = |line: &&String| line.contains("a process with a long name");
    let processes: Vec<_> = lines.iter().filter(named).collect();
    // Processes fill the rows below journals and charts, down to the line above the keys.
    assert!(processes.len() > 15, "{lines:#?}");
    assert!(named(&&lines[48]), "{lines:#?}");
    for line in processes {
        let (_, after) = line.split_once("long name ").expect("a name");
        let number = after.trim_start_matches(|c: char| c.is_ascii_digit());
        let blanks = number.len() - number.trim_start().len();
        assert!(blanks < 15, "{line}");
    }
}

#[test]
fn processes_are_chosen_by_name() {
    let args = super::Args {
        by: ByMeans { means: None },
        interval: Duration::from_secs(1),
        cgroup: None,
        comm: Some("name 99".into()),
        once: true,
        json: false,
    };
    let chosen = args.chosen(crowd()).processes;
    let pids: Vec<u32> = chosen.iter().map(|one| one.pid).collect();
    assert_eq!(pids, [99].into_iter().chain(990..1000).collect::<Vec<_>>());
    let all = super::Args { comm: None, ..args };
    assert_eq!(all.chosen(crowd()).processes.len(), 1000);
}

/// An older module that does not count copies may make some.
#[test]
fn what_is_not_counted_is_no_zero() {
    let mut journal = sample_of().journals.remove(0);
    let rates = journal.luc.as_mut().and_then(|luc| luc.rates.as_mut());
    rates.expect("counted through").copies_per_s = None;
    let line = super::text::luc_line(&journal);
    assert!(line.contains("; copies -/s; "), "{line}");
}

#[test]
fn blame_is_of_the_chosen_journal_alone() {
    let state = after(blaming(1));
    assert_eq!(state.blamed(), Some(blame().device));
    let names = |state: &State| -> Vec<String> {
        state.waiters().iter().map(|it| it.name.clone()).collect()
    };
    assert_eq!(names(&state), ["dpkg", "etcd", "mail"], "by commits caused");
    let step = |state: State, event| state.step(event, Duration::ZERO).0;
    let state = step(state, Event::Key(Key::Sort));
    assert_eq!(names(&state), ["etcd", "mail", "dpkg"], "by time lost");
    let groups = [Key::Blame, Key::Sort, Key::Sort].map(Event::Key);
    let groups = groups.into_iter().fold(state.clone(), step);
    let paths = [
        "/kube/etcd",
        "/system.slice/unpack",
        "an unknown control group",
    ];
    assert_eq!(names(&groups), paths, "by control group");
    // The other journal is another's blame.
    let other = step(state.clone(), Event::Key(Key::Down));
    assert!(other.blamed() != Some(blame().device) && names(&other).is_empty());
    // Those that wait for a process are found by its name, too.
    let typed = [Event::Key(Key::Filter)].into_iter().chain(type_in("dpkg"));
    let state = typed.fold(state, step);
    assert_eq!(names(&state), ["etcd", "dpkg"]);
    let state = step(state, Event::Unblamed("no rights".into()));
    assert_eq!((state.view, state.blamed()), (View::Processes, None));
    assert!(state.message.is_some_and(|message| message.bad));
}

#[test]
fn parties_to_blame_are_chosen_by_name() {
    let args = super::Args {
        by: ByMeans { means: None },
        interval: Duration::from_secs(1),
        cgroup: Some("/kube".into()),
        comm: Some("etcd".into()),
        once: false,
        json: false,
    };
    let chosen = args.chosen_to_blame(blame());
    let names =
        |blame: &Blame| -> Vec<String> { blame.waiters.iter().map(|it| it.name.clone()).collect() };
    assert_eq!(names(&chosen.processes), ["etcd"]);
    assert_eq!(names(&chosen.control_groups), ["/kube/etcd"]);
    assert_eq!(chosen.processes.commits.all, 200);
}

#[test]
fn processes_are_filtered_by_name_or_control_group() {
    let process = |pid, name: &str, cgroup: &str| ProcessSample {
        pid,
        name: name.into(),
        cgroup: Some(cgroup.into()),
        ..ProcessSample::default()
    };
    let mut snapshot = sample_of();
    snapshot.processes = vec![
        process(1, "postgres", "/system.slice/db"),
        process(2, "cat", "/user.slice"),
        process(3, "bash", "/system.slice/post"),
    ];
    let begun = [Event::Sample(snapshot), Event::Key(Key::Filter)];
    let pids = |state: &State| {
        state
            .processes()
            .iter()
            .map(|it| it.pid)
            .collect::<Vec<_>>()
    };
    let state = after(begun.clone().into_iter().chain(type_in("post")));
    assert!(state.typing && pids(&state) == [1, 3], "{:?}", pids(&state));
    let (state, _) = state.step(Event::Key(Key::Keep), Duration::ZERO);
    assert!(!state.typing && pids(&state) == [1, 3]);
    let (state, _) = state.step(Event::Key(Key::Drop), Duration::ZERO);
    assert_eq!(pids(&state), [1, 2, 3]);
    let sorted = [Key::Keep, Key::Sort, Key::Sort].map(Event::Key);
    let state = after(begun.clone().into_iter().chain(sorted.clone()));
    assert_eq!(pids(&state), [3, 2, 1], "by name");
    let last = Event::Key(Key::Sort);
    let state = after(begun.into_iter().chain(sorted).chain([last]));
    assert_eq!(pids(&state), [1, 3, 2], "by control group");
    // While a filter is typed, letters are no commands.
    let press = |code| terminal::typed(KeyEvent::new(code, KeyModifiers::NONE));
    assert_eq!(press(KeyCode::Char('q')), Some(Key::Type('q')));
    assert_eq!(press(KeyCode::Esc), Some(Key::Drop));
    let stop = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(terminal::typed(stop), Some(Key::Quit));
}
