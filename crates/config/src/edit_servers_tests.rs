//! Servers written into a file and taken out of it, in each shape that people give it.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::server_package::PackageSource;
use std::fs;

fn server(name: &str) -> NewServer {
    NewServer {
        name: name.to_owned(),
        place: ServerPlace::Program(vec!["npx".to_owned(), "a b".to_owned()]),
        env: Vec::new(),
        hosts: Vec::new(),
        project: ProjectAccess::Reads,
        enabled: None,
        disabled: Vec::new(),
        start_sec: None,
        call_sec: None,
        package: None,
    }
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    fs::write(&file, text).unwrap();
    (dir, file)
}

#[test]
fn a_server_comes_last_and_all_else_stays() {
    let new = "[mcp.new]\ncommand = [\"npx\", \"a b\"]\n";
    for (old, before) in [
        ("", ""),
        ("# mine\n[net]\nmode = \"off\" # why\n", "# mine\n[net]\nmode = \"off\" # why\n\n"),
        ("[net]\nmode = \"off\"\n# the end\n", "[net]\nmode = \"off\"\n# the end\n\n"),
        (
            "[mcp.a]\ncommand = \"x\"\n\n# other\n[ui]\nview = \"full\"\n",
            "[mcp.a]\ncommand = \"x\"\n\n# other\n[ui]\nview = \"full\"\n\n",
        ),
        ("mcp.a.command = \"x\"\n", "mcp.a.command = \"x\"\n\n"),
    ] {
        let (_dir, file) = file(old);
        let lines = add_servers(&file, &[server("new")]).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{before}{new}"));
        let line = text.lines().position(|line| line == "[mcp.new]").unwrap() + 1;
        assert_eq!(lines, [u32::try_from(line).unwrap()], "{text}");
        remove_server(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().trim_end(), old.trim_end(), "and back");
    }
}

#[test]
fn all_fields_are_read_as_they_are_written() {
    let (_dir, file) = file("");
    let written = NewServer {
        env: vec![("A".to_owned(), "${B:-\"c\"}".to_owned())],
        hosts: vec!["docs.rs".to_owned()],
        project: ProjectAccess::Writes,
        enabled: Some(vec!["a".to_owned()]),
        disabled: vec!["b".to_owned()],
        start_sec: Some(1.5),
        call_sec: Some(7.0),
        ..server("one")
    };
    add_servers(&file, &[written.clone(), server("two")]).unwrap();
    let read = parsed(&file, &fs::read_to_string(&file).unwrap()).unwrap();
    let one = read.iter().find(|server| server.name == "one").unwrap();
    assert_eq!((read.len(), &one.place, &one.env), (2, &written.place, &written.env));
    assert_eq!((one.project, one.start_ms, one.call_ms), (ProjectAccess::Writes, 1500, 7000));
    assert_eq!((one.enabled.clone(), &one.disabled), (written.enabled.clone(), &written.disabled));
    assert_eq!(one.hosts.len(), 1);
    assert!(written.text().starts_with("[mcp.one]\ncommand"), "{}", written.text());
}

#[test]
fn a_server_goes_with_the_comment_right_above_it_alone() {
    for (old, new) in [
        (
            "# about the file\n\n# about a\n[mcp.a]\ncommand = \"x\" # why\n\n# about net\n[net]\nmode = \"off\"\n",
            "# about the file\n\n# about net\n[net]\nmode = \"off\"\n",
        ),
        (
            "[net]\nmode = \"off\"\n\n# apart\n\n[mcp.a]\ncommand = \"x\"\n[mcp.a.env]\nA = \"1\"\n# end\n",
            "[net]\nmode = \"off\"\n\n# apart\n# end\n",
        ),
        (
            "[mcp]\na = { command = \"x\" }\nb = { command = \"y\" } # stays\n",
            "[mcp]\nb = { command = \"y\" } # stays\n",
        ),
        ("[mcp.a]\ncommand = \"x\"\n", ""),
    ] {
        let (_dir, file) = file(old);
        remove_server(&file, "a").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), new, "{old}");
    }
}

