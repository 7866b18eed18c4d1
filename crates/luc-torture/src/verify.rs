//! Judges a whole tree: names, each file's content, and whether one moment fits all names.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use serde::Serialize;

use crate::content::{DataMode, Found, Judge, READ_MAX};
use crate::history::{History, Value};
use crate::moments::{Span, moments};
use crate::sector::SECTOR_BYTES;
use crate::tree::{Entry, Tree, Type};
use crate::violation::{Kind, Violation};

/// Result of the judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Marks of the history.
    pub marks: u64,
    /// Acknowledged syncs among them.
    pub syncs: u64,
    /// Files that were found.
    pub files: usize,
    /// Sectors of data in them.
    pub sectors: usize,
    /// Every broken promise; none if all is well.
    pub violations: Vec<Violation>,
}

/// Judges the tree by the history.
///
/// # Errors
/// The tree's top cannot be read; any fault below it is a violation.
pub fn verify(tree: &dyn Tree, history: &History, mode: DataMode) -> io::Result<Report> {
    let listing = tree.list()?;
    let mut check = Check {
        history,
        mode,
        found: vec![None; history.names.len()],
        entries: &listing.entries,
        inodes: HashMap::new(),
        legal: RefCell::new(HashMap::new()),
        impossible: RefCell::new(HashMap::new()),
        violations: Vec::new(),
    };
    for (path, why) in &listing.unreadable {
        check.complain(Kind::Unreadable, path, "readable metadata", why, None);
    }
    check.enter(tree);
    check.names();
    let found = check.inodes.values().map(|inode| &inode.found);
    let sectors = found.map(|found| found.data.len().div_ceil(SECTOR_BYTES));
    Ok(Report {
        marks: history.marks(),
        syncs: history.syncs(),
        files: check.inodes.len(),
        sectors: sectors.sum(),
        violations: check.violations,
    })
}

struct Inode {
    found: Found,
    readable: bool,
    names: u64,
}

struct Check<'a> {
    history: &'a History,
    mode: DataMode,
    /// For each name known to the history, the entry found.
    found: Vec<Option<&'a Entry>>,
    entries: &'a [Entry],
    inodes: HashMap<u64, Inode>,
    /// Whether an inode may be this file, if its labels do not decide that.
    legal: RefCell<HashMap<(u32, u64), bool>>,
    /// Whether an inode's content is possible for no file.
    impossible: RefCell<HashMap<u64, bool>>,
    violations: Vec<Violation>,
}

/// How well a thread's names fit one of its changes.
struct Fit {
    /// Number of changes in the tree.
    changes: usize,
    wrong: usize,
}

impl<'a> Check<'a> {
    fn complain(
        &mut self,
        kind: Kind,
        path: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
        ack: Option<u64>,
    ) {
        self.violations.push(Violation {
            kind,
            path: path.to_owned(),
            expected: expected.into(),
            found: found.into(),
            ack,
        });
    }

    /// Looks every entry up and reads every file once.
    fn enter(&mut self, tree: &dyn Tree) {
        for entry in self.entries {
            match self.history.name(&entry.path) {
                Some(name) => self.found[name] = Some(entry),
                // mkfs makes it, and e2fsck puts files there.
                None if entry.path == "lost+found" && entry.kind == Type::Dir => {}
                None => {
                    let what = format!("{:?} of {} bytes", entry.kind, entry.bytes);
                    let what = what.to_lowercase();
                    self.complain(Kind::Unexplained, &entry.path, "nothing", what, None);
                }
            }
            if entry.kind != Type::File {
                continue;
            }
            if let Some(inode) = self.inodes.get_mut(&entry.inode) {
                inode.names += 1;
                continue;
            }
            let mut data = Vec::new();
            let outcome = tree.read(&entry.path, READ_MAX, &mut data);
            let readable = outcome.is_ok();
            if let Err(error) = outcome {
                let why = error.to_string();
                self.complain(Kind::Unreadable, &entry.path, "its content", why, None);
            }
            let inode = Inode {
                found: Found::new(entry.bytes, data, self.history.session),
                readable,
                names: 1,
            };
            self.inodes.insert(entry.inode, inode);
        }
    }

