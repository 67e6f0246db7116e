//! Kernels that lack something: a refusal with its step, or a weaker claim, never silence.

use super::yard::{TIERS, Told, Yard};

#[test]
fn without_landlock_there_is_no_cage() {
    for tier in TIERS {
        for (kernel, words) in [("no-landlock", "no Landlock"), ("landlock-off", "switched off")] {
            let told = Yard::new().lacking(kernel, tier, "echo ran");
            assert_eq!(told.one("uncaged"), "landlock", "{told:?}");
            assert!(told.one("reason").contains(words), "{told:?}");
            assert!(told.all("out").is_empty());
        }
    }
}

/// Linux 5.13 to 6.1: both tiers stand, and what the kernel does not keep is kept by the filter or said.
#[test]
fn an_old_landlock_holds_a_command_and_its_losses_are_told() {
    const MOVES: &str = "from one directory to another";
    const LENGTHS: &str = "does not restrict truncation";
    let here = Yard::new().shell("b", "true").one("abi").parse::<u32>().unwrap();
    for (kernel, abi) in [("abi-1", "1"), ("abi-2", "2"), ("abi-3", "3")] {
        if abi.parse::<u32>().unwrap() > here {
            // A filter takes away and adds nothing: a kernel that old is tried as what it is.
            continue;
        }
        for tier in TIERS {
            let yard = Yard::new();
            for name in ["project/a", "project/b"] {
                std::fs::create_dir(yard.root.join(name)).unwrap();
            }
            std::fs::write(yard.project.join("a/file"), "alive").unwrap();
            std::fs::write(yard.project.join("shorter"), "alive").unwrap();
            let (attempt, canary) = (yard.inside.display(), yard.canary.display());
            let script = format!(
                "{attempt} try rename a/file b/file; {attempt} try truncate shorter; \
                 {attempt} try truncate {canary}; mv a/file b/moved && cat b/moved"
            );
            let told = yard.lacking(kernel, tier, &script);
            assert_eq!(told.in_tier(tier).one("abi"), abi);
            let says = |words: &str| told.all("limit").iter().any(|limit| limit.contains(words));
            assert_eq!(says(MOVES), abi == "1", "{kernel}, {tier}");
            assert_eq!(says(LENGTHS), abi != "3" && tier == "b", "{kernel}, {tier}");
            let printed = told.printed();
            let moved = if abi == "1" { "rename: EXDEV" } else { "rename: done" };
            assert!(printed.contains(moved), "{kernel}, {tier}: {told:?}");
            assert!(printed.contains("truncate: done"), "{kernel}, {tier}: {told:?}");
            // `mv` has nothing left to move where the rename succeeded.
            assert_eq!(printed.contains("alive"), abi == "1", "{kernel}, {tier}: {told:?}");
            let outside = if tier == "a" { "truncate: ENOENT" } else { "truncate: EACCES" };
            assert!(printed.contains(outside), "{kernel}, {tier}: {told:?}");
            let kind = if tier == "b" && abi != "3" { "Refused" } else { "Predicted" };
            let told_so = format!("{kind} truncate");
            assert!(told.all("refusal").iter().any(|line| line.starts_with(&told_so)), "{told:?}");
            assert_eq!(std::fs::read_to_string(&yard.canary).unwrap(), "untouched");
        }
    }
}

/// Without a listener nobody can carry a truncation out, so it is refused and that is said.
#[test]
fn an_old_landlock_without_a_listener_refuses_truncation_everywhere() {
    let yard = Yard::new();
    std::fs::write(yard.project.join("shorter"), "alive").unwrap();
    let script = format!(
        "{0} try truncate shorter; {0} try truncate {1}; : >shorter",
        yard.inside.display(),
        yard.canary.display()
    );
    let told = yard.lacking("no-listener under abi-2", "b", &script);
    assert_eq!(told.in_tier("b").printed().matches("truncate: EACCES").count(), 2, "{told:?}");
    assert!(told.all("limit").iter().any(|limit| limit.contains("`truncate` is refused")));
    assert_eq!(std::fs::read_to_string(yard.project.join("shorter")).unwrap(), "");
    assert_eq!(std::fs::read_to_string(&yard.canary).unwrap(), "untouched");
}

/// What `attempts` says, on this machine or on a kernel that lacks something.
fn attempts(words: &[&str]) -> Told {
    let out = std::process::Command::new(super::yard::ATTEMPT).args(words).output().unwrap();
    Told::from(&out)
}

#[test]
fn what_a_tier_claims_is_what_can_be_tried() {
    for tier in TIERS {
        let told = attempts(&["attempts", tier]);
        assert!(told.all("differs").is_empty(), "{tier}: {told:?}");
        // A row may be untried where the machine lacks what its control needs, but not many.
        assert!(told.all("agrees").len() >= 16, "{tier}: {told:?}");
    }
}

#[test]
fn a_kernel_that_lacks_something_is_claimed_no_more_than_it_does() {
    for kernel in [
        "abi-1",
        "abi-2",
        "no-landlock",
        "landlock-off",
        "no-namespaces",
        "no-pid-namespace",
        "no-mounts",
        "no-mount-setattr",
        "no-listener",
        "no-seccomp",
        "no-openat2",
        "no-pidfd",
    ] {
        for tier in TIERS {
            let told = attempts(&["under", kernel, "attempts", tier]);
            assert!(told.all("differs").is_empty(), "{kernel}, {tier}: {told:?}");
            // No weaker cage stands in for the one that was asked for.
            for row in told.all("untried") {
                let stated = ["could not be made", "another tier", "without a cage either"];
                assert!(stated.iter().any(|why| row.contains(why)), "{kernel}, {tier}: {row}");
            }
        }
    }
}

