//! What a command that stays makes in the project is put right while it runs: the person's own programs
//! meet nothing of it. Each test has a control without the guard.

#![allow(clippy::unwrap_used)]

mod yard;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use yard::{TIERS, Told, Yard};

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
        let again = "(while ! test -e stop; do echo x > .envrc; sleep 0.02; done) &";
        let staying = Staying::start(&yard, tier, &GUARD, again);
        let last = yard.project.join(".envrc.quarantined-20");
        until("it was made twenty times", || last.exists());
        until("the last of them gives way", || {
            let before = fs::metadata(&last).map(|found| found.modified().unwrap());
            std::thread::sleep(Duration::from_millis(300));
            before.ok() != fs::metadata(&last).map(|found| found.modified().unwrap()).ok()
        });
        let told = staying.end(&yard);
        assert!(meanwhile(&told, ".envrc") >= 4, "{told:?}");
        let kept = fs::read_dir(&yard.project).unwrap().flatten();
        let kept = kept.filter(|it| it.file_name().to_string_lossy().contains("quarantined"));
        let (kept, said) = (kept.count(), told.all("tampered").len());
        assert!(kept <= 21 && said <= 8, "{kept} {said}: {told:?}");
        assert!(!yard.project.join(".envrc").exists());
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
    let script =
        "mkdir -p shut/in; chmod 0300 shut; echo x > shut/in/.envrc; echo x > shut/in/plain";
    let staying = Staying::start(&yard, "b", &GUARD, script);
    let at = |name: &str| yard.project.join("shut/in").join(name).exists();
    until("it is moved aside", || at(".envrc.quarantined") && !at(".envrc"));
    assert!(at("plain"), "the control");
    let mode = fs::metadata(yard.project.join("shut")).unwrap().permissions().mode() & 0o777;
    let told = staying.end(&yard);
    assert_eq!(mode, 0o300, "{told:?}");
    assert_eq!(meanwhile(&told, "shut/in/.envrc"), 1, "{told:?}");
}
