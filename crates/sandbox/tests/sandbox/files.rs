//! Files: what lies outside the grants is neither changed nor read, in both tiers.

use super::yard::{SECRET, TIERS, Yard};

fn text(path: &std::path::Path) -> &str {
    path.to_str().unwrap()
}

fn refused(said: &str) -> bool {
    ["EACCES", "EPERM", "EROFS", "ENOENT", "EXDEV"].iter().any(|errno| said.starts_with(errno))
}

#[test]
fn nothing_outside_the_grants_is_written() {
    for tier in TIERS {
        let yard = Yard::new();
        let new = yard.root.join("new");
        let taken = yard.project.join("taken");
        for act in [
            &["write", text(&yard.canary)][..],
            &["append", text(&yard.canary)],
            &["truncate", text(&yard.canary)],
            &["remove", text(&yard.canary)],
            &["rename", text(&yard.canary), text(&taken)],
            &["rename", text(&yard.inside), text(&new)],
            &["link", text(&yard.inside), text(&new)],
            &["write", text(&new)],
            &["write", "/etc/agentd-attempt"],
        ] {
            let said = yard.caged(tier, act);
            assert!(refused(&said), "{tier} {act:?}: {said}");
        }
        yard.canary_is_untouched();
        assert!(!new.exists() && !taken.exists());
        // The same acts work inside, and outside without a cage.
        let own = yard.project.join("own");
        let moved = yard.temp.join("moved");
        for act in [
            &["write", text(&own)][..],
            &["append", text(&own)],
            &["truncate", text(&own)],
            &["rename", text(&own), text(&yard.project.join("again"))],
            &["write", text(&moved)],
            &["remove", text(&moved)],
        ] {
            assert!(yard.caged(tier, act).starts_with("done"), "{tier} {act:?}");
        }
        assert!(yard.free(&["append", text(&yard.canary)]).starts_with("done"));
        assert!(yard.free(&["write", text(&new)]).starts_with("done"));
    }
}

#[test]
fn metadata_outside_is_kept_in_tier_a_and_named_in_tier_b() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new();
    let mode = || yard.canary.metadata().unwrap().permissions().mode() & 0o777;
    let before = mode();
    let said = yard.caged("a", &["chmod", text(&yard.canary)]);
    assert!(refused(&said), "{said}");
    assert_eq!(mode(), before);
    let told = yard.shell("b", ":");
    assert!(told.all("limit").iter().any(|limit| limit.contains("attributes")), "{told:?}");
    assert!(yard.caged("a", &["chmod", text(&yard.inside)]).starts_with("done"));
}

#[test]
fn each_change_of_metadata_outside_is_refused_in_tier_a_and_its_record_says_so() {
    let yard = Yard::new();
    let own = yard.project.join("own");
    std::fs::write(&own, "mine").unwrap();
    for (act, word) in
        [("chmod", "mode"), ("chown", "owner"), ("utime", "times"), ("setxattr", "attributes")]
    {
        let before = std::fs::metadata(&yard.canary).unwrap();
        let program = [yard.inside.to_str().unwrap(), "try", act, text(&yard.canary)];
        let told = yard.cage("a", &[], &program);
        assert!(!told.in_tier("a").printed().contains("done"), "{act}: {told:?}");
        let refusals = told.all("refusal");
        let named = |line: &&str| {
            line.starts_with("Predicted")
                && line.contains(word)
                && line.contains(text(&yard.canary))
        };
        assert!(refusals.len() == 1 && refusals.iter().all(named), "{act}: {told:?}");
        use std::os::unix::fs::MetadataExt;
        let after = std::fs::metadata(&yard.canary).unwrap();
        let changed = |of: &std::fs::Metadata| (of.ctime(), of.ctime_nsec());
        assert_eq!(changed(&before), changed(&after), "{act}");
        // Inside it is done and no refusal; outside too, without a cage.
        let program = [yard.inside.to_str().unwrap(), "try", act, text(&own)];
        let told = yard.cage("a", &[], &program);
        assert!(told.printed().contains("done") && told.all("refusal").is_empty(), "{told:?}");
        assert!(yard.free(&[act, text(&yard.canary)]).starts_with("done"), "{act}");
        assert_ne!(changed(&before), changed(&std::fs::metadata(&yard.canary).unwrap()), "{act}");
    }
}

