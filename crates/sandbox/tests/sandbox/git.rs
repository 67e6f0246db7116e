//! The cages of git's tools: nothing but git can be started in them, and a look can write nothing.

use super::yard::{TIERS, Told, Yard};
use std::path::Path;
use std::process::Command;

const BOTH: [&str; 2] = ["git", "git-look"];

/// Runs git where nothing confines it.
fn by_hand(yard: &Yard, words: &[&str]) -> String {
    let ran = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(words)
        .current_dir(&yard.project)
        .output()
        .expect("git is needed for these tests");
    assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// A yard whose project is a repository with one commit.
fn repository() -> Yard {
    let yard = Yard::new();
    std::fs::write(yard.project.join("a"), "one\n").unwrap();
    by_hand(&yard, &["init", "--quiet", "--initial-branch=main"]);
    by_hand(&yard, &["add", "a"]);
    by_hand(&yard, &["commit", "--quiet", "-m", "The first"]);
    yard
}

fn in_profile(yard: &Yard, (tier, profile): (&str, &str), program: &[&str]) -> Told {
    yard.cage(tier, &["profile", profile], program)
}

#[test]
fn no_program_but_git_is_started() {
    for tier in TIERS {
        let yard = repository();
        let script = yard.project.join("script");
        std::fs::write(&script, "#!/bin/sh\necho ran\n").unwrap();
        let chmod = Command::new("chmod").arg("+x").arg(&script).status().unwrap();
        assert!(chmod.success());
        let inside = yard.inside.to_str().unwrap();
        for program in [
            &["sh", "-c", "echo ran"][..],
            &["/bin/sh", "-c", "echo ran"],
            &["/usr/bin/env", "echo", "ran"],
            &["cat", "a"],
            &["./script"],
            &[inside, "try", "read", "a"],
        ] {
            for profile in BOTH {
                let told = in_profile(&yard, (tier, profile), program);
                assert_eq!(told.one("unstarted"), "program", "{profile} {program:?}: {told:?}");
            }
            let told = in_profile(&yard, (tier, "command"), program);
            assert!(told.all("unstarted").is_empty(), "the control: {program:?}: {told:?}");
        }
        for profile in BOTH {
            let told = in_profile(&yard, (tier, profile), &["git", "log", "--format=%s"]);
            assert_eq!(told.in_tier(tier).printed(), "The first", "{profile}: {told:?}");
        }
    }
}

#[test]
fn git_itself_starts_nothing() {
    for tier in TIERS {
        let yard = repository();
        let mark = yard.project.join("ran");
        let touch = format!("alias.trap=!touch {}", mark.display());
        let program = ["git", "-c", &touch, "trap"];
        for profile in BOTH {
            let told = in_profile(&yard, (tier, profile), &program);
            assert_ne!(told.one("exit"), "0", "{told:?}");
            assert!(!mark.exists(), "{profile} in tier {tier}");
        }
        let told = in_profile(&yard, (tier, "command"), &program);
        assert!(mark.exists(), "the control: {told:?}");
    }
}

#[test]
fn a_look_writes_nothing() {
    for tier in TIERS {
        let yard = repository();
        let head = by_hand(&yard, &["rev-parse", "HEAD"]);
        let place = yard.project.join(".git/refs/heads/second");
        let temp = format!("--work-tree={}", yard.temp.display());
        let change = ["git", "update-ref", "refs/heads/second", &head];
        let written = ["git", &temp, "checkout", "-f", "HEAD", "--", "a"];
        for program in [&change[..], &written] {
            let told = in_profile(&yard, (tier, "git-look"), program);
            assert_ne!(told.one("exit"), "0", "{told:?}");
        }
        assert!(!place.exists() && !yard.temp.join("a").exists());
        let told = in_profile(&yard, (tier, "git"), &change);
        assert!(place.exists(), "the control: {told:?}");
        let told = in_profile(&yard, (tier, "command"), &written);
        assert!(yard.temp.join("a").exists(), "the control: {told:?}");
        yard.canary_is_untouched();
    }
}

#[test]
fn settings_and_hooks_stay_as_they_are() {
    for tier in TIERS {
        let yard = repository();
        let settings = || std::fs::read_to_string(yard.project.join(".git/config")).unwrap();
        let before = settings();
        let change = ["git", "config", "core.hooksPath", "evil"];
        in_profile(&yard, (tier, "git"), &change);
        assert_eq!(settings(), before, "tier {tier}");
        in_profile(&yard, (tier, "git-look"), &change);
        assert_eq!(settings(), before, "tier {tier}");
        let options = ["profile", "git", "git", "writable"];
        let told = yard.cage(tier, &options, &change);
        assert_ne!(settings(), before, "the control: {told:?}");
    }
}

#[test]
fn the_network_is_off_whatever_is_asked() {
    for tier in TIERS {
        let yard = repository();
        let network = |profile| {
            let options = ["profile", profile, "network", "on"];
            yard.cage(tier, &options, &["git", "--version"]).one("network")
        };
        for profile in BOTH {
            assert!(network(profile).starts_with("off"), "{profile}: {}", network(profile));
        }
        assert_eq!(network("command"), "on", "the control");
    }
}

/// What these cages do not hold is said in each record, and said only of them.
#[test]
fn the_loader_is_left_and_named() {
    let loaders = [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-linux-aarch64.so.1",
        "/lib/ld-musl-x86_64.so.1",
        "/lib/ld-musl-aarch64.so.1",
    ];
    let loader = loaders.into_iter().find(|path| Path::new(path).exists()).expect("a loader");
    for tier in TIERS {
        let yard = repository();
        let inside = yard.inside.to_str().unwrap();
        let named = |told: &Told| told.all("limit").iter().any(|said| said.contains("loader"));
        for profile in BOTH {
            let program = [loader, inside, "try", "read", "a"];
            let told = in_profile(&yard, (tier, profile), &program);
            assert!(told.all("unstarted").is_empty() && named(&told), "{told:?}");
            let told = in_profile(&yard, (tier, profile), &[loader, "/bin/sh", "-c", "echo ran"]);
            assert_ne!(told.printed(), "ran", "it may not be read: {told:?}");
        }
        assert!(!named(&in_profile(&yard, (tier, "command"), &["true"])));
    }
}
