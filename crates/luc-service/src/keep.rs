//! Decides the next steps towards the configuration.
//!
//! An administrator's hand takes precedence over the configuration: what was switched on, off or
//! changed by hand is left alone until the file system is mounted again, or the configuration is
//! read again. The service saves what it has done in a file, so that it knows its own work after it
//! was killed.

use std::collections::BTreeMap;

use luc_control::{Dev, Knob};
use serde::{Deserialize, Serialize};

use crate::config::{Config, Entry, Names};

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounted {
    pub device: Dev,
    /// Process ID of its journal's thread: differs after the next mount.
    pub thread: Option<u32>,
    pub points: Vec<std::path::PathBuf>,
    /// In lower case; `None` if not known.
    pub uuid: Option<String>,
    /// Why LUC can do nothing there.
    pub obstacle: Option<String>,
}

/// A file system that LUC is on for, with all its knobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    pub device: Dev,
    pub knobs: BTreeMap<String, i64>,
}

/// The state of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub mounted: Vec<Mounted>,
    pub attached: Vec<Attached>,
}

/// The service's standing with a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Standing {
    /// The service switched LUC on; these were all knobs then, empty until they are seen.
    Ours { knobs: BTreeMap<String, i64> },
    /// The service leaves it alone.
    LeftAlone,
}

/// The steps that the service has taken so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// By device and journal's thread.
    mounts: Vec<((String, Option<u32>), Standing)>,
    /// Messages that were given already.
    said: Vec<String>,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    On {
        device: Dev,
        /// For messages.
        name: String,
        settings: Vec<(&'static Knob, i64)>,
    },
    Off {
        device: Dev,
        name: String,
    },
    /// A line for the log.
    Say(String),
}

impl Memory {
    fn of(&self, mounted: &Mounted) -> Option<&Standing> {
        let key = key(mounted);
        let found = self.mounts.iter().find(|(other, _)| *other == key);
        found.map(|(_, standing)| standing)
    }

    fn set(&mut self, mounted: &Mounted, standing: Standing) {
        let key = key(mounted);
        self.mounts.retain(|(other, _)| *other != key);
        self.mounts.push((key, standing));
    }

    fn say(&mut self, line: String, actions: &mut Vec<Action>) {
        if !self.said.contains(&line) {
            self.said.push(line.clone());
            actions.push(Action::Say(line));
        }
    }

    /// Records that an action failed: nothing is tried there again until the configuration is read
    /// again, or the file system is mounted again.
    pub fn failed(&mut self, device: Dev) {
        let name = device.to_string();
        for ((other, _), standing) in &mut self.mounts {
            if *other == name {
                *standing = Standing::LeftAlone;
            }
        }
    }

    /// Records that the configuration was read again: what was left alone is considered again.
    pub fn reread(&mut self) {
        self.mounts
            .retain(|(_, standing)| !matches!(standing, Standing::LeftAlone));
        self.said.clear();
    }

    /// Devices where the service switched LUC on and nobody has changed that.
    pub fn ours<'a>(&'a self, seen: &'a Seen) -> impl Iterator<Item = Dev> + 'a {
        self.mounts_of_ours(seen).map(|mounted| mounted.device)
    }

    /// The devices of [`Memory::ours`] that are to be guarded, if LUC can do something there.
    pub fn guarded<'a>(
        &'a self,
        config: &'a Config,
        seen: &'a Seen,
    ) -> impl Iterator<Item = Dev> + 'a {
        let is_guarded = |mounted: &&Mounted| {
            let mut entries = config.entries.iter();
            entries.any(|entry| entry.guard && is_named(entry, mounted))
        };
        let guarded = self.mounts_of_ours(seen).filter(is_guarded);
        let guarded = guarded.filter(|mounted| mounted.obstacle.is_none());
        guarded.map(|mounted| mounted.device)
    }

    fn mounts_of_ours<'a>(&'a self, seen: &'a Seen) -> impl Iterator<Item = &'a Mounted> + 'a {
        let is_ours = |mounted: &&Mounted| matches!(self.of(mounted), Some(Standing::Ours { .. }));
        seen.mounted.iter().filter(is_ours)
    }
}

fn key(mounted: &Mounted) -> (String, Option<u32>) {
    (mounted.device.to_string(), mounted.thread)
}

/// Tells whether an entry names a mounted file system.
pub fn is_named(entry: &Entry, mounted: &Mounted) -> bool {
    match &entry.names {
        Names::Path(path) => mounted.points.contains(path),
        Names::Uuid(uuid) => mounted.uuid.as_ref() == Some(uuid),
    }
}

