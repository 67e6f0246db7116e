//! `read`.

use crate::project::{Project, fifo, is_root};
use protocol::call::FileEffect;
use serde_json::json;
use std::io::{Seek, SeekFrom, Write};

#[test]
fn lines_with_their_numbers() {
    let project = Project::with(&[("a.txt", "one\n\n\tthree\n")]);
    let report = project.run("read", json!({"path": "a.txt"}));
    assert_eq!(report.result.text, "1\tone\n2\t\n3\t\tthree\n");
    assert_eq!(report.result.summary, "a.txt: 3 lines");
    assert_eq!(
        report.effects,
        [FileEffect::Read(project.path("a.txt").to_str().unwrap().to_owned())]
    );
    assert_eq!(project.ok("read", json!({"path": "a.txt", "raw": true})), "one\n\n\tthree\n");
    assert_eq!(project.ok("read_file", json!({"path": "./a.txt"})), "one\n\n\tthree\n");
}

#[test]
fn windows() {
    let text: String = (1..=5000).map(|i| format!("line {i}\n")).collect();
    let project = Project::with(&[("long", &text), ("small", "a\nb\nc")]);
    for (input, expected) in [
        (json!({"path": "small", "offset": 2}), "2\tb\n3\tc\n[lines 2 to 3 of 3]"),
        (
            json!({"path": "small", "limit": 1}),
            "1\ta\n[lines 1 to 1 of 3; continue with offset = 2]",
        ),
        (json!({"path": "small", "offset": 3, "limit": 9}), "3\tc\n[lines 3 to 3 of 3]"),
        (json!({"path": "small", "limit": 3}), "1\ta\n2\tb\n3\tc\n"),
    ] {
        assert_eq!(project.ok("read", input.clone()), expected, "{input}");
    }
    let text = project.ok("read", json!({"path": "long"}));
    assert!(
        text.ends_with("2000\tline 2000\n[lines 1 to 2000 of 5000; continue with offset = 2001]")
    );
    for offset in [4, 1_000_000] {
        let text = project.fails("read", json!({"path": "small", "offset": offset}), "past_end");
        assert!(text.contains("has 3 lines"), "{text}");
    }
}

#[test]
fn empty_and_unfinished_files() {
    let project = Project::with(&[
        ("empty", ""),
        ("newline", "\n"),
        ("bom", "\u{feff}x\n"),
        ("crlf", "a\r\nb\r\n"),
    ]);
    assert_eq!(project.ok("read", json!({"path": "empty"})), "(the file is empty)");
    assert_eq!(project.ok("read", json!({"path": "newline"})), "1\t\n");
    assert_eq!(project.ok("read", json!({"path": "bom"})), "1\tx\n");
    assert_eq!(project.ok("read", json!({"path": "crlf"})), "1\ta\n2\tb\n");
    project.fails("read", json!({"path": "empty", "offset": 2}), "past_end");
}

#[test]
fn a_large_file_needs_a_window_and_is_not_loaded() {
    let project = Project::new();
    let line = format!("{}\n", "x".repeat(99));
    project.put("large", line.repeat(20_000).as_bytes());
    let text = project.fails("read", json!({"path": "large"}), "too_large");
    assert!(text.contains("2000000 bytes") && text.contains("offset and limit"), "{text}");
    let text = project.ok("read", json!({"path": "large", "offset": 19_999}));
    assert!(
        text.starts_with("19999\txxx") && text.ends_with("[lines 19999 to 20000 of 20000]"),
        "{text}"
    );

    // Far larger than memory would be wise: a hole of 8 GiB, then two lines.
    let mut file = std::fs::File::create(project.path("huge")).unwrap();
    file.write_all(b"first\nsecond\n").unwrap();
    file.write_all("filler\n".repeat(2_000).as_bytes()).unwrap();
    file.seek(SeekFrom::Start(8 << 30)).unwrap();
    file.write_all(b"\nlast\n").unwrap();
    drop(file);
    project.fails("read", json!({"path": "huge"}), "too_large");
    let text = project.ok("read", json!({"path": "huge", "limit": 2}));
    assert_eq!(text, "1\tfirst\n2\tsecond\n[lines 1 to 2; continue with offset = 3]");
    assert!(project.run("read", json!({"path": "huge", "limit": 2})).usage.peak_kib < 200_000);
}

