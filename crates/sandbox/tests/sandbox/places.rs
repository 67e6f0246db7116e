//! Odd places to work in: each has a stated behaviour, never a panic and never less cage in silence.

use super::yard::{TIERS, Told, Yard};
use std::time::Duration;

#[test]
fn a_project_that_is_the_home_is_granted_and_nothing_beside_it() {
    for tier in TIERS {
        let yard = Yard::new();
        let home = yard.home.to_str().unwrap();
        let script =
            format!("cat .secret; echo; echo x > new; echo x >> {}", yard.canary.display());
        let told = yard.cage(tier, &["project", home], &["sh", "-c", &script]);
        assert_eq!(
            told.in_tier(tier).printed(),
            super::yard::SECRET,
            "it is the project: {told:?}"
        );
        let said = |told: &Told| {
            told.all("limit").iter().any(|limit| limit.contains("keys and passwords"))
        };
        assert!(said(&told) && !said(&yard.shell(tier, ":")), "{told:?}");
        assert!(yard.home.join("new").exists());
        yard.canary_is_untouched();
    }
}

/// Keys in the project, a link to some elsewhere, and a place that is not there.
fn keys_in(yard: &Yard) -> Vec<String> {
    let at = |name: &str| yard.project.join(name);
    std::fs::create_dir(at(".ssh")).unwrap();
    std::fs::write(at(".ssh/id"), "key-words").unwrap();
    std::fs::write(at(".netrc"), "pass-words").unwrap();
    std::os::unix::fs::symlink("elsewhere", at(".aws")).unwrap();
    let named = [".ssh", ".netrc", ".aws", ".kube"].map(|name| at(name).display().to_string());
    named.into_iter().flat_map(|path| ["key".to_owned(), path]).collect()
}

#[test]
fn keys_in_the_project_are_taken_out_where_the_tier_can_and_said_where_it_cannot() {
    let script = "cat .ssh/id .netrc; echo x > .ssh/new; echo on > seen; cat seen; mv .ssh away";
    for tier in TIERS {
        let yard = Yard::new();
        let keys = keys_in(&yard);
        let options: Vec<&str> = keys.iter().map(String::as_str).collect();
        let told = yard.cage(tier, &options, &["sh", "-c", script]);
        let read = told.in_tier(tier).printed();
        assert_eq!(
            read.contains("key-words") || read.contains("pass-words"),
            tier == "b",
            "{told:?}"
        );
        assert!(read.contains("on"), "the control: {told:?}");
        let stays =
            yard.project.join(".ssh/id").exists() && !yard.project.join(".ssh/new").exists();
        assert_eq!(stays, tier == "a", "{told:?}");
        let said = told.all("limit");
        let says = |words: &str| {
            let of = |limit: &&&str| limit.contains(words) && limit.contains("/.netrc");
            said.iter()
                .find(of)
                .is_some_and(|limit| !limit.contains(".aws") && !limit.contains(".kube"))
        };
        assert_eq!(
            (says("are hidden"), says("can read and write them")),
            (tier == "a", tier == "b"),
            "{said:?}"
        );
    }
}

#[test]
fn a_project_that_lies_where_keys_are_kept_is_granted_and_that_is_said() {
    for tier in TIERS {
        let yard = Yard::new();
        let above = yard.project.parent().unwrap().to_str().unwrap();
        let told = yard.cage(tier, &["key", above], &["sh", "-c", "echo on > seen; cat seen"]);
        assert_eq!(told.in_tier(tier).printed(), "on", "{told:?}");
        let said = told.all("limit").into_iter().find(|limit| limit.contains("Keys are kept"));
        let project = yard.project.display().to_string();
        assert!(said.is_some_and(|limit| limit.contains(&project)), "{told:?}");
    }
}

#[test]
fn a_tool_that_locks_itself_says_which_keys_it_can_read() {
    let yard = Yard::new();
    let file = yard.project.join(".netrc");
    let act = ["read", file.to_str().unwrap()];
    let plain = yard.entered_with("query", &[], &act);
    assert!(plain.all("limit").iter().all(|limit| !limit.contains("Keys are")), "{plain:?}");
    let keys = keys_in(&yard);
    let options: Vec<&str> = keys.iter().map(String::as_str).collect();
    for (profile, says) in [("query", true), ("mutate", true), ("web", false)] {
        let told = yard.entered_with(profile, &options, &act);
        let named =
            |limit: &&str| limit.contains("can read and write them") && limit.contains("/.ssh");
        assert_eq!(told.all("limit").into_iter().any(|limit| named(&limit)), says, "{told:?}");
        assert_eq!(told.one("read").contains("pass-words"), says, "as it says: {told:?}");
    }
}