#[test]
fn what_cannot_be_done_leaves_the_file_as_it_was() {
    let old = "[ui]\nview = \"full\"\n[mcp.new]\ncommand = \"x\"\nenabled = false\n";
    let (_dir, file) = file(old);
    let bad_host = NewServer { hosts: vec!["no host".to_owned()], ..server("b") };
    for (result, words) in [
        (add_servers(&file, &[server("ok"), server("new")]).map(drop), ":3 has a server new"),
        (add_servers(&file, &[server("a__b")]).map(drop), "single `_`"),
        (add_servers(&file, &[bad_host]).map(drop), "hosts"),
        (remove_server(&file, "other").map(drop), "has no server other"),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), old);
    }
    assert_eq!(server_line(&file, "new").unwrap(), Some(3));
    remove_server(&file, "new").unwrap();
    assert_eq!(server_line(&file, "new").unwrap(), None);
    assert_eq!(fs::read_to_string(&file).unwrap(), "[ui]\nview = \"full\"\n", "the control");
}

#[test]
fn a_server_with_an_address_is_written_with_its_headers() {
    let header = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let written = NewServer {
        place: ServerPlace::Url("https://x.example/mcp".to_owned()),
        env: vec![header("X-Key", "${KEY}"), header("Authorization", "Bearer ${T}")],
        project: ProjectAccess::Reads,
        ..server("far")
    };
    let text = written.text();
    assert!(text.contains("headers = ") && !text.contains("command"), "{text}");
    let read = &parsed(Path::new("f"), &text).unwrap()[0];
    assert_eq!(read.place, written.place);
    let texts: Vec<&str> = read.env.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["Authorization: Bearer ${T}", "X-Key: ${KEY}"]);
}

#[test]
fn an_installed_command_takes_the_place_of_the_old_one_and_all_else_stays() {
    let package = ServerPackage {
        source: PackageSource::Npm,
        name: "@a/b".to_owned(),
        version: "1.2.3".to_owned(),
        lock: ServerPackage::digest(b"lock"),
    };
    let command = ["/store/b".to_owned(), "a b".to_owned()];
    let fields = format!(
        "{{ from = \"npm\", name = \"@a/b\", version = \"1.2.3\", lock = \"{}\" }}",
        package.lock
    );
    for (old, new) in [
        (
            "# mine\n[mcp.a]\ncommand = \"npx\" # why\nargs = [\"b\"]\nwrite = true\n\n[net]\nmode = \"off\"\n",
            "# mine\n[mcp.a]\ncommand = [\"/store/b\", \"a b\"] # why\nwrite = true\npackage = FIELDS\n\n[net]\nmode = \"off\"\n",
        ),
        (
            "[mcp]\na = { command = [\"npx\", \"b\"] }\nb = { command = \"y\" } # stays\n",
            "[mcp]\na = { command = [\"/store/b\", \"a b\"] , package = FIELDS }\nb = { command = \"y\" } # stays\n",
        ),
    ] {
        let (_dir, file) = file(old);
        for _ in 0..2 {
            install_server(&file, "a", (&command, &package)).unwrap();
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(text, new.replace("FIELDS", &fields), "and again");
        }
        let server = server_in(&file, "a").unwrap().unwrap();
        assert_eq!((server.place.words(), server.package), (&command[..], Some(package.clone())));
        let missing = install_server(&file, "c", (&command, &package)).unwrap_err();
        assert!(matches!(missing, EditServersError::Missing { .. }), "{missing}");
        assert_eq!(server_in(&file, "c").unwrap(), None);
    }
    let (_dir, file) = file("");
    add_servers(&file, &[NewServer { package: Some(package.clone()), ..server("new") }]).unwrap();
    assert_eq!(server_in(&file, "new").unwrap().unwrap().package, Some(package));
}
