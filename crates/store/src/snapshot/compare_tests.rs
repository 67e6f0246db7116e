//! Changes of a command, for any project and any change to it.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;
use protocol::call::ReadStamp;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

/// A file of a model project: content, permissions, and whether the first scan found it late.
#[derive(Debug, Clone, PartialEq)]
struct File {
    text: u8,
    mode: u32,
    proof: StampProof,
}

/// When the look before the command began.
const SINCE: i64 = 1_000;

fn seen(kind: EntryKind, mode: u32, changed: i64, inode: u64) -> TreeEntry {
    let stamp = ReadStamp { device: 1, inode, size: 1, modified: changed, changed };
    TreeEntry { kind, mode, stamp }
}

fn directory() -> TreeEntry {
    seen(EntryKind::Directory(ListingState::All), 0o755, 0, 0)
}

fn file() -> impl Strategy<Value = File> {
    let proof = prop_oneof![Just(StampProof::Settled), Just(StampProof::Racy)];
    (0..3u8, prop_oneof![Just(0o644), Just(0o755)], proof).prop_map(|(text, mode, proof)| File {
        text,
        mode,
        proof,
    })
}

fn world() -> impl Strategy<Value = BTreeMap<PathBuf, File>> {
    let path = prop_oneof!["[a-d]", "[x-z]/[a-d]"].prop_map(PathBuf::from);
    prop::collection::btree_map(path, file(), 0..8)
}

fn index(world: &BTreeMap<PathBuf, File>) -> Index {
    let mut index = Index::new();
    let folder = SnapshotEntry {
        seen: directory(),
        proof: StampProof::Settled,
        copy: StoredCopy::Rules(String::new()),
    };
    index.insert(OsString::new(), folder.clone());
    for ((path, file), inode) in world.iter().zip(1..) {
        if let Some(above) = path.parent() {
            index.insert(above.into(), folder.clone());
        }
        let seen = seen(EntryKind::File, file.mode, 500, inode);
        let copy = StoredCopy::Kept(file.text.to_string());
        index.insert(path.into(), SnapshotEntry { seen, proof: file.proof, copy });
    }
    index
}

/// The scan after the first state became the second. Unchanged files have equal stamps; so may
/// files changed within one step of the clock.
fn tree(first: &BTreeMap<PathBuf, File>, second: &BTreeMap<PathBuf, File>) -> ProjectTree {
    let before = index(first);
    let mut entries = ByPath::from([(OsString::new(), directory())]);
    for ((path, file), inode) in second.iter().zip(100..) {
        if let Some(above) = path.parent() {
            entries.insert(above.into(), directory());
        }
        let same = first.get(path).is_some_and(|was| was.mode == file.mode)
            && (first[path].text == file.text || first[path].proof == StampProof::Racy);
        let is = match same {
            true => before[path.as_os_str()].seen,
            false => seen(EntryKind::File, file.mode, 2_000, inode),
        };
        entries.insert(path.into(), is);
    }
    ProjectTree { began: 3_000, entries, rules: ByPath::new() }
}

fn changes(
    before: &Index,
    after: &ProjectTree,
    second: &BTreeMap<PathBuf, File>,
) -> Vec<(PathBuf, NameChange)> {
    let evidence = NewNameEvidence { before, since: SINCE, after, gone: HashSet::new() };
    let found = suspects(before, after).into_iter().filter_map(|path| {
        let is = after.entries.get(&path);
        let path = PathBuf::from(path);
        let now = match (second.get(&path), is) {
            (Some(file), _) => {
                CurrentFile::File { digest: Some(file.text.to_string()), mode: file.mode }
            }
            (None, Some(_)) => CurrentFile::Directory,
            (None, None) => CurrentFile::Gone,
        };
        let change = match before.get(path.as_os_str()) {
            Some(was) => known(was, is, &now),
            None => is.filter(|is| evidence.is_new(&path, is)).and_then(|_| made(&now)),
        };
        change.map(|change| (path, change))
    });
    found.collect()
}