#[test]
fn words_of_a_command_make_no_refusal() {
    for tier in TIERS {
        let yard = Yard::new();
        let words =
            "sandbox: Permission denied. Operation not permitted (EPERM), seccomp, landlock";
        let told = yard.shell(tier, &format!("echo '{words}'; echo '{words}' >&2; exit 126"));
        assert_eq!(told.in_tier(tier).printed(), words);
        assert!(told.all("refusal").is_empty(), "{tier}: {told:?}");
        // The control: what is refused and says nothing.
        let told =
            yard.shell(tier, &format!("echo x 2>/dev/null > {}; exit 0", text(&yard.canary)));
        assert_eq!(told.all("refusal").len(), 1, "{tier}: {told:?}");
    }
}

#[test]
fn a_secret_in_the_home_is_not_read_by_any_way() {
    for tier in TIERS {
        let yard = Yard::new();
        let secret = text(&yard.secret);
        let link = yard.project.join("link");
        let hard = yard.project.join("hard");
        for act in [
            &["read", secret][..],
            &["read-through-link", secret, text(&link)],
            &["read-through-root", secret],
            &["link", secret, text(&hard)],
            &["rename", secret, text(&hard)],
            &["list", text(&yard.home)],
        ] {
            let said = yard.caged(tier, act);
            // In tier A an empty home may be listed: what is not granted is not there.
            let empty = tier == "a" && said == "done 0";
            assert!(refused(&said) || empty, "{tier} {act:?}: {said}");
            assert!(!said.contains(SECRET));
        }
        assert_eq!(yard.free(&["read", secret]), format!("done {SECRET}"));
        assert_eq!(yard.free(&["read-through-root", secret]), format!("done {SECRET}"));
    }
}

#[test]
fn tool_chains_of_the_home_are_read_and_their_credentials_are_not() {
    for tier in TIERS {
        let yard = Yard::new();
        for folder in [".cargo/bin", ".config/git"] {
            std::fs::create_dir_all(yard.home.join(folder)).unwrap();
        }
        let cases = [
            (".cargo/bin/tool", true),
            (".cargo/credentials.toml", false),
            // A command is given copies of these, without keys.
            (".cargo/config.toml", false),
            (".gitconfig", false),
            (".config/git/config", false),
            (".config/git/credentials", false),
            (".netrc", false),
        ];
        for (name, granted) in cases {
            let path = yard.home.join(name);
            std::fs::write(&path, SECRET).unwrap();
            let said = yard.caged(tier, &["read", text(&path)]);
            assert_eq!(said.contains(SECRET), granted, "{tier} {name}: {said}");
            let written = yard.caged(tier, &["append", text(&path)]);
            assert!(refused(&written) || !granted, "{tier} {name}: {written}");
        }
    }
}

#[test]
fn protected_names_hold_in_tier_a_and_git_goes_on_working() {
    let yard = Yard::new();
    let git = |script: &str| {
        let out = std::process::Command::new("sh")
            .args(["-c", script])
            .current_dir(&yard.project)
            .env("HOME", &yard.home)
            .output()
            .unwrap();
        assert!(out.status.success(), "git is needed: {out:?}");
    };
    git(
        "git init -q . && git config user.name a && git config user.email a@b && git add attempt && git commit -qm one",
    );
    let told = yard.shell(
        "a",
        "echo x > .git/hooks/pre-commit; echo x >> .git/config; mv .git gone; rm -rf .git/hooks; \
         git config --add alias.x y; ls .git/hooks/pre-commit gone",
    );
    let complaints = told.in_tier("a").all("err").join("\n");
    for word in ["pre-commit: Read-only", "config: Read-only", "busy"] {
        assert!(complaints.contains(word), "{word} in {complaints}");
    }
    assert_eq!(told.printed(), "");
    git(
        "git config --get user.name && ! git config --get alias.x && test ! -e .git/hooks/pre-commit && test -e .git/hooks/pre-commit.sample",
    );
    let told = yard.shell(
        "a",
        "export HOME=$PWD; echo two > two && git add two && git commit -qm two && git branch side && git stash && git gc -q && echo worked",
    );
    assert!(told.printed().ends_with("worked"), "{told:?}");
    // In tier B the record says that it does not hold.
    let told = yard.shell("b", ":");
    assert!(told.all("limit").iter().any(|limit| limit.contains(".git/hooks")));
}

