//! Processes that lock themselves: each profile may do what it is for, and nothing else.

use super::yard::{SECRET, Yard};
use std::net::TcpListener;

const PROFILES: [&str; 8] =
    ["probe", "query", "mutate", "session", "broker", "provider", "web", "store"];

#[test]
fn each_profile_reads_and_writes_what_it_is_for() {
    let yard = Yard::new();
    let data = yard.project.join("data");
    std::fs::write(&data, "of the project").unwrap();
    let data = data.to_str().unwrap();
    let new = yard.project.join("new");
    for profile in PROFILES {
        let reads = ["probe", "query", "mutate", "store"].contains(&profile);
        let said = yard.entered(profile, &["read", data]);
        assert_eq!(said.starts_with("done"), reads, "{profile}: {said}");
        let said = yard.entered(profile, &["write", new.to_str().unwrap()]);
        assert_eq!(said.starts_with("done"), profile == "mutate", "{profile}: {said}");
        for path in [&yard.secret, &yard.canary] {
            let said = yard.entered(profile, &["read", path.to_str().unwrap()]);
            assert!(said.starts_with("EACCES") && !said.contains(SECRET), "{profile}: {said}");
        }
    }
    assert!(yard.free(&["read", data]).starts_with("done"));
}

#[test]
fn no_profile_starts_programs_or_keeps_powers() {
    let yard = Yard::new();
    for profile in PROFILES {
        let said = yard.entered(profile, &["exec", "/bin/true"]);
        assert!(!said.starts_with("done"), "{profile}: {said}");
        let said = yard.entered(profile, &["unshare"]);
        assert!(said.starts_with("EPERM"), "{profile}: {said}");
        let parent = std::process::id().to_string();
        let told = yard.entered_with(profile, &[], &["kill", &parent]);
        // A Landlock before version 6 has no say in signals, which must be told then.
        let open =
            told.all("limit").iter().any(|limit| limit.contains("does not restrict signals"));
        assert_eq!(told.one("kill").starts_with("EPERM"), !open, "{profile}: {told:?}");
    }
    assert!(yard.free(&["exec", "/bin/true"]).starts_with("done"));
}

#[test]
fn only_the_provider_and_the_web_open_connections() {
    let yard = Yard::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for profile in PROFILES {
        let said = yard.entered(profile, &["tcp", &address]);
        let may = ["provider", "web"].contains(&profile);
        assert_eq!(said.starts_with("done"), may, "{profile}: {said}");
    }
    for profile in ["provider", "web"] {
        for file in ["/etc/hosts", "/etc/resolv.conf"] {
            if std::path::Path::new(file).exists() {
                let said = yard.entered(profile, &["read", file]);
                assert!(said.starts_with("done"), "{profile} {file}: {said}");
            }
        }
        let said = yard.entered(profile, &["read", "/etc/passwd"]);
        assert!(said.starts_with("EACCES"), "{profile}: {said}");
    }
    // The store's own directories, and no other's.
    let own = yard.root.join("store");
    std::fs::create_dir(&own).unwrap();
    let own = own.join("new");
    let out = std::process::Command::new(super::yard::ATTEMPT)
        .args(["enter", "profile", "store", "project", yard.project.to_str().unwrap()])
        .args([
            "added",
            own.parent().unwrap().to_str().unwrap(),
            "temp",
            yard.temp.to_str().unwrap(),
        ])
        .args(["--", "write", own.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(super::yard::Told::from(&out).one("write").starts_with("done"), "{out:?}");
}

#[test]
fn a_process_does_not_lock_itself_into_the_profile_of_commands() {
    let yard = Yard::new();
    let out = std::process::Command::new(super::yard::ATTEMPT)
        .args(["enter", "profile", "command", "--", "effective"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains("for commands"));
    drop(yard);
}

#[test]
fn the_host_probe_ends_in_a_tier_and_names_every_step() {
    let out = std::process::Command::new(super::yard::ATTEMPT).arg("host").output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let told = super::yard::Told::from(&out);
    assert_eq!(told.one("tier"), "A", "these tests need both tiers: {text}");
    assert!(told.all("step").len() > 20, "{text}");
}