/// Returns the next steps; `memory` records them as done.
pub fn next(config: &Config, seen: &Seen, memory: &mut Memory) -> Vec<Action> {
    let mut actions = Vec::new();
    let known: Vec<_> = seen.mounted.iter().map(key).collect();
    memory.mounts.retain(|(key, _)| known.contains(key));
    for mounted in &seen.mounted {
        let mut entries = config
            .entries
            .iter()
            .filter(|entry| is_named(entry, mounted));
        let attached = seen.attached.iter().find(|it| it.device == mounted.device);
        match (entries.next(), entries.next()) {
            (None, _) => unwanted(mounted, attached, memory, &mut actions),
            (Some(entry), None) => wanted(entry, mounted, attached, memory, &mut actions),
            (Some(one), Some(other)) => {
                let line = format!(
                    "{}: {} and {} are the same file system; it is left alone until one is removed",
                    other.at, one.names, other.names
                );
                memory.say(line, &mut actions);
            }
        }
    }
    actions
}

fn wanted(
    entry: &Entry,
    mounted: &Mounted,
    attached: Option<&Attached>,
    memory: &mut Memory,
    actions: &mut Vec<Action>,
) {
    let name = entry.names.to_string();
    if let Some(obstacle) = &mounted.obstacle {
        let state = match attached {
            Some(_) => "LUC can do nothing there until that ends",
            None => "LUC stays off there",
        };
        memory.say(format!("{name}: {obstacle}; {state}"), actions);
        return;
    }
    let standing = memory.of(mounted).cloned();
    match (standing, attached) {
        (Some(Standing::LeftAlone), _) => {}
        (None, None) => {
            memory.set(
                mounted,
                Standing::Ours {
                    knobs: BTreeMap::new(),
                },
            );
            actions.push(Action::On {
                device: mounted.device,
                name,
                settings: entry.settings.clone(),
            });
        }
        (None, Some(_)) => {
            memory.set(mounted, Standing::LeftAlone);
            memory.say(
                format!("{name}: someone else switched LUC on; the service leaves it as it is"),
                actions,
            );
        }
        (Some(Standing::Ours { .. }), None) => {
            memory.set(mounted, Standing::LeftAlone);
            let line = format!(
                "{name}: LUC was switched off by hand; it stays off until `systemctl reload luc`, or until it is mounted again"
            );
            memory.say(line, actions);
        }
        (Some(Standing::Ours { knobs }), Some(attached)) => {
            if knobs.is_empty() {
                let knobs = attached.knobs.clone();
                memory.set(mounted, Standing::Ours { knobs });
            } else if let Some(line) = change(&name, &knobs, &attached.knobs) {
                memory.set(mounted, Standing::LeftAlone);
                memory.say(line, actions);
            }
        }
    }
}

/// Returns a message if somebody changed a knob. The mode does not count: the guard changes it.
fn change(name: &str, ours: &BTreeMap<String, i64>, now: &BTreeMap<String, i64>) -> Option<String> {
    let other = ours
        .iter()
        .find(|(knob, value)| *knob != "mode" && now.get(*knob).is_some_and(|now| now != *value));
    let (knob, _) = other?;
    Some(format!(
        "{name}: {knob} was changed by hand; the service leaves LUC as it is"
    ))
}

/// Handles a mount that no entry names: LUC goes off if the service switched it on.
fn unwanted(
    mounted: &Mounted,
    attached: Option<&Attached>,
    memory: &mut Memory,
    actions: &mut Vec<Action>,
) {
    if matches!(memory.of(mounted), Some(Standing::Ours { .. })) && attached.is_some() {
        let point = mounted
            .points
            .first()
            .map(|point| point.display().to_string());
        actions.push(Action::Off {
            device: mounted.device,
            name: point.unwrap_or_else(|| mounted.device.to_string()),
        });
    }
    let key = key(mounted);
    memory.mounts.retain(|(other, _)| *other != key);
}

/// Returns the steps when the service stops: what it switched on goes off.
pub fn stop(seen: &Seen, memory: &mut Memory) -> Vec<Action> {
    let mut actions = Vec::new();
    for mounted in &seen.mounted {
        let attached = seen.attached.iter().find(|it| it.device == mounted.device);
        unwanted(mounted, attached, memory, &mut actions);
    }
    actions
}

#[cfg(test)]
mod tests {
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
        }
    }

    fn kinds(actions: &[Action]) -> String {
        let kind = |action: &Action| match action {
            Action::On { .. } => "on",
            Action::Off { .. } => "off",
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
        /// Whatever is mounted and whoever switches, the service never switches LUC on where it is
        /// on, never off where it has not switched it on, and comes to rest.
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
                        Action::Say(_) => {}
                    }
                }
                let again = next(&config, &now, &mut memory.clone());
                let switches = again.iter().any(|it| matches!(it, Action::On { .. }));
                prop_assert!(!(switches && is_on));
            }
        }
    }
}