#[test]
fn that_programs_can_be_marked_setuid_is_named() {
    use std::os::unix::fs::PermissionsExt;
    for tier in TIERS {
        let yard = Yard::new();
        let told = yard.shell(tier, "echo > p && chmod 4755 p");
        let mode = yard.project.join("p").metadata().unwrap().permissions().mode();
        let named = told.all("limit").iter().any(|limit| limit.contains("setuid"));
        assert_eq!(mode & 0o4000 != 0, named, "{tier}: {told:?}");
    }
}

#[test]
fn the_whole_file_system_is_no_grant() {
    for tier in TIERS {
        let yard = Yard::new();
        let link = yard.root.join("all");
        std::os::unix::fs::symlink("/", &link).unwrap();
        for all in ["/", "//", "/.", text(&link)] {
            let told = yard.cage(tier, &["added", all], &["true"]);
            assert_eq!(told.all("uncaged"), ["grants"], "{tier} {all}: {told:?}");
        }
    }
}

/// It was judged by its real path; what a link there leads to now, nobody judged.
#[test]
fn an_added_directory_that_became_a_link_is_no_grant() {
    for tier in TIERS {
        let yard = Yard::new();
        let [added, keys] = ["added", "keys"].map(|name| yard.root.join(name));
        std::fs::create_dir_all(added.join("in")).unwrap();
        std::fs::create_dir_all(keys.join("in")).unwrap();
        let script = format!("echo x > {0}/made; test -e {0}/made", added.join("in").display());
        for named in [added.join("in"), added.clone()] {
            let told = yard.cage(tier, &["added", text(&named)], &["sh", "-c", &script]);
            assert_eq!(told.one("exit"), "0", "{tier}: {told:?}");
        }
        std::fs::remove_dir_all(&added).unwrap();
        std::os::unix::fs::symlink(&keys, &added).unwrap();
        for named in [added.join("in"), added] {
            let told = yard.cage(tier, &["added", text(&named)], &["sh", "-c", &script]);
            assert_eq!(told.one("uncaged"), "grants", "{tier}: {told:?}");
            assert!(told.one("reason").contains("reached by a link now"), "{told:?}");
        }
        assert!(!keys.join("in/made").exists(), "{tier}");
    }
}

