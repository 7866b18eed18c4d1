//! Kinds of events that a tracer may be unable to see.
//!
//! Which kernel functions can be hooked differs between hosts. If a recording lacks an event, it
//! did not happen only if the tracer could have seen it.

use crate::span::SpanKind;
use std::collections::BTreeSet;

/// A kind of events that a tracer may be unable to see; it always sees syncs and commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sight {
    Opens,
    Writes,
    Closes,
    /// The moment when a sync has written its data and asks for its transaction.
    Flushes,
    /// sync and syncfs of whole file systems.
    SyncFs,
    /// Waits for metadata that a commit writes.
    WaitBuffer,
    /// Waits for a locked transaction.
    WaitLocked,
    /// Waits for space in the journal.
    WaitSpace,
}

/// The kinds that were not seen.
pub type Unseen = BTreeSet<Sight>;

impl Sight {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Opens,
        Self::Writes,
        Self::Closes,
        Self::Flushes,
        Self::SyncFs,
        Self::WaitBuffer,
        Self::WaitLocked,
        Self::WaitSpace,
    ];

    /// Returns its word in headers and JSON: that of the spans that need it.
    pub fn word(self) -> &'static str {
        let mut kinds = SpanKind::ALL.into_iter();
        let kind = kinds.find(|kind| Self::from_kind(*kind) == Some(self));
        kind.map_or("flush", SpanKind::text)
    }

    /// Returns its description for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Opens => "opens",
            Self::Writes => "writes",
            Self::Closes => "closes",
            Self::Flushes => "the data flush of syncs",
            Self::SyncFs => "sync and syncfs",
            Self::WaitBuffer => "waits for metadata that a commit writes",
            Self::WaitLocked => "waits for a locked transaction",
            Self::WaitSpace => "waits for journal space",
        }
    }

    /// Returns the sight that a kind of spans needs; `None` if a tracer always sees the kind.
    pub fn from_kind(kind: SpanKind) -> Option<Self> {
        match kind {
            SpanKind::Open => Some(Self::Opens),
            SpanKind::Write => Some(Self::Writes),
            SpanKind::Close => Some(Self::Closes),
            SpanKind::Sync => Some(Self::SyncFs),
            SpanKind::WaitBuffer => Some(Self::WaitBuffer),
            SpanKind::WaitLocked => Some(Self::WaitLocked),
            SpanKind::WaitSpace => Some(Self::WaitSpace),
            SpanKind::Task | SpanKind::Fsync | SpanKind::Fdatasync | SpanKind::Commit => None,
        }
    }

    /// Tells whether a tracer that does not see `unseen` sees spans of this kind.
    pub fn sees(unseen: &Unseen, kind: SpanKind) -> bool {
        Self::from_kind(kind).is_none_or(|sight| !unseen.contains(&sight))
    }

    pub fn is_wait(self) -> bool {
        matches!(self, Self::WaitBuffer | Self::WaitLocked | Self::WaitSpace)
    }

    /// Joins the words of some sights, as a header holds them.
    pub fn words(unseen: &Unseen) -> String {
        let words: Vec<_> = unseen.iter().map(|sight| sight.word()).collect();
        words.join(",")
    }

    /// Joins the descriptions of some sights, for people.
    pub fn texts(unseen: &Unseen) -> String {
        let mut waits = Self::ALL.into_iter().filter(|sight| sight.is_wait());
        let sees_no_wait = waits.all(|wait| unseen.contains(&wait));
        let named = unseen.iter().filter(|it| !(sees_no_wait && it.is_wait()));
        let texts = named.map(|sight| sight.text());
        let texts: Vec<_> = texts
            .chain(sees_no_wait.then_some("waits inside operations"))
            .collect();
        texts.join(", ")
    }

    /// Reverses [`Sight::words`]; words of later versions are ignored.
    pub fn parse(words: &str) -> Unseen {
        let named = |word: &str| Self::ALL.into_iter().find(|sight| sight.word() == word);
        words.split(',').filter_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_waits_have_one_name() {
        let mut unseen: Unseen = Sight::ALL.into_iter().collect();
        assert_eq!(
            Sight::texts(&unseen),
            "opens, writes, closes, the data flush of syncs, sync and syncfs, waits inside operations"
        );
        unseen.retain(|sight| sight.is_wait());
        unseen.remove(&Sight::WaitBuffer);
        assert_eq!(
            Sight::texts(&unseen),
            "waits for a locked transaction, waits for journal space"
        );
    }

    #[test]
    fn words_come_back() {
        let all: Unseen = Sight::ALL.into_iter().collect();
        assert_eq!(Sight::parse(&Sight::words(&all)), all);
        let known = Sight::parse("write,of-a-later-version,wait-space");
        assert_eq!(known, Unseen::from([Sight::Writes, Sight::WaitSpace]));
        assert_eq!(Sight::parse(""), Unseen::new());
    }

    #[test]
    fn kinds_are_called_alike() {
        for kind in SpanKind::ALL {
            let hidden: Unseen = Sight::from_kind(kind).into_iter().collect();
            assert_eq!(Sight::sees(&hidden, kind), hidden.is_empty());
            assert!(Sight::sees(&Unseen::new(), kind));
            if let Some(sight) = Sight::from_kind(kind) {
                assert_eq!(sight.word(), kind.text());
                assert_eq!(sight.is_wait(), kind.is_wait());
            }
        }
    }
}