    fn judge(&self, file: u32) -> Option<Judge<'a>> {
        Some(Judge {
            session: self.history.session,
            file,
            history: self.history.files.get(&file)?,
            mode: self.mode,
        })
    }

    /// Whether the entry found at a name may have this target.
    fn may_be(&self, name: usize, value: Value) -> bool {
        let Some(entry) = self.found[name] else {
            return value == Value::Absent;
        };
        match value {
            Value::Absent => false,
            Value::Dir => entry.kind == Type::Dir,
            Value::File(file) => entry.kind == Type::File && self.may_be_file(entry, file),
        }
    }

    fn may_be_file(&self, entry: &Entry, file: u32) -> bool {
        let Some(inode) = self.inodes.get(&entry.inode) else {
            return false;
        };
        let claims = inode.found.claims;
        // In writeback mode a new block may show another file's old data: there labels only
        // hint, and the content decides.
        if self.mode != DataMode::Writeback
            && let Some(claims) = claims
        {
            return claims == file;
        }
        let mut legal = self.legal.borrow_mut();
        *legal
            .entry((file, entry.inode))
            .or_insert_with(|| self.accepts(file, &inode.found))
            || claims.is_none_or(|claims| claims == file)
                && self.is_impossible(entry.inode, &inode.found)
    }

    fn accepts(&self, file: u32, found: &Found) -> bool {
        self.judge(file).is_some_and(|judge| judge.accepts(found))
    }

    /// Tells whether no file can have this content. Then it may be any: its name is not at fault.
    fn is_impossible(&self, inode: u64, found: &Found) -> bool {
        let mut impossible = self.impossible.borrow_mut();
        *impossible.entry(inode).or_insert_with(|| {
            let mut files = self.history.files.keys();
            !files.any(|file| self.accepts(*file, found))
        })
    }

    fn names(&mut self) {
        let mut of_thread = vec![Vec::new(); self.history.threads.len()];
        for (index, name) in self.history.names.iter().enumerate() {
            of_thread[name.owner as usize].push(index);
        }
        let mut now: Vec<Value> = self.history.names.iter().map(|name| name.base).collect();
        let mut spans = Vec::new();
        let mut all_fit = true;
        for (thread, names) in of_thread.iter().enumerate() {
            let (best, thread_spans) = self.fit(thread, names);
            if thread_spans.is_empty() {
                all_fit = false;
            } else {
                spans.push((thread, thread_spans));
            }
            // For each changed name, the mark of its last change.
            let mut since: HashMap<usize, u64> = HashMap::new();
            let changes = &self.history.threads[thread].changes;
            for change in changes.iter().take(best.changes) {
                for (name, value) in &change.effects {
                    now[*name] = *value;
                    since.insert(*name, change.begun);
                }
            }
            for name in names {
                if !self.may_be(*name, now[*name]) {
                    self.wrong_name(*name, now[*name], since.get(name).copied());
                }
            }
        }
        if all_fit {
            self.one_moment(&spans);
        }
        self.links(&now);
        self.contents(&now);
    }

    /// Returns the number of changes with which the fewest names are wrong, the latest on a tie;
    /// and the times at which no name is wrong.
    fn fit(&self, thread: usize, names: &[usize]) -> (Fit, Vec<Span>) {
        let thread = &self.history.threads[thread];
        let value = |name: &usize| (*name, self.history.names[*name].base);
        let mut now: HashMap<usize, Value> = names.iter().map(value).collect();
        let is_wrong = |(name, value): (&usize, &Value)| !self.may_be(*name, *value);
        let mut count = now.iter().filter(|pair| is_wrong(*pair)).count();
        let mut best = Fit {
            changes: 0,
            wrong: usize::MAX,
        };
        let mut spans = Vec::new();
        let mut begun = thread.base_begun;
        for changes in 0..=thread.changes.len() {
            if let Some(change) = changes.checked_sub(1).map(|last| &thread.changes[last]) {
                for (name, value) in &change.effects {
                    count += usize::from(is_wrong((name, value)));
                    if let Some(before) = now.insert(*name, *value) {
                        count -= usize::from(is_wrong((name, &before)));
                    }
                }
                begun = change.begun;
            }
            if count > best.wrong {
                continue;
            }
            // A file without a label fits many names; its links tell which.
            let links = self.wrong_links(names.iter().map(|name| (*name, now[name])));
            let wrong = count + links.len();
            if wrong <= best.wrong {
                best = Fit { changes, wrong };
            }
            if wrong == 0 {
                let end = thread.changes.get(changes).and_then(|next| next.ended);
                spans.push(Span::new(begun, end));
            }
        }
        (best, spans)
    }

    fn wrong_name(&mut self, name: usize, value: Value, since: Option<u64>) {
        let name_found = self.found[name];
        let inode = name_found.and_then(|entry| self.inodes.get(&entry.inode));
        // The right file by its label, or a file without a label: its content is at fault, and gets
        // a violation of its own.
        if let (Value::File(file), Some(inode)) = (value, inode)
            && inode.found.claims.is_none_or(|claims| claims == file)
        {
            return;
        }
        let found = match (name_found, inode.and_then(|inode| inode.found.claims)) {
            (None, _) => "nothing".to_owned(),
            (Some(_), Some(file)) => format!("file {file}"),
            (Some(entry), None) => match entry.kind {
                Type::Dir => "a directory".to_owned(),
                Type::File => "a file without data".to_owned(),
                Type::Other => "something else".to_owned(),
            },
        };
        let kind = match (value, name_found) {
            (_, None) => Kind::NameLost,
            (Value::Absent, Some(_)) => Kind::NameBack,
            _ => Kind::NameWrong,
        };
        let expected = match value {
            Value::Absent => "nothing".to_owned(),
            Value::Dir => "a directory".to_owned(),
            Value::File(file) => format!("file {file}"),
        };
        let history = &self.history.names[name];
        let (path, ack) = (history.path.clone(), history.base_ack);
        let promised = since.is_none();
        let expected = match (since, ack) {
            (Some(since), _) => format!("{expected} since mark {since}"),
            (None, Some(_)) => format!("{expected} since mark {}", history.base_begun),
            (None, None) => expected,
        };
        self.complain(kind, &path, expected, found, ack.filter(|_| promised));
    }

    fn one_moment(&mut self, spans: &[(usize, Vec<Span>)]) {
        let Some((moment, late)) = moments(spans) else {
            return;
        };
        for (thread, spans) in late {
            let thread_spans: Vec<_> = spans.iter().map(ToString::to_string).collect();
            let ack = self.history.threads[thread].base_ack;
            self.complain(
                Kind::Moments,
                &format!("names of thread {thread}"),
                format!("all names as of one moment, {moment}"),
                format!("those of {}", thread_spans.join(" or ")),
                ack,
            );
        }
    }

    /// Returns the names whose links are wrong, each with what was expected: names of one file must
    /// lead to one inode, names of two files to two.
    fn wrong_links(&self, names: impl Iterator<Item = (usize, Value)>) -> Vec<(usize, String)> {
        let mut inode_of: HashMap<u32, (u64, usize)> = HashMap::new();
        let mut file_of: HashMap<u64, (u32, usize)> = HashMap::new();
        let mut wrong = Vec::new();
        for (name, value) in names {
            let (Value::File(file), Some(entry)) = (value, self.found[name]) else {
                continue;
            };
            if entry.kind != Type::File || !self.may_be(name, value) {
                continue;
            }
            let (inode, first) = *inode_of.entry(file).or_insert((entry.inode, name));
            if inode != entry.inode {
                wrong.push((name, format!("the inode of {}", self.path(first))));
            }
            let (other, first) = *file_of.entry(entry.inode).or_insert((file, name));
            if other != file {
                wrong.push((name, format!("a different inode from {}", self.path(first))));
            }
        }
        wrong
    }

    /// Checks that names lead to the right inodes, and that every inode counts its names.
    fn links(&mut self, now: &[Value]) {
        let wrong = self.wrong_links(now.iter().copied().enumerate());
        for (name, expected) in wrong {
            let inode = self.found[name].map_or(0, |entry| entry.inode);
            let path = self.path(name).to_owned();
            self.complain(Kind::Links, &path, expected, format!("inode {inode}"), None);
        }
        for entry in self.entries {
            let counted = self.inodes.get(&entry.inode).map(|inode| inode.names);
            if entry.kind == Type::File && counted != Some(entry.links) {
                let expected = format!("{} names", counted.unwrap_or(0));
                let found = format!("a link count of {}", entry.links);
                self.complain(Kind::Links, &entry.path, expected, found, None);
            }
        }
    }

    fn path(&self, name: usize) -> &str {
        &self.history.names[name].path
    }

    /// Judges each file once, under the first of its names.
    fn contents(&mut self, now: &[Value]) {
        let mut judged = std::collections::HashSet::new();
        for (name, value) in now.iter().enumerate() {
            let (Value::File(file), Some(entry)) = (*value, self.found[name]) else {
                continue;
            };
            let Some(inode) = self.inodes.get(&entry.inode).filter(|inode| inode.readable) else {
                continue;
            };
            let is_it = inode.found.claims.is_none_or(|claims| claims == file)
                || self.mode == DataMode::Writeback;
            if !is_it || !judged.insert((file, entry.inode)) {
                continue;
            }
            if let Some(judge) = self.judge(file) {
                let wrong = judge.judge(&entry.path, &inode.found);
                self.violations.extend(wrong);
            }
        }
    }
}