proptest! {
    #[test]
    fn what_is_put_back_is_the_first_world(first in world(), second in world()) {
        let before = index(&first);
        let after = tree(&first, &second);
        let mut back: BTreeMap<PathBuf, (u8, u32)> =
            second.iter().map(|(path, file)| (path.clone(), (file.text, file.mode))).collect();
        for (path, change) in changes(&before, &after, &second) {
            match change {
                NameChange::Made { .. } => drop(back.remove(&path)),
                NameChange::Changed { .. } | NameChange::Mode { .. } => {
                    // Its stored copy.
                    back.insert(path.clone(), (first[&path].text, first[&path].mode));
                }
                NameChange::NotCovered(why) => panic!("{path:?}: {why}"),
            }
        }
        let want: BTreeMap<_, _> =
            first.iter().map(|(path, file)| (path.clone(), (file.text, file.mode))).collect();
        prop_assert_eq!(back, want);
    }

    #[test]
    fn what_is_as_it_was_is_no_change(world in world()) {
        let before = index(&world);
        let after = tree(&world, &world);
        prop_assert_eq!(changes(&before, &after, &world), []);
    }
}

fn evidence_of<'a>(before: &'a Index, after: &'a ProjectTree) -> NewNameEvidence<'a> {
    NewNameEvidence { before, since: SINCE, after, gone: HashSet::from([(1, 77)]) }
}

#[test]
fn a_new_name_is_made_only_where_that_is_certain() {
    let world = BTreeMap::from([(
        PathBuf::from("x/a"),
        File { text: 1, mode: 0o644, proof: StampProof::Settled },
    )]);
    let (before, after) = (index(&world), tree(&world, &world));
    let fresh = seen(EntryKind::File, 0o644, 2_000, 5);
    let path = Path::new("x/new");
    assert!(evidence_of(&before, &after).is_new(path, &fresh));
    assert!(evidence_of(&before, &after).is_new(Path::new("x/made/new"), &fresh));
    let old = seen(EntryKind::File, 0o644, 10, 5);
    assert!(!evidence_of(&before, &after).is_new(path, &old), "older than the look before");
    let moved = seen(EntryKind::File, 0o644, 10, 77);
    assert!(evidence_of(&before, &after).is_new(path, &moved), "its other name is gone");
    let mut ruled = after.clone();
    ruled.rules.insert(OsString::new(), "other rules".to_owned());
    assert!(!evidence_of(&before, &ruled).is_new(path, &fresh), "it may have been ignored");
    ruled.rules = ByPath::from([(OsString::from("x/made"), "rules of a new directory".to_owned())]);
    assert!(evidence_of(&before, &ruled).is_new(Path::new("x/made/new"), &fresh));
    let mut unlisted = before.clone();
    unlisted.get_mut(OsStr::new("x")).unwrap().seen.kind = EntryKind::Directory(ListingState::Not);
    assert!(!evidence_of(&unlisted, &after).is_new(path, &fresh), "nobody had looked there");
    assert!(!evidence_of(&unlisted, &after).is_new(Path::new("x/made/new"), &fresh));
}

#[test]
fn what_was_not_kept_is_never_said_to_come_back() {
    let is = seen(EntryKind::File, 0o644, 2_000, 5);
    let was = |copy| SnapshotEntry {
        seen: seen(EntryKind::File, 0o644, 10, 5),
        proof: StampProof::Settled,
        copy,
    };
    let now = CurrentFile::File { digest: Some("2".to_owned()), mode: 0o644 };
    for why in NoCopyReason::ALL {
        let change = known(&was(StoredCopy::Not(why)), Some(&is), &now);
        assert_eq!(change, Some(NameChange::NotCovered(why.text())));
        let change = known(&was(StoredCopy::Not(why)), None, &CurrentFile::Gone);
        assert_eq!(change, Some(NameChange::NotCovered(why.text())));
    }
    let kept = was(StoredCopy::Kept("1".to_owned()));
    assert!(matches!(known(&kept, None, &CurrentFile::Directory), Some(NameChange::NotCovered(_))));
    let after = ContentAfter::Something(Some(link("there")));
    let changed = Some(NameChange::Changed { after });
    assert_eq!(known(&kept, Some(&is), &CurrentFile::Link("there".to_owned())), changed);
}