#[test]
fn long_lines_and_long_results_are_cut_with_their_count() {
    let project = Project::with(&[("wide", &format!("{}\nb\n", "ü".repeat(3000)))]);
    let text = project.ok("read", json!({"path": "wide"}));
    let way_on = "[to read the rest of a cut line: offset = its number, limit = 1, column = 2001]";
    assert_eq!(
        text,
        format!("1\t{} [… line cut: 2000 more bytes]\n2\tb\n{way_on}", "ü".repeat(2000))
    );
    let rest = project.ok("read", json!({"path": "wide", "column": 2001}));
    let on = "[lines 1 to 1 of 2; continue with offset = 2]";
    assert_eq!(rest, format!("1\t{}\n{on}", "ü".repeat(1000)));
}

/// Follows the ways on that results name, until there are none, and gives all that was read.
fn read_on(project: &Project, path: &str) -> String {
    let (mut all, mut input) = (String::new(), json!({"path": path, "raw": true}));
    loop {
        let text = project.ok("read", input);
        assert!(text.chars().count() <= project.max_result_chars as usize, "{text}");
        let (body, note) = match text.rfind("\n[") {
            Some(at) => (&text[..=at], &text[at + 1..]),
            None => (text.as_str(), ""),
        };
        assert!(body.ends_with('\n'), "whole lines: {note}");
        all.push_str(body);
        let Some((_, on)) = note.split_once("continue with offset = ") else { return all };
        let offset: u64 = on.trim_end_matches(']').parse().unwrap();
        input = json!({"path": path, "raw": true, "offset": offset});
    }
}

#[test]
fn a_long_file_comes_in_whole_lines_and_each_result_says_how_to_go_on() {
    let lines = |width: usize| -> String {
        (1..=900).map(|n| format!("{n} {}\n", "ü".repeat(n % width))).collect()
    };
    let mut project = Project::with(&[("a", &lines(90)), ("b", &lines(400))]);
    let text = project.ok("read", json!({"path": "a"}));
    let last = text.lines().rev().nth(1).unwrap();
    let shown: usize = last.split('\t').next().unwrap().parse().unwrap();
    assert!(last.ends_with(&"ü".repeat(shown % 90)), "{last}");
    assert!(text.ends_with(&format!(
        "\n[lines 1 to {shown} of 900; continue with offset = {}]",
        shown + 1
    )));
    for (number, line) in (1..).zip(text.lines().take(shown)) {
        assert!(line.starts_with(&format!("{number}\t{number} ")), "nothing is left out: {line}");
    }
    let more = project.ok("read", json!({"path": "a", "offset": shown + 1, "limit": 1}));
    assert!(more.starts_with(&format!("{}\t", shown + 1)), "{more}");
    for max in [3_000, 30_000, 200_000] {
        project.max_result_chars = max;
        assert_eq!(read_on(&project, "a"), lines(90), "{max}");
        assert_eq!(read_on(&project, "b"), lines(400), "{max}");
    }
}

#[test]
fn one_line_comes_in_parts_that_lead_on() {
    let line: String = (0..60_000).map(|n| format!("{n},")).collect();
    let project = Project::with(&[("min.js", &format!("short\n{line}\r\nlast\n"))]);
    let (mut all, mut column) = (String::new(), 1);
    loop {
        let input =
            json!({"path": "min.js", "offset": 2, "limit": 1, "column": column, "raw": true});
        let text = project.ok("read", input);
        let (part, rest) = text.split_once('\n').unwrap();
        all.push_str(part.split(" [… line cut").next().unwrap());
        let Some((_, on)) = rest.split_once("column = ") else { break };
        let next = on.split(']').next().unwrap().parse().unwrap();
        assert!(next > column + 20_000, "as much as fits: {next}");
        column = next;
    }
    assert_eq!(all, line);
}

#[test]
fn text_of_utf_16_is_read_and_is_not_edited() {
    let project = Project::new();
    let text = "one\r\nzwei ü€\r\ndrei";
    let little = text.encode_utf16().flat_map(u16::to_le_bytes);
    let big = text.encode_utf16().flat_map(u16::to_be_bytes);
    project.put("little", &[0xff, 0xfe].into_iter().chain(little).collect::<Vec<u8>>());
    project.put("big", &[0xfe, 0xff].into_iter().chain(big).collect::<Vec<u8>>());
    project.put("none", &[0xff, 0xfe, 0, 0, 1, 0, 0, 0]);
    for path in ["little", "big"] {
        let note = "[the file is UTF-16 and is shown as UTF-8]";
        let read = project.ok("read", json!({"path": path}));
        assert_eq!(read, format!("1\tone\n2\tzwei ü€\n3\tdrei\n{note}"));
        let window = project.ok("read", json!({"path": path, "offset": 2, "limit": 1}));
        assert!(window.starts_with("2\tzwei ü€\n"), "{window}");
        let input = json!({"path": path, "old_string": "one", "new_string": "two"});
        assert!(project.fails("edit", input, "binary").contains("UTF-16"));
    }
    project.fails("read", json!({"path": "none"}), "binary");
}

