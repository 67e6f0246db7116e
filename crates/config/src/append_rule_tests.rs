//! A rule written into a file in each shape that people give it.
#![allow(clippy::unwrap_used)]

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn learned(old: &str) -> (String, u32) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    fs::write(&file, old).unwrap();
    let line = append_allow_rule(&file, "", "bash:make *").unwrap();
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["config.toml"], "nothing is left beside it");
    (fs::read_to_string(&file).unwrap(), line)
}

#[test]
fn the_rule_comes_last_and_all_else_stays() {
    for (old, new, line) in [
        ("", "[permissions]\nallow = [\n    \"bash:make *\",\n]\n", 3),
        (
            "# mine\n[net]\nmode = \"off\" # why\n",
            "# mine\n[net]\nmode = \"off\" # why\n\n[permissions]\nallow = [\n    \"bash:make *\",\n]\n",
            7,
        ),
        (
            "permissions.allow = [\"bash:rg *\"] # few\n",
            "permissions.allow = [\"bash:rg *\", \"bash:make *\"] # few\n",
            1,
        ),
        (
            "[permissions]\nallow = [\n  \"bash:rg *\", # look\n  # build\n  \"bash:cargo *\",  # test\n]\ndeny = []\n",
            "[permissions]\nallow = [\n  \"bash:rg *\", # look\n  # build\n  \"bash:cargo *\",  # test\n  \"bash:make *\",\n]\ndeny = []\n",
            6,
        ),
        (
            "[permissions]\nallow = [\n\t\"bash:rg *\" # look\n]\n",
            "[permissions]\nallow = [\n\t\"bash:rg *\", # look\n\t\"bash:make *\",\n]\n",
            4,
        ),
        (
            "[permissions]\nmode = \"ask\"\nallow = []\n",
            "[permissions]\nmode = \"ask\"\nallow = [\"bash:make *\"]\n",
            3,
        ),
        (
            "[permissions]\nallow = [\"bash:make *\"]\n",
            "[permissions]\nallow = [\"bash:make *\"]\n",
            2,
        ),
    ] {
        assert_eq!(learned(old), (new.to_owned(), line), "{old}");
    }
}

#[test]
fn rights_and_a_link_stay_and_what_is_missing_is_made_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (kept, link) = (dir.path().join("kept.toml"), dir.path().join("config.toml"));
    fs::write(&kept, "").unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&kept, &link).unwrap();
    append_allow_rule(&link, "", "bash:make").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&kept).unwrap().contains("bash:make"));
    assert_eq!(mode(&kept), 0o640);
    let fresh = dir.path().join("a/agentd/config.toml");
    append_allow_rule(&fresh, "rules of\na", "bash:make").unwrap();
    assert!(fs::read_to_string(&fresh).unwrap().starts_with("# rules of\n# a\n[permissions]\n"));
    assert_eq!((mode(&fresh), mode(fresh.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_file_that_cannot_be_followed_is_left_as_it_is() {
    for (old, words) in [
        ("[permissions\n", "config.toml"),
        ("permissions = 3\n", "permissions"),
        ("[permissions]\nallow = \"x\"\n", "permissions.allow"),
        ("[permisions]\n", "permisions"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        fs::write(&file, old).unwrap();
        let said = append_allow_rule(&file, "", "bash:make").unwrap_err().to_string();
        assert!(said.contains(words), "{old}: {said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), old);
    }
    let dir = tempfile::tempdir().unwrap();
    let below_a_file = dir.path().join("file/config.toml");
    fs::write(dir.path().join("file"), "").unwrap();
    let said = append_allow_rule(&below_a_file, "", "bash:make").unwrap_err().to_string();
    assert!(said.contains("cannot be written"), "{said}");
}

#[test]
fn rules_learned_at_the_same_time_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let file = &file;
            scope.spawn(move || append_allow_rule(file, "", &format!("bash:make {n}")).unwrap());
        }
    });
    let text = fs::read_to_string(&file).unwrap();
    assert!((0..8).all(|n| text.contains(&format!("\"bash:make {n}\""))), "{text}");
}
