//! Images of records: the journal's line holds a reference, a file beside it the bytes.

use journal::{Digest, ImageBytes, ImageRecord, Journal, JournalRecord};
use std::fs;
use std::path::Path;

/// Not text, and longer than what stays in a line.
fn bytes() -> Vec<u8> {
    (0..200_000_u32).map(|n| (n % 251) as u8 | 0x80).collect()
}

fn shown(bytes: &[u8]) -> JournalRecord {
    let mut record = super::sample::result(1, "[image]");
    let JournalRecord::Result { images, .. } = &mut record else { unreachable!() };
    images.push(ImageRecord {
        digest: Digest::of(bytes),
        bytes: bytes.len() as u64,
        name: "shot.png".to_owned(),
        media: "image/png".to_owned(),
        width: 3,
        height: 2,
        data: ImageBytes(Some(bytes.into())),
    });
    record
}

fn session(dir: &Path) -> Journal {
    let mut journal = Journal::create(dir, super::sample::header("a")).unwrap();
    journal.append(&shown(&bytes())).unwrap();
    journal
}

fn references(session: &Path) -> Vec<ImageRecord> {
    let records = journal::read(session).unwrap().map(|entry| entry.unwrap().record);
    records.flat_map(|record| record.images().to_vec()).collect()
}

#[test]
fn the_line_has_the_reference_and_a_file_the_bytes() {
    let dir = tempfile::tempdir().unwrap();
    drop(session(dir.path()));
    let session = dir.path().join("a");
    let lines = fs::read(session.join("journal.jsonl")).unwrap();
    assert!(lines.len() < 2_000, "{}", lines.len());
    let [image] = references(&session).try_into().unwrap();
    assert_eq!((image.digest, image.bytes), (Digest::of(&bytes()), 200_000));
    assert_eq!(image.data, ImageBytes(None));
    assert_eq!(journal::image(&session, image.digest).unwrap(), bytes());
}

#[test]
fn a_fork_has_a_copy_of_the_bytes() {
    let dir = tempfile::tempdir().unwrap();
    drop(session(dir.path()));
    journal::fork(dir.path(), ("a", "b"), u64::MAX, |_| Vec::new()).unwrap();
    fs::remove_dir_all(dir.path().join("a")).unwrap();
    let session = dir.path().join("b");
    let [image] = references(&session).try_into().unwrap();
    assert_eq!(journal::image(&session, image.digest).unwrap(), bytes());
}

#[test]
fn a_session_without_an_image_s_bytes_goes_on_and_the_loss_is_known() {
    let dir = tempfile::tempdir().unwrap();
    drop(session(dir.path()));
    let session = dir.path().join("a");
    let file = session.join("blobs").join(Digest::of(&bytes()).to_string());
    fs::write(&file, "other").unwrap();
    let digest = references(&session)[0].digest;
    assert!(journal::image(&session, digest).is_err());
    drop(Journal::open(&session).unwrap());
    journal::fork(dir.path(), ("a", "b"), u64::MAX, |_| Vec::new()).unwrap();
    assert!(journal::image(&dir.path().join("b"), digest).is_err());
    drop(Journal::open(&dir.path().join("b")).unwrap());
}
