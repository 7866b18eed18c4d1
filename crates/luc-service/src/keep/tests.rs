use proptest::prelude::*;

use super::*;
use crate::config::{Source, read};

fn config(text: &str) -> Config {
    let source = Source {
        path: "luc.toml".into(),
        text: text.to_owned(),
    };
    read(&[source]).unwrap()
}

const MAIL: &str = "[[file_system]]\npath = \"/srv/mail\"\n";

fn dev(minor: u32) -> Dev {
    Dev { major: 8, minor }
}

fn mail(thread: u32) -> Mounted {
    Mounted {
        device: dev(1),
        thread: Some(thread),
        points: vec!["/srv/mail".into()],
        uuid: Some("aa-bb".into()),
        obstacle: None,
    }
}

fn on(limit: i64, mode: i64) -> Attached {
    Attached {
        device: dev(1),
        knobs: [
            ("delay_limit_us".to_owned(), limit),
            ("mode".to_owned(), mode),
        ]
        .into(),
    }
}

fn seen(mounted: Option<Mounted>, attached: Option<Attached>) -> Seen {
    Seen {
        mounted: mounted.into_iter().collect(),
        attached: attached.into_iter().collect(),
        groups: BTreeMap::new(),
    }
}

fn kinds(actions: &[Action]) -> String {
    let kind = |action: &Action| match action {
        Action::On { .. } => "on",
        Action::Off { .. } => "off",
        Action::Set { .. } => "set",
        Action::Say(_) => "say",
    };
    actions.iter().map(kind).collect::<Vec<_>>().join(" ")
}

/// Plays rows of what is seen and the actions expected.
fn lives(config: &Config, memory: &mut Memory, rows: &[(Seen, &str)]) {
    for (at, (seen, expected)) in rows.iter().enumerate() {
        let actions = next(config, seen, memory);
        assert_eq!(kinds(&actions), *expected, "row {at}: {actions:?}");
    }
}

#[test]
fn it_is_switched_on_when_it_is_mounted_and_again_when_mounted_anew() {
    let mut memory = Memory::default();
    lives(
        &config(MAIL),
        &mut memory,
        &[
            (seen(None, None), ""),
            (seen(Some(mail(30)), None), "on"),
            (seen(Some(mail(30)), Some(on(5, 1))), ""),
            // The guard tries stock.
            (seen(Some(mail(30)), Some(on(5, 0))), ""),
            (seen(None, None), ""),
            (seen(Some(mail(31)), None), "on"),
        ],
    );
}

#[test]
fn a_hand_goes_before_the_configuration() {
    let config = config(MAIL);
    let ours = [
        (seen(Some(mail(30)), None), "on"),
        (seen(Some(mail(30)), Some(on(5, 1))), ""),
    ];
    // Switched off by hand: it stays off, which is said once.
    let mut memory = Memory::default();
    lives(&config, &mut memory, &ours);
    let off = seen(Some(mail(30)), None);
    lives(
        &config,
        &mut memory,
        &[(off.clone(), "say"), (off.clone(), "")],
    );
    memory.reread();
    lives(&config, &mut memory, &[(off, "on")]);
    // A knob changed by hand: left alone, even at the end.
    let mut memory = Memory::default();
    lives(&config, &mut memory, &ours);
    let changed = seen(Some(mail(30)), Some(on(7, 1)));
    lives(
        &config,
        &mut memory,
        &[(changed.clone(), "say"), (changed.clone(), "")],
    );
    assert!(stop(&changed, &mut memory).is_empty());
    // Switched on before the service started.
    let mut memory = Memory::default();
    let before = seen(Some(mail(30)), Some(on(5, 1)));
    lives(
        &config,
        &mut memory,
        &[(before.clone(), "say"), (before.clone(), "")],
    );
    assert!(stop(&before, &mut memory).is_empty());
}

#[test]
fn what_it_switched_on_goes_off_at_the_end_or_without_an_entry() {
    let running = seen(Some(mail(30)), Some(on(5, 1)));
    for without_entry in [true, false] {
        let mut memory = Memory::default();
        lives(
            &config(MAIL),
            &mut memory,
            &[(seen(Some(mail(30)), None), "on"), (running.clone(), "")],
        );
        // A service that was killed knows its own work.
        let text = serde_json::to_string(&memory).unwrap();
        let mut memory: Memory = serde_json::from_str(&text).unwrap();
        assert_eq!(memory.ours(&running).collect::<Vec<_>>(), [dev(1)]);
        let actions = if without_entry {
            next(&Config::default(), &running, &mut memory)
        } else {
            stop(&running, &mut memory)
        };
        assert_eq!(kinds(&actions), "off");
        assert_eq!(memory.mounts.len(), 0);
    }
}

