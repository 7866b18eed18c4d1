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
    /// Ids of the control groups that the configuration names and that exist, by their paths there.
    pub groups: BTreeMap<String, i64>,
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
    /// Sets a knob to a control group that has appeared.
    Set {
        device: Dev,
        name: String,
        knob: &'static Knob,
        value: i64,
        /// The group's path.
        group: String,
    },
    /// A line for the log.
    Say(String),
}

impl Memory {
    fn standing(&self, mounted: &Mounted) -> Option<&Standing> {
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
        let is_ours =
            |mounted: &&Mounted| matches!(self.standing(mounted), Some(Standing::Ours { .. }));
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
            (Some(entry), None) => {
                let groups = groups_of(entry, seen);
                wanted(entry, &groups, mounted, attached, memory, &mut actions);
            }
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

/// A knob with its control group: the group's path, and its id if it exists.
type Group = (&'static Knob, String, Option<i64>);

fn groups_of(entry: &Entry, seen: &Seen) -> Vec<Group> {
    let group = |(knob, path): &(&'static Knob, String)| {
        (*knob, path.clone(), seen.groups.get(path).copied())
    };
    entry.groups.iter().map(group).collect()
}

/// Sets knobs whose control group has appeared, or was made anew. The id of a group that is gone
/// stays: the kernel gives it to no other group.
fn follow(
    name: &str,
    groups: &[Group],
    mounted: &Mounted,
    memory: &mut Memory,
    actions: &mut Vec<Action>,
) {
    let Some(Standing::Ours { mut knobs }) = memory.standing(mounted).cloned() else {
        return;
    };
    tell_missing(name, groups, memory, actions);
    for (knob, path, id) in groups {
        let Some(id) = *id else { continue };
        if knobs.get(knob.name).is_some_and(|now| *now != id) {
            knobs.insert(knob.name.to_owned(), id);
            actions.push(Action::Set {
                device: mounted.device,
                name: name.to_owned(),
                knob,
                value: id,
                group: path.clone(),
            });
        }
    }
    memory.set(mounted, Standing::Ours { knobs });
}

/// Says which control groups do not exist.
fn tell_missing(name: &str, groups: &[Group], memory: &mut Memory, actions: &mut Vec<Action>) {
    for (knob, path, _) in groups.iter().filter(|(_, _, id)| id.is_none()) {
        let line = format!(
            "{name}: {}: no control group {path} yet; it takes effect once there is one",
            knob.name
        );
        memory.say(line, actions);
    }
}

fn wanted(
    entry: &Entry,
    groups: &[Group],
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
    let standing = memory.standing(mounted).cloned();
    match (standing, attached) {
        (Some(Standing::LeftAlone), _) => {}
        (None, None) => {
            memory.set(
                mounted,
                Standing::Ours {
                    knobs: BTreeMap::new(),
                },
            );
            let there = groups
                .iter()
                .filter_map(|(knob, _, id)| Some((*knob, (*id)?)));
            actions.push(Action::On {
                device: mounted.device,
                name: name.clone(),
                settings: entry.settings.iter().copied().chain(there).collect(),
            });
            tell_missing(&name, groups, memory, actions);
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
                return;
            }
            follow(&name, groups, mounted, memory, actions);
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
    if matches!(memory.standing(mounted), Some(Standing::Ours { .. })) && attached.is_some() {
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
mod tests;