#[test]
fn no_call_gathers_more_than_two_megabytes_whatever_its_limit() {
    let mut project = Project::with(&[("long", &"012345678\n".repeat(300_000))]);
    project.max_result_chars = 10_000_000;
    let window =
        |offset: u32| json!({"path": "long", "raw": true, "offset": offset, "limit": 300_000});
    let text = project.ok("read", window(1));
    let end = "[lines 1 to 200000 of 300000; continue with offset = 200001]";
    assert_eq!(text.len(), 2_000_000 + end.len());
    assert!(text.ends_with(end), "{}", &text[2_000_000..]);
    let rest = project.ok("read", window(200_001));
    assert!(rest.ends_with("\n[lines 200001 to 300000 of 300000]"), "the way on leads there");
}

#[test]
fn control_codes_do_nothing() {
    let project = Project::with(&[("evil", "a\u{1b}[2J\u{7}b\u{9b}31m\rc\n\u{202e}bidi\n")]);
    let text = project.ok("read", json!({"path": "evil"}));
    assert_eq!(text, "1\ta\u{241b}[2J\u{2407}b\u{fffd}31m\u{240d}c\n2\t\u{202e}bidi\n");
}

#[test]
fn what_cannot_be_read_says_why() {
    let project = Project::with(&[("dir/file", "x"), ("main.rs", "x")]);
    project.put("elf", b"\x7fELF\x02\x01\x01\0");
    project.put("picture.png", b"\x89PNG\r\n\x1a\n....");
    project.put("nul", b"text\0text");
    project.put("latin1", b"fine\ncaf\xe9\n");
    fifo(&project.path("fifo"));
    let _listener = std::os::unix::net::UnixListener::bind(project.path("socket")).unwrap();
    for (path, code, words) in [
        ("dir", "is_directory", "Use ls"),
        ("dir/", "is_directory", "Use ls"),
        ("main.rss", "not_found", "Similar names in the same directory: main.rs"),
        ("nowhere/at/all", "not_found", "ls or glob"),
        ("main.rs/x", "not_a_directory", "main.rs"),
        ("main.rs/", "not_a_directory", ""),
        ("fifo", "not_a_file", "a FIFO"),
        ("socket", "not_a_file", "a socket"),
        ("elf", "binary", "ELF"),
        ("picture.png", "bad_image", "PNG image"),
        ("nul", "binary", "binary file"),
        ("latin1", "not_utf8", "line 2"),
        ("", "invalid_arguments", "empty"),
        ("a\0b", "invalid_arguments", "NUL"),
    ] {
        let text = project.fails("read", json!({"path": path}), code);
        assert!(text.contains(words), "{path}: {text}");
    }
    let long = "x".repeat(300);
    project.fails("read", json!({"path": long}), "invalid_arguments");
    assert_eq!(
        project.ok("read", json!({"path": "latin1", "limit": 1})),
        "1\tfine\n[lines 1 to 1 of 2; continue with offset = 2]"
    );
}

#[test]
fn a_device_is_refused_unopened() {
    let mut project = Project::new();
    project.place.added.push("/dev".into());
    project.fails("read", json!({"path": "/dev/zero"}), "not_a_file");
    project.fails("read", json!({"path": "/dev/null"}), "not_a_file");
}

#[test]
fn a_file_that_the_user_may_not_read() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::with(&[("locked", "x")]);
    std::fs::set_permissions(project.path("locked"), std::fs::Permissions::from_mode(0o000))
        .unwrap();
    let input = json!({"path": "locked"});
    if is_root() {
        // Root can read it; the mode applies to other users, and the test also runs as one.
        project.ok("read", input);
    } else {
        project.fails("read", input, "permission_denied");
    }
}

#[test]
fn a_call_that_shall_end_ends() {
    let project = Project::with(&[("a", "x\n")]);
    project.cancel.request();
    let report = project.run("read", json!({"path": "a"}));
    assert_eq!(report.result.outcome, protocol::call::Outcome::Interrupted);
}