#[test]
fn two_names_of_one_file_system_are_told_and_it_is_left_alone() {
    let both = config(&format!("{MAIL}[[file_system]]\nuuid = \"AA-BB\"\n"));
    let mut memory = Memory::default();
    let mounted = seen(Some(mail(30)), None);
    lives(
        &both,
        &mut memory,
        &[(mounted.clone(), "say"), (mounted, "")],
    );
    let by_uuid = config("[[file_system]]\nuuid = \"AA-BB\"\n");
    lives(
        &by_uuid,
        &mut Memory::default(),
        &[(seen(Some(mail(30)), None), "on")],
    );
}

#[test]
fn what_cannot_be_is_said_once_and_tried_when_it_can() {
    let config = config(MAIL);
    let mut memory = Memory::default();
    let read_only = Mounted {
        obstacle: Some("read-only".into()),
        ..mail(30)
    };
    lives(
        &config,
        &mut memory,
        &[
            (seen(Some(read_only.clone()), None), "say"),
            (seen(Some(read_only), None), ""),
            (seen(Some(mail(30)), None), "on"),
        ],
    );
    // A failure to switch it on is not followed by a second try.
    memory.failed(dev(1));
    lives(&config, &mut memory, &[(seen(Some(mail(30)), None), "")]);
    memory.reread();
    lives(&config, &mut memory, &[(seen(Some(mail(30)), None), "on")]);
}

#[test]
fn a_control_group_is_followed_when_it_appears_and_when_it_is_made_anew() {
    let config = config(&format!("{MAIL}set = {{ priority_cgroup = \"db\" }}\n"));
    let mounted = |on: Option<i64>, id: Option<i64>| {
        let attached = on.map(|id| Attached {
            device: dev(1),
            knobs: [("priority_cgroup".to_owned(), id)].into(),
        });
        Seen {
            groups: id.map(|id| ("db".to_owned(), id)).into_iter().collect(),
            ..seen(Some(mail(30)), attached)
        }
    };
    let mut memory = Memory::default();
    lives(
        &config,
        &mut memory,
        &[
            (mounted(None, None), "on say"),
            (mounted(Some(0), None), ""),
            (mounted(Some(0), Some(7)), "set"),
            (mounted(Some(7), Some(7)), ""),
            // Gone, then made anew.
            (mounted(Some(7), None), ""),
            (mounted(Some(7), Some(9)), "set"),
            (mounted(Some(9), Some(9)), ""),
            // By hand.
            (mounted(Some(0), Some(9)), "say"),
            (mounted(Some(0), Some(10)), ""),
        ],
    );
    // It is set from the start if it is there.
    let actions = next(&config, &mounted(None, Some(7)), &mut Memory::default());
    let [Action::On { settings, .. }] = &actions[..] else {
        panic!("{actions:?}");
    };
    let set: Vec<_> = settings.iter().map(|(knob, id)| (knob.name, *id)).collect();
    assert_eq!(set, [("priority_cgroup", 7)]);
}

#[test]
fn a_fault_of_ours_is_said_once_and_stops_the_guard() {
    let config = config(MAIL);
    let mut memory = Memory::default();
    let (sound, on) = (seen(Some(mail(30)), None), on(5000, 1));
    lives(&config, &mut memory, &[(sound, "on")]);
    let frozen = Mounted {
        obstacle: Some("frozen".into()),
        ..mail(30)
    };
    let frozen = seen(Some(frozen), Some(on.clone()));
    let thawed = seen(Some(mail(30)), Some(on));
    let said = next(&config, &frozen, &mut memory);
    let line = "/srv/mail: frozen; LUC can do nothing there until that ends";
    assert_eq!(said, [Action::Say(line.into())]);
    lives(&config, &mut memory, &[(frozen.clone(), "")]);
    assert_eq!(memory.guarded(&config, &frozen).count(), 0);
    lives(&config, &mut memory, &[(thawed.clone(), "")]);
    assert_eq!(memory.guarded(&config, &thawed).count(), 1);
}

proptest! {
    /// The service never switches LUC on where it is on, never off where it has not switched it
    /// on, and comes to rest, for any mounts and any switching by others.
    #[test]
    fn it_does_not_fight(steps in proptest::collection::vec((0_u32..3, any::<bool>(), 0_i64..2), 1..30)) {
        let config = config(MAIL);
        let mut memory = Memory::default();
        let mut ours = None;
        for (mount, is_on, limit) in steps {
            let mounted = (mount > 0).then(|| mail(mount));
            let attached = (mount > 0 && is_on).then(|| on(limit, 1));
            let now = seen(mounted, attached);
            for action in next(&config, &now, &mut memory) {
                match action {
                    Action::On { .. } => {
                        prop_assert!(now.attached.is_empty());
                        ours = Some(mount);
                    }
                    Action::Off { .. } => prop_assert_eq!(ours, Some(mount)),
                    Action::Set { .. } | Action::Say(_) => {}
                }
            }
            let again = next(&config, &now, &mut memory.clone());
            let switches = again.iter().any(|it| matches!(it, Action::On { .. }));
            prop_assert!(!(switches && is_on));
        }
    }
}
