//! What a command that stays makes in the project is put right while it runs: the person's own programs
//! meet nothing of it. Each test has a control without the guard.

use super::yard::{TIERS, Told, Yard};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The person's own shell in the project, with what it printed.
fn person(yard: &Yard, script: &str) -> String {
    let out = Command::new("sh")
        .args(["-c", script])
        .current_dir(&yard.project)
        .env("HOME", &yard.home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("CANARY", yard.root.join("ran"))
        .output()
        .unwrap();
    let [out, err] =
        [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    format!("{out}{err}")
}

fn repository(yard: &Yard) {
    let said = person(
        yard,
        "git init -q . && git config user.name a && git config user.email a@b && \
         git add attempt && git commit -qm one && echo made",
    );
    assert!(said.ends_with("made\n"), "this test drives git: {said}");
}

/// A command that runs until it is told to stop.
struct Staying(Child);

impl Staying {
    fn start(yard: &Yard, tier: &str, options: &[&str], script: &str) -> Self {
        let script = format!(
            "export HOME=$TMPDIR; {script}\ntouch begun; while ! test -e stop; do sleep 0.05; done; echo end"
        );
        let mut runner = yard.runner(tier, options, &["sh", "-c", &script]);
        let runner = runner.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("the command has begun to stay", || yard.project.join("begun").exists());
        Self(runner)
    }

    fn end(self, yard: &Yard) -> Told {
        fs::write(yard.project.join("stop"), "").unwrap();
        let told = Told::from(&self.0.wait_with_output().unwrap());
        assert!(told.printed().ends_with("end"), "it ran to its end: {told:?}");
        told
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn meanwhile(told: &Told, path: &str) -> usize {
    told.all("meanwhile").iter().filter(|line| line.starts_with(&format!("{path} "))).count()
}

const GUARD: [&str; 2] = ["guard", "on"];

/// A repository with a program in its settings, known to the project's as a gitlink, and four files that
/// other programs trust.
const FIVE: &str = "mkdir -p src/data; git -C src/data init -q; \
     git -C src/data -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; \
     printf '#!/bin/sh\\ntouch \"$CANARY\"\\n' > run; chmod +x run; \
     git -C src/data config core.fsmonitor \"$PWD/run\"; \
     git update-index --add --cacheinfo 160000,$(git -C src/data rev-parse HEAD),src/data; \
     echo x > .envrc; echo {} > .mcp.json; mkdir -p .vscode .claude deep/er; echo {} > .vscode/tasks.json; \
     echo {} > .claude/settings.json; echo x > deep/er/.envrc; echo plain > deep/plain";
const NAMES: [&str; 5] =
    [".envrc", ".mcp.json", ".vscode/tasks.json", ".claude/settings.json", "deep/er/.envrc"];

fn has_fsmonitor(yard: &Yard) -> bool {
    let config = fs::read_to_string(yard.project.join("src/data/.git/config"));
    config.is_ok_and(|text| text.contains("fsmonitor"))
}

#[test]
fn the_person_meets_nothing_of_a_command_that_stays() {
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        let staying = Staying::start(&yard, tier, &GUARD, FIVE);
        let there = || NAMES.iter().find(|name| yard.project.join(name).exists());
        until("all are moved aside", || there().is_none() && !has_fsmonitor(&yard));
        let said = person(&yard, "git status");
        assert!(!yard.root.join("ran").exists(), "{tier}: {said}");
        assert_eq!(fs::read_to_string(yard.project.join("deep/plain")).unwrap(), "plain\n");
        assert!(yard.project.join(".envrc.quarantined").exists(), "nothing is lost");
        let told = staying.end(&yard);
        told.in_tier(tier);
        for path in [".envrc", ".mcp.json", ".vscode/tasks.json", ".claude", "src/data/.git/config"]
        {
            assert_eq!(meanwhile(&told, path), 1, "{tier} {path}: {told:?}");
        }
        assert_eq!(told.all("tampered"), told.all("meanwhile"), "{tier}: the record has the same");
        assert!(!has_fsmonitor(&yard));
    }
    // The control: git runs the program where no one looks while the command runs.
    let yard = Yard::new();
    repository(&yard);
    let staying = Staying::start(&yard, "a", &[], FIVE);
    assert!(NAMES.iter().all(|name| yard.project.join(name).exists()) && has_fsmonitor(&yard));
    person(&yard, "git status");
    assert!(yard.root.join("ran").exists(), "the control");
    staying.end(&yard);
}

#[test]
fn a_name_that_is_made_again_is_moved_aside_and_told_again() {
    for tier in TIERS {
        let yard = Yard::new();
        let again = "(n=0; while ! test -e stop; do test -e .envrc || { echo x > .envrc; \
                     n=$((n + 1)); echo $n > times; }; sleep 0.02; done) &";
        let staying = Staying::start(&yard, tier, &GUARD, again);
        until("it was made thirty times", || {
            let times = fs::read_to_string(yard.project.join("times")).unwrap_or_default();
            times.trim().parse::<usize>().is_ok_and(|times| times >= 30)
        });
        let told = staying.end(&yard);
        assert!(meanwhile(&told, ".envrc") >= 3, "{told:?}");
        let (kept, said) = (aside(&yard, "").len(), told.all("tampered").len());
        // The file may be moved before its text is written, too.
        assert!(kept <= 4 && said <= 9, "{kept} {said}: {told:?}");
        assert!(!yard.project.join(".envrc").exists());
    }
}

/// The texts that were moved aside in a folder, with their names.
fn aside(yard: &Yard, folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(yard.project.join(folder)).into_iter().flatten().flatten();
    let name = |it: &fs::DirEntry| it.file_name().to_string_lossy().into_owned();
    let entries = entries.filter(|it| name(it).contains("quarantined"));
    entries.map(|it| (name(&it), fs::read_to_string(it.path()).unwrap_or_default())).collect()
}

#[test]
fn the_person_s_own_file_is_kept_and_told_among_many_of_the_command() {
    for tier in TIERS {
        let yard = Yard::new();
        let many = "(n=0; while ! test -e stop; do test -e hold || test -e .envrc || { echo x$n > .envrc; \
                    n=$((n + 1)); echo $n > times; }; sleep 0.02; done) &";
        let staying = Staying::start(&yard, tier, &GUARD, many);
        let times = || {
            let times = fs::read_to_string(yard.project.join("times")).unwrap_or_default();
            times.trim().parse::<usize>().unwrap_or(0)
        };
        let there = || yard.project.join(".envrc").exists();
        until("it was made often", || times() >= 25);
        fs::write(yard.project.join("hold"), "").unwrap();
        std::thread::sleep(Duration::from_millis(300));
        until("the command's is gone", || !there());
        fs::write(yard.project.join(".envrc"), "mine").unwrap();
        until("the person's is moved aside", || !there());
        let before = times();
        fs::remove_file(yard.project.join("hold")).unwrap();
        until("it was made again", || times() >= before + 4);
        let told = staying.end(&yard);
        let kept = aside(&yard, "").into_iter().find(|(_, text)| text == "mine");
        let (kept, _) = kept.expect("the person's text is kept");
        let says = |line: &&str| line.contains(&format!("moved to {kept} "));
        assert!(told.all("meanwhile").iter().any(says), "{tier} {kept}: {told:?}");
    }
}

/// What a command makes in a directory that has the names of a repository without a `.git`.
#[test]
fn the_names_of_a_repository_hide_nothing_in_it() {
    for (tier, bare) in [("a", "src/data"), ("b", "src/data"), ("b", ".")] {
        let yard = Yard::new();
        let script = format!(
            "mkdir -p {bare}/objects {bare}/refs; echo ref: refs/heads/m > {bare}/HEAD; touch begun; \
             while ! test -e go; do sleep 0.05; done; (cd {bare}; echo x > .envrc; mkdir -p .vscode new/.claude; \
             echo {{}} > .vscode/tasks.json; echo {{}} > new/.claude/settings.json; echo x > new/plain; \
             git init -q inner; git -C inner config core.fsmonitor ./run; \
             printf '[core]\n\tfsmonitor = ./run\n\tbare = false\n\tworktree = .\n' > config)"
        );
        let staying = Staying::start(&yard, tier, &GUARD, &script);
        // Longer than the first search takes to begin: only events tell of the rest.
        std::thread::sleep(Duration::from_millis(1000));
        fs::write(yard.project.join("go"), "").unwrap();
        let at = |name: &str| yard.project.join(bare).join(name);
        let names = [".envrc", ".vscode/tasks.json", "new/.claude", "inner/.git/config", "config"];
        until("it is made", || at("config.quarantined").exists());
        until("all are moved aside", || names.iter().all(|name| !at(name).exists()));
        assert!(at("new/plain").exists() && at("HEAD").exists(), "the control");
        let told = staying.end(&yard);
        let shown =
            |name: &str| at(name).strip_prefix(&yard.project).unwrap().display().to_string();
        for name in names {
            assert_eq!(meanwhile(&told, &shown(name)), 1, "{tier} {name}: {told:?}");
        }
    }
}

#[test]
fn a_repository_among_dependencies_is_looked_at() {
    for (tier, folder) in [("a", "node_modules"), ("b", "target/deep")] {
        let yard = Yard::new();
        let script = format!(
            "touch begun; while ! test -e go; do sleep 0.05; done; mkdir -p {folder}; echo x > {folder}/.envrc; \
             git init -q --bare {folder}/y; sleep 1; \
             printf '[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = ./run\n' > {folder}/y/config"
        );
        let staying = Staying::start(&yard, tier, &GUARD, &script);
        std::thread::sleep(Duration::from_millis(500));
        fs::write(yard.project.join("go"), "").unwrap();
        let at = |name: &str| yard.project.join(folder).join(name);
        until("it is moved aside", || {
            aside(&yard, &format!("{folder}/y")).iter().any(|(_, text)| text.contains("worktree"))
        });
        until("nothing of it is left", || !at("y/config").exists());
        assert!(at(".envrc").exists(), "the control: a dependency's own");
        staying.end(&yard);
    }
}

#[test]
fn what_was_moved_aside_in_a_git_directory_rests() {
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        let script = "git init -q t; printf x > t/.git/hooks/pre-commit; chmod +x t/.git/hooks/pre-commit; \
                      mkdir t/.git/hooks/pre-push t/.git/remotes; ln -s ../../../attempt t/.git/hooks/post-merge; \
                      echo 'URL: ext::x' > t/.git/remotes/o; ln -s ../../attempt t/.git/COMMIT_EDITMSG";
        let first = Staying::start(&yard, tier, &GUARD, "true");
        fs::remove_file(yard.project.join("begun")).unwrap();
        let second = Staying::start(&yard, tier, &GUARD, script);
        let there = [
            "hooks/pre-commit",
            "hooks/pre-push",
            "hooks/post-merge",
            "remotes/o",
            "COMMIT_EDITMSG",
        ];
        until("all are moved aside", || {
            let git = yard.project.join("t/.git");
            git.join("hooks/pre-commit.quarantined").exists()
                && there.iter().all(|name| git.join(name).symlink_metadata().is_err())
        });
        std::thread::sleep(Duration::from_millis(1500));
        let told = [first, second].map(|staying| staying.end(&yard));
        let found =
            Command::new("find").arg(&yard.project).args(["-name", "*quarantined*"]).output();
        let found = String::from_utf8(found.unwrap().stdout).unwrap();
        // `git init` makes a link for a moment, to see whether it can, which may be moved aside too.
        let once = |name: &&str| {
            let file = format!("/{}.quarantined", name.rsplit('/').next().unwrap());
            found.lines().filter(|line| line.ends_with(&file)).count() == 1
        };
        assert!(there.iter().all(once), "{tier}: {found} {told:?}");
        assert!(!found.contains("quarantined.quarantined"), "{tier}: {found}");
    }
}

/// Only the link has a protected name. Its target is made later, by a name like any other.
#[test]
fn a_link_at_a_protected_name_is_moved_aside_before_its_target_is_there() {
    for tier in TIERS {
        let yard = Yard::new();
        let script = "mkdir other deep; ln -s other .vscode; ln -s o2 .hg; ln -s ../other deep/.vscode; \
                      ln -s other plain; touch begun; while ! test -e go; do sleep 0.05; done; \
                      echo {} > other/tasks.json; mkdir o2; echo x > o2/hgrc";
        let staying = Staying::start(&yard, tier, &GUARD, script);
        let links = [".vscode", ".hg", "deep/.vscode"];
        let is_link = |name: &str| yard.project.join(name).is_symlink();
        until("they are moved aside", || !links.iter().any(|name| is_link(name)));
        assert!(is_link("plain"), "the control");
        fs::write(yard.project.join("go"), "").unwrap();
        let told = staying.end(&yard);
        assert!(
            yard.project.join("o2/hgrc").exists() && yard.project.join("other/tasks.json").exists()
        );
        for name in links {
            assert_eq!(meanwhile(&told, name), 1, "{tier} {name}: {told:?}");
        }
    }
}

#[test]
fn a_tree_that_is_moved_in_is_searched_as_deep_as_it_is() {
    for tier in TIERS {
        let yard = Yard::new();
        // In tier A the temporary directory may be on another mount, and `mv` copies.
        let tree = format!(
            "temp={}; mkdir -p $temp/t/u/v/w x; echo x > $temp/t/u/v/w/.envrc; \
             echo x > $temp/t/u/v/w/plain; mv $temp/t x/t",
            yard.temp.display()
        );
        let staying = Staying::start(&yard, tier, &GUARD, &tree);
        let at = |name: &str| yard.project.join("x/t/u/v/w").join(name);
        until("it is moved aside", || at(".envrc.quarantined").exists() && !at(".envrc").exists());
        assert!(at("plain").exists(), "the control");
        let told = staying.end(&yard);
        assert_eq!(meanwhile(&told, "x/t/u/v/w/.envrc"), 1, "{told:?}");
    }
}

#[test]
fn a_changed_hook_is_put_back_while_the_command_runs() {
    let yard = Yard::new();
    repository(&yard);
    let hook = yard.project.join(".git/hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let change = "echo 'touch \"$CANARY\"' >> .git/hooks/pre-commit; echo x > plain";
    let staying = Staying::start(&yard, "b", &GUARD, change);
    until("it is put back", || fs::read_to_string(&hook).is_ok_and(|text| text == "#!/bin/sh\n"));
    assert_eq!(fs::metadata(&hook).unwrap().permissions().mode() & 0o777, 0o755);
    let kept = fs::read_to_string(hook.with_extension("quarantined")).unwrap();
    assert!(kept.contains("CANARY"), "the command's version is kept");
    let told = staying.end(&yard);
    assert_eq!(meanwhile(&told, ".git/hooks/pre-commit"), 1, "{told:?}");
    assert!(yard.project.join("plain").exists());
    // The control.
    let yard = Yard::new();
    repository(&yard);
    fs::write(yard.project.join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
    let staying = Staying::start(&yard, "b", &[], change);
    let hook = yard.project.join(".git/hooks/pre-commit");
    assert!(fs::read_to_string(&hook).unwrap().contains("CANARY"), "the control");
    staying.end(&yard);
}

/// A write by another name of the file is an event of that name alone.
#[test]
fn settings_that_were_harmless_are_looked_at_again() {
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        let link = "git init -q x; ln x/.git/config other; while ! test -e go; do sleep 0.05; done; \
                    printf '[core]\\n\\tfsmonitor = ./run\\n' >> other";
        let script = format!("touch begun; {link}");
        let staying = Staying::start(&yard, tier, &GUARD, &script);
        let config = yard.project.join("x/.git/config");
        until("it is there", || config.exists());
        // Longer than a search may take to begin.
        std::thread::sleep(Duration::from_millis(500));
        assert!(config.exists(), "{tier}: a harmless repository stays");
        fs::write(yard.project.join("go"), "").unwrap();
        until("it is moved aside", || !config.exists());
        let told = staying.end(&yard);
        assert_eq!(meanwhile(&told, "x/.git/config"), 1, "{told:?}");
    }
}

/// Sends a line to the runner about another call that may change git's settings.
fn tell(pipe: &mut fs::File, word: &str) {
    use std::io::Write;
    writeln!(pipe, "{word}").unwrap();
    std::thread::sleep(Duration::from_millis(300));
}

#[test]
fn another_call_that_may_change_git_s_settings_is_not_undone() {
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        let pipe = yard.temp.join("orders");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let options = ["guard", "on", "orders", pipe.to_str().unwrap()];
        let staying = Staying::start(&yard, tier, &options, "true");
        let mut orders = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let hook = yard.project.join(".git/hooks/pre-push");
        let change = "git config core.pager less; printf '#!/bin/sh\\n' > .git/hooks/pre-push";
        let changed = || {
            let config = fs::read_to_string(yard.project.join(".git/config")).unwrap();
            (config.contains("less"), hook.exists())
        };
        tell(&mut orders, "writable");
        person(&yard, change);
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(changed(), (true, true), "{tier}: while the other call runs");
        tell(&mut orders, "kept");
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(changed(), (true, true), "{tier}: and behind its end");
        let told = staying.end(&yard);
        assert_eq!(changed(), (true, true), "{tier}: {told:?}");
        assert!(told.all("tampered").is_empty(), "{told:?}");
    }
    // The control: without that word it is undone.
    let yard = Yard::new();
    repository(&yard);
    let staying = Staying::start(&yard, "b", &GUARD, "true");
    person(&yard, "git config core.pager less");
    let config = yard.project.join(".git/config");
    until("it is undone", || fs::read_to_string(&config).is_ok_and(|text| !text.contains("less")));
    let kept = fs::read_to_string(yard.project.join(".git/config.quarantined")).unwrap();
    assert!(kept.contains("less"), "the person's version is beside it");
    staying.end(&yard);
}

/// Two commands, each with a state of its own: what one puts right is not undone by the other.
#[test]
fn two_commands_do_not_fight() {
    for tier in TIERS {
        let yard = Yard::new();
        repository(&yard);
        let hook = yard.project.join(".git/hooks/pre-commit");
        fs::write(&hook, "#!/bin/sh\n").unwrap();
        let first = Staying::start(&yard, tier, &GUARD, "true");
        fs::remove_file(yard.project.join("begun")).unwrap();
        let second = Staying::start(
            &yard,
            tier,
            &GUARD,
            "for n in 1 2 3; do echo x > .envrc; mkdir -p .claude; echo x > .claude/x; \
             echo evil >> .git/hooks/pre-commit; sleep 0.3; done",
        );
        let names = || {
            let entries = fs::read_dir(&yard.project).unwrap().flatten();
            let hooks = fs::read_dir(yard.project.join(".git/hooks")).unwrap().flatten();
            let mut names: Vec<_> = entries.chain(hooks).map(|it| it.path()).collect();
            names.sort();
            names
        };
        until("all is put right", || {
            let gone = |name: &str| !yard.project.join(name).exists();
            gone(".envrc")
                && gone(".claude")
                && fs::read_to_string(&hook).is_ok_and(|text| text == "#!/bin/sh\n")
        });
        let before = names();
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(names(), before, "{tier}: nothing moves any more");
        let told = [first, second].map(|staying| staying.end(&yard));
        let said: Vec<_> = told.iter().flat_map(|told| told.all("tampered")).collect();
        assert!(!said.iter().any(|line| line.contains("quarantined.quarantined")), "{said:?}");
        assert!(!said.iter().any(|line| line.contains("not restored")), "{said:?}");
        assert_eq!(fs::read_to_string(&hook).unwrap(), "#!/bin/sh\n");
    }
}

/// No watch can be made in a directory that is closed to its owner, except by root.
#[test]
fn without_watches_the_names_are_found_by_time() {
    let yard = Yard::new();
    // The first search is over, and the directory is closed from its beginning.
    let script = "sleep 1; mkdir -m 0300 shut; mkdir shut/in; echo x > shut/in/.envrc; echo x > shut/in/plain";
    let staying = Staying::start(&yard, "b", &GUARD, script);
    let at = |name: &str| yard.project.join("shut/in").join(name).exists();
    until("it is moved aside", || at(".envrc.quarantined") && !at(".envrc"));
    assert!(at("plain"), "the control");
    let mode = fs::metadata(yard.project.join("shut")).unwrap().permissions().mode() & 0o777;
    let told = staying.end(&yard);
    assert_eq!(mode, 0o300, "{told:?}");
    assert_eq!(meanwhile(&told, "shut/in/.envrc"), 1, "{told:?}");
}