#[test]
fn a_rule_that_is_taken_out_is_seen() {
    for (rule, tier, rows) in [
        ("outside", "a", &["1 writing", "3 reading", "8 reaching a socket"][..]),
        ("outside", "b", &["1 writing", "3 reading", "8 reaching a socket"]),
        ("home", "a", &["20 changing", "22 reading"]),
        ("home", "b", &["20 changing", "22 reading"]),
        ("network", "a", &["6 reaching", "6 querying", "7 going around"]),
        ("network", "b", &["6 reaching", "6 querying", "7 going around"]),
        ("withheld", "a", &["9 reading"]),
        ("withheld", "b", &["9 reading"]),
    ] {
        let told = attempts(&["attempts", tier, rule]);
        let differs = told.all("differs");
        for row in rows {
            let seen = differs.iter().any(|line| line.starts_with(row));
            assert!(seen, "{rule}, {tier}: {row} is not among {differs:?}");
        }
    }
}

#[test]
fn a_kernel_that_only_says_that_it_locks_is_found_out() {
    let told = attempts(&["under", "lying-landlock", "attempts", "b"]);
    let no_claim = |line: &str| line.contains("claimed NotPrevented");
    for row in ["1 writing outside", "3 reading outside", "13 acting"] {
        let seen = told.all("differs").iter().any(|line| line.starts_with(row));
        // An old kernel is not said to hold signals back.
        let old = told.all("agrees").iter().any(|line| line.starts_with(row) && no_claim(line));
        assert!(seen || row.starts_with("13") && old, "{row}: {told:?}");
    }
}

#[test]
fn without_seccomp_there_is_no_cage() {
    for tier in TIERS {
        let told = Yard::new().lacking("no-seccomp", tier, "echo ran");
        assert!(["filter", "listener"].contains(&told.one("uncaged").as_str()), "{told:?}");
        assert!(told.all("out").is_empty());
    }
}

#[test]
fn without_a_listener_the_filter_stands_and_the_record_says_so() {
    for tier in TIERS {
        let yard = Yard::new();
        let unshare = format!("{} try unshare", yard.inside.display());
        let told = yard.lacking("no-listener", tier, &unshare);
        assert_eq!(told.in_tier(tier).one("observable"), "false");
        assert!(told.printed().contains("EPERM"), "{told:?}");
        assert!(told.all("refusal").is_empty());
        assert!(told.all("limit").iter().any(|limit| limit.contains("not observable")));
        let seen = yard.shell(tier, &unshare);
        assert_eq!(seen.one("observable"), "true");
        assert!(seen.one("refusal").contains("unshare"), "the control: {seen:?}");
    }
}

/// Root makes no user namespace, so for root the refusal comes later and is an error.
#[test]
fn without_namespaces_the_tier_is_lower_or_refused_never_claimed() {
    for kernel in ["no-namespaces", "no-pid-namespace", "no-mounts", "no-mount-setattr"] {
        let yard = Yard::new();
        let required = yard.lacking(kernel, "a", "echo ran");
        assert!(["namespaces", "root"].contains(&required.one("uncaged").as_str()), "{required:?}");
        assert!(required.one("reason").contains("sandbox.tier"), "{required:?}");
        assert!(required.all("out").is_empty(), "{required:?}");
        let options = ["level", "best-effort"];
        let told = yard.lacking_with(kernel, "a", &options, "echo ran");
        match told.all("tier").as_slice() {
            [] => {
                let step = told.one("uncaged");
                assert!(["namespaces", "root"].contains(&step.as_str()), "{kernel} {told:?}");
                assert!(told.one("reason").contains("sandbox.tier"), "{told:?}");
                assert!(told.all("out").is_empty());
            }
            ["B"] => {
                assert!(told.all("limit")[0].contains("tier B holds"), "{told:?}");
                assert_eq!(told.printed(), "ran");
            }
            other => panic!("{kernel}: tier {other:?}"),
        }
        let told = yard.lacking(kernel, "b", "echo ran");
        assert_eq!(told.in_tier("b").printed(), "ran", "{kernel}: tier B needs none of it");
    }
}

#[test]
fn what_only_makes_it_faster_may_be_missing() {
    let told = Yard::new().lacking("no-openat2", "a", "echo ran");
    assert_eq!(told.in_tier("a").printed(), "ran");
}

#[test]
fn without_a_handle_on_the_command_it_is_not_run() {
    for tier in TIERS {
        let told = Yard::new().lacking("no-pidfd", tier, "echo ran");
        assert_eq!(told.one("uncaged"), "fork", "{told:?}");
        assert!(told.all("out").is_empty());
    }
}

#[test]
fn the_host_probe_claims_what_can_be_done() {
    let tier = |kernel: &str| {
        let out = std::process::Command::new(super::yard::ATTEMPT)
            .args(["under", kernel, "host"])
            .output()
            .unwrap();
        Told::from(&out).one("tier")
    };
    assert_eq!(tier("no-openat2"), "A", "the control");
    assert_eq!(tier("abi-1"), "A");
    assert_eq!(tier("abi-2"), "A");
    assert_eq!(tier("no-landlock"), "C");
    assert_eq!(tier("landlock-off"), "C");
    assert_eq!(tier("no-seccomp"), "C");
    assert_eq!(tier("no-namespaces"), "B");
    assert_eq!(tier("no-pid-namespace"), "B");
    assert_eq!(tier("no-mounts"), "B");
    assert_eq!(tier("no-mount-setattr"), "B");
    assert_eq!(tier("no-listener"), "A");
}