#[test]
fn what_git_believes_of_submodules_and_worktrees_is_protected_too() {
    let yard = Yard::new();
    let git = yard.project.join(".git");
    let modules =
        ["flat", "vendor/lib", "flat/modules/inner"].map(|name| git.join("modules").join(name));
    for module in &modules {
        std::fs::create_dir_all(module.join("hooks")).unwrap();
        std::fs::write(module.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(module.join("config"), "[core]\n").unwrap();
    }
    for module in &modules {
        let (config, hook) = (module.join("config"), module.join("hooks/post-checkout"));
        for act in [["append", text(&config)], ["write", text(&hook)]] {
            let said = yard.caged("a", &act);
            assert!(said.starts_with("EROFS"), "{act:?}: {said}");
        }
        let script = format!("echo x > {}/description && echo went", module.display());
        assert_eq!(yard.shell("a", &script).printed(), "went", "the control");
    }
    // A linked worktree has a file instead, which names the folder.
    std::fs::remove_dir_all(&git).unwrap();
    std::fs::write(&git, "gitdir: /somewhere\n").unwrap();
    let told = yard.shell("a", "echo x > .git; rm -f .git; mv -f attempt .git; cat .git");
    assert_eq!(told.printed(), "gitdir: /somewhere", "{told:?}");
}

#[test]
fn our_own_directories_stay_out_of_reach_even_inside_the_project() {
    let yard = Yard::new();
    let state = yard.project.join("local/state/agentd");
    std::fs::create_dir_all(state.join("tmp/1")).unwrap();
    let token = state.join("token");
    std::fs::write(&token, SECRET).unwrap();
    let withheld = ["withheld", text(&state)];
    let said = yard.caged_with("a", &withheld, &["read", text(&token)]);
    assert!(refused(&said), "{said}");
    // Nor can it be moved to where a later call would find it; the session's own temp, which may
    // lie within, works all the same.
    let temp = state.join("tmp/1");
    let options = ["withheld", text(&state), "temp", text(&temp)];
    let script = "mv local gone; mv local/state gone; mv local/state/agentd gone; \
                  rm -rf local; find . -name token; touch local/state/agentd/tmp/1/worked";
    let told = yard.cage("a", &options, &["sh", "-c", script]);
    assert_eq!(told.in_tier("a").printed(), "", "{told:?}");
    assert!(token.exists() && temp.join("worked").exists());
    let told = yard.cage("b", &withheld, &["true"]);
    assert_eq!(told.one("uncaged"), "grants");
    assert!(told.one("reason").contains("XDG_STATE_HOME"), "{told:?}");
    assert!(yard.caged("b", &["read", text(&token)]).contains(SECRET), "the control");
}

#[test]
fn a_directory_of_ours_that_a_call_could_make_is_a_refusal() {
    let yard = Yard::new();
    let missing = yard.project.join("local/agentd");
    for tier in ["a", "b"] {
        let told = yard.cage(tier, &["withheld", text(&missing)], &["true"]);
        assert_eq!(told.one("uncaged"), "grants", "{tier}");
        assert!(told.one("reason").contains("local/agentd"), "{tier}: {told:?}");
        // Where nothing can be made, nothing is refused.
        let elsewhere = yard.home.join("missing/agentd");
        let told = yard.cage(tier, &["withheld", text(&elsewhere)], &["true"]);
        assert_eq!(told.one("exit"), "0", "{tier}: {told:?}");
    }
}

#[test]
fn what_is_missing_is_said() {
    for tier in TIERS {
        let yard = Yard::new();
        let told = yard.cage(tier, &["project", "/nonexistent/project"], &["true"]);
        assert_eq!(told.one("uncaged"), "grants");
        assert!(told.one("reason").contains("does not exist"), "{told:?}");
        let told = yard.cage(tier, &["added", "/nonexistent/added"], &["true"]);
        assert!(told.one("missing").contains("/nonexistent/added"), "{told:?}");
        assert_eq!(told.one("exit"), "0");
    }
    let yard = Yard::new();
    let told = yard.cage("c", &[], &["true"]);
    assert_eq!(told.one("uncaged"), "landlock", "tier C is no cage");
}

#[test]
fn what_tier_b_lets_be_seen_of_files_outside_is_named() {
    let yard = Yard::new();
    let link = yard.home.join(".link");
    std::os::unix::fs::symlink("somewhere", &link).unwrap();
    let script = format!("readlink {}; stat -c %s {}", link.display(), yard.secret.display());
    assert_eq!(yard.shell("a", &script).printed(), "", "not there at all");
    let told = yard.shell("b", &script);
    assert_eq!(told.printed(), format!("somewhere\n{}", super::yard::SECRET.len()));
    let named = |word: &str| told.all("limit").iter().any(|limit| limit.contains(word));
    assert!(named("link targets") && named("System V"), "{told:?}");
}
