//! Files as people write them. `broken/` has files with one mistake each: `places.txt` has the place and the key
//! that the message must name. `golden/` has sound files: `NAME.rows` has the values and their origins.
//!
//! With `RECORD=1` the test writes `places.txt` and `*.rows` anew.
#![allow(clippy::unwrap_used)]

use config::{Config, ConfigError, ConfigWarning, SourceLine, Sources, Trust, TrustStore};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The texts of a configuration, by the file that each is written to.
#[derive(Default)]
struct Files<'a> {
    managed: &'a str,
    user: &'a str,
    project: &'a str,
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn read(name: &str) -> String {
    fs::read_to_string(data().join(name)).unwrap()
}

/// Loads these files from a directory of their own.
fn load(dir: &TempDir, files: &Files<'_>, home: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let project = dir.path().join("project");
    fs::create_dir_all(project.join(".agentd")).unwrap();
    let written = [
        ("managed.toml", files.managed),
        ("user.toml", files.user),
        ("project/.agentd/config.toml", files.project),
    ];
    for (name, text) in written.iter().filter(|(_, text)| !text.is_empty()) {
        fs::write(dir.path().join(name), text).unwrap();
    }
    Config::load(&Sources {
        managed: dir.path().join("managed.toml"),
        user: Some(dir.path().join("user.toml")),
        project,
        environment: home.iter().copied().collect(),
        flags: Vec::new(),
        trust: Trust::AsRecorded(TrustStore::at(dir.path().join("trust"))),
        plugin_trust: TrustStore::at(dir.path().join("trust")),
        claude_rules: |text, _| Ok(vec![text.to_lowercase()]),
    })
}

/// The place of an error, and the key that it names.
#[allow(clippy::wildcard_enum_match_arm)]
fn place_of(error: &ConfigError) -> (String, String) {
    let (place, key): (&SourceLine, &str) = match error {
        ConfigError::UnknownKey { place, key, .. }
        | ConfigError::Misplaced { place, key, .. }
        | ConfigError::BadValue { place, key, .. } => (place, key),
        ConfigError::Syntax { place, .. } => (place, "-"),
        other => panic!("{other}"),
    };
    let said = error.to_string();
    assert!(said.starts_with(&format!("{place}: ")), "the message begins with its place: {said}");
    assert!(key == "-" || said.contains(&format!("`{key}`")), "{said}");
    (place.to_string(), key.to_owned())
}

/// The expected text of a file, which `RECORD=1` writes anew.
fn assert_recorded(name: &str, found: &str) {
    if std::env::var_os("RECORD").is_some() {
        fs::write(data().join(name), found).unwrap();
    }
    let (found, wanted): (Vec<&str>, String) = (found.lines().collect(), read(name));
    for line in wanted.lines() {
        assert!(found.contains(&line), "{name}: {line}");
    }
    assert_eq!(found.len(), wanted.lines().count(), "{name}: {found:#?}");
}

#[test]
fn each_mistake_is_named_with_its_place_and_its_key() {
    let mut names: Vec<String> = fs::read_dir(data().join("broken"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert!(names.len() >= 20, "{names:?}");
    let mut found = String::new();
    for name in &names {
        let dir = tempfile::tempdir().unwrap();
        let text = read(&format!("broken/{name}"));
        let is_project = name.contains("-project-");
        let files = Files {
            managed: match name.contains("-managed") {
                true => "permissions.mode = \"ask\"\nnet.mode = \"off\"\nbudget.rounds = 5\n",
                false => "",
            },
            user: if is_project { "" } else { &text },
            project: if is_project { &text } else { "" },
        };
        let mut lines: Vec<(&str, String, String)> = Vec::new();
        match load(&dir, &files, &[]) {
            Err(error) => {
                let (place, key) = place_of(&error);
                lines.push(("error", place, key));
            }
            Ok(config) => {
                lines.extend(config.warnings.into_iter().map(
                    |ConfigWarning { origin, key, .. }| {
                        ("warning", format!("{}:{}", origin.file, origin.line), key)
                    },
                ));
            }
        }
        assert!(!lines.is_empty(), "{name} is sound");
        for (what, place, key) in lines {
            let base = format!("{}/", dir.path().display());
            writeln!(found, "{name} {what} {} {key}", place.replace(&base, "")).unwrap();
        }
    }
    assert_recorded("broken/places.txt", &found);
}

#[test]
fn sound_files_load_to_the_same_values() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config");
    let shipped = |name: &str| fs::read_to_string(config.join(name)).unwrap();
    let own = |name: &str| read(&format!("golden/{name}.toml"));
    for (name, managed, user, project) in [
        ("none", String::new(), String::new(), String::new()),
        ("full", String::new(), own("full"), String::new()),
        ("models", String::new(), own("models"), String::new()),
        ("layers", own("managed"), own("layers"), own("project")),
        ("init", String::new(), shipped("init.toml"), String::new()),
        ("examples", String::new(), shipped("examples.toml"), String::new()),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let files = Files { managed: &managed, user: &user, project: &project };
        let config = load(&dir, &files, &[("HOME", "/home/ann")]).unwrap();
        if let Some(dumps) = std::env::var_os("DUMPS") {
            let dump = format!("{config:#?}").replace(&dir.path().display().to_string(), "");
            fs::write(Path::new(&dumps).join(name), dump).unwrap();
        }
        let rows = config.rows.iter();
        let rows: String =
            rows.map(|row| format!("{} = {}    # {}\n", row.key, row.value, row.origin)).collect();
        let warnings: String =
            config.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
        let base = format!("{}/", dir.path().display());
        let found = format!("{rows}{warnings}").replace(&base, "");
        assert_recorded(&format!("golden/{name}.rows"), &found);
    }
}