#[test]
fn a_project_inside_the_home_opens_nothing_beside_it() {
    for tier in TIERS {
        let yard = Yard::new();
        let project = yard.home.join("work");
        std::fs::create_dir(&project).unwrap();
        let script = "echo x > new && cat new; cat ../.secret; echo x > ../beside; ls ..";
        let options = ["project", project.to_str().unwrap()];
        let told = yard.cage(tier, &options, &["sh", "-c", script]);
        assert_eq!(told.in_tier(tier).one("exit") == "0", tier == "a", "{told:?}");
        let said = told.printed();
        assert!(said.starts_with('x') && !said.contains(super::yard::SECRET), "{told:?}");
        assert!(project.join("new").exists(), "the project itself is granted");
        assert!(!yard.home.join("beside").exists(), "{told:?}");
    }
}

#[test]
fn without_a_home_nothing_of_it_is_granted() {
    for tier in TIERS {
        let yard = Yard::new();
        std::fs::create_dir(yard.home.join(".cargo")).unwrap();
        std::fs::write(yard.home.join(".cargo/env"), "mine").unwrap();
        let script = format!("cat {}/.cargo/env; echo ran", yard.home.display());
        let told = yard.cage(tier, &["home", "unset"], &["sh", "-c", &script]);
        assert_eq!(told.in_tier(tier).printed(), "ran", "{told:?}");
        let told = yard.cage(tier, &[], &["sh", "-c", &script]);
        assert_eq!(told.printed(), "mineran", "the control");
    }
}

#[test]
fn tool_chains_are_found_where_the_person_moved_them() {
    for tier in TIERS {
        let yard = Yard::new();
        let moved = yard.root.join("rust");
        std::fs::create_dir(&moved).unwrap();
        std::fs::write(moved.join("settings.toml"), "chain").unwrap();
        let moved = moved.to_str().unwrap();
        let script = format!("cat {moved}/settings.toml; echo x > {moved}/new");
        let told = yard.cage(tier, &["rustup-home", moved], &["sh", "-c", &script]);
        assert_eq!(told.in_tier(tier).printed(), "chain", "{told:?}");
        assert_eq!(told.all("err").len(), 1, "not to write: {told:?}");
        assert_eq!(yard.shell(tier, &script).printed(), "", "the control: not by itself");
    }
}

#[test]
fn a_project_that_vanishes_in_mid_call_ends_no_runner() {
    for tier in TIERS {
        let yard = Yard::new();
        let script = ": > begun; sleep 0.5; ls; echo x > late; echo end";
        let runner = yard.runner(tier, &[], &["sh", "-c", script]);
        let mut runner = { runner };
        runner.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = runner.spawn().unwrap();
        while !yard.project.join("begun").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::remove_dir_all(&yard.project).unwrap();
        let told = Told::from(&child.wait_with_output().unwrap());
        assert_eq!(told.in_tier(tier).one("exit"), "0", "{told:?}");
        assert_eq!(told.printed(), "end");
        assert!(!yard.project.exists(), "it is not made again");
    }
}

#[test]
fn inside_another_cage_there_is_a_lower_one_or_none() {
    for outer in TIERS {
        for inner in TIERS {
            let yard = Yard::new();
            let canary = yard.canary.display();
            let script = format!("echo ran; echo x >> {canary}");
            let runner = yard.runner(inner, &[], &["sh", "-c", &script]);
            let words: Vec<&str> = runner.get_args().map(|word| word.to_str().unwrap()).collect();
            let program = [&[yard.inside.to_str().unwrap()], words.as_slice()].concat();
            let told = yard.cage(outer, &[], &program);
            let said = told.printed();
            let stands = said.contains("tier: B") && said.contains("out: ran");
            let refused = said.contains("uncaged: ") && !said.contains("out: ");
            assert!(stands || refused, "{inner} in {outer}: {told:?}");
            assert!(!said.contains("tier: A"), "{inner} in {outer}: {told:?}");
            yard.canary_is_untouched();
        }
    }
}

/// As those make it who keep their settings in one folder and link to them.
#[test]
fn a_link_at_a_name_that_is_taken_out_stops_no_command_and_opens_nothing() {
    for tier in TIERS {
        let yard = Yard::new();
        let (place, settings) = (yard.home.join(".npm-global"), yard.home.join("settings"));
        for folder in [&settings, &place.join("own")] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("npmrc"), "token-of-the-person").unwrap();
        }
        std::fs::write(place.join("program"), "usable").unwrap();
        for to in [settings.as_path(), std::path::Path::new("own")] {
            let _ = std::fs::remove_file(place.join("etc"));
            std::os::unix::fs::symlink(to, place.join("etc")).unwrap();
            let script = format!("cd {} && cat etc/npmrc; cat program", place.display());
            let told = yard.shell(tier, &script);
            assert_eq!(told.in_tier(tier).printed(), "usable", "{told:?}");
        }
    }
}
