//! Settings of the project's repository in tier A: what is harmless may be changed by the command's own
//! git, judged before it takes effect; all else stays read-only, while and after they are replaced.

use super::yard::{Told, Yard};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A yard whose project is a repository with one commit and these settings of the person.
fn repository(more: &str) -> Yard {
    let yard = Yard::new();
    let script = format!(
        "git init -q -b main . && git config user.name A && git config user.email a@example.org && \
         git add attempt && git commit -qm one && printf '{more}' >> .git/config"
    );
    let out =
        Command::new("sh").args(["-ec", &script]).current_dir(&yard.project).output().unwrap();
    assert!(out.status.success(), "this test drives git: {out:?}");
    yard
}

fn settings(yard: &Yard) -> String {
    std::fs::read_to_string(yard.project.join(".git/config")).unwrap()
}

/// Nothing is left of the way that new settings took.
fn nothing_is_left(yard: &Yard, told: &Told) {
    let git = yard.project.join(".git");
    assert!(!git.join("config.lock").exists(), "{told:?}");
    let hooks = std::fs::read_dir(git.join("hooks")).unwrap();
    let hooks = hooks.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let strange: Vec<_> = hooks.filter(|name| !name.ends_with(".sample")).collect();
    assert!(strange.is_empty(), "{strange:?} {told:?}");
}

#[test]
fn harmless_settings_are_changed_as_git_changes_them() {
    let yard = repository("[core]\\n\\tpager = mine\\n");
    std::fs::set_permissions(yard.project.join(".git/config"), mode(0o640)).unwrap();
    let script = "git init -q --bare there; git config user.name Grace; git remote add origin ./there; git branch -m trunk; \
                  git config branch.trunk.remote origin; git config --unset user.email; \
                  cp .git/config .git/config.lock; git config -f .git/config.lock user.name Mary; \
                  mv -f .git/config.lock .git/config; \
                  git config user.name; git config core.pager; stat -c %a .git/config";
    let told = yard.shell("a", &format!("set -e; {script}"));
    assert_eq!(told.in_tier("a").printed(), "Mary\nmine\n640", "{told:?}");
    let now = settings(&yard);
    assert!(now.contains("url = ./there") && now.contains("pager = mine"), "{now}");
    assert!(!now.contains("email"), "{now}");
    assert!(told.all("refusal").is_empty(), "{told:?}");
    nothing_is_left(&yard, &told);
}

#[test]
fn what_runs_programs_is_refused_before_it_takes_effect() {
    let yard = repository("");
    let before = settings(&yard);
    for change in [
        "git config core.fsmonitor ./evil",
        "git config core.hooksPath evil",
        "git config alias.x '!evil'",
        "git config include.path ../evil",
        "git config remote.origin.url 'ext::evil'",
        "git remote add origin ext::evil",
        "git remote add origin $TMPDIR/evil",
        "mkdir -p $TMPDIR/evil; ln -s $TMPDIR/evil evil.git; git remote add origin ./evil.git",
        "git config branch.main.remote ../evil",
        "cp .git/config .git/config.lock; printf '[remote \"o\"]\\n url = h:x\\n[remote \"o.uploadpack\\0\"]\\n url = evil\\n' >> .git/config.lock; mv -f .git/config.lock .git/config",
        "cp .git/config .git/config.lock; echo '[core] pager = evil' >> .git/config.lock; mv -f .git/config.lock .git/config",
        "ln -s ../evil .git/config.lock; mv -f .git/config.lock .git/config",
        "mkfifo .git/config.lock; mv -f .git/config.lock .git/config",
        "mkdir .git/config.lock; mv -fT .git/config.lock .git/config",
        "printf '[user]\\n name = \\377' > .git/config.lock; mv -f .git/config.lock .git/config",
        "cp .git/config other; mv -f other .git/config",
    ] {
        let told = yard.shell("a", &format!("cd {}; {change}", yard.project.display()));
        assert_ne!(told.in_tier("a").one("exit"), "0", "{change}: {told:?}");
        assert_eq!(settings(&yard), before, "{change}");
        let _ = std::fs::remove_dir_all(yard.project.join(".git/config.lock"));
        let _ = std::fs::remove_file(yard.project.join(".git/config.lock"));
    }
}

/// What a program outside may do to settings, and to names that are run or believed later.
const OUTSIDE: [&str; 4] = [
    "git config user.name Outside",
    "echo mine > new; mv new .envrc",
    "mv .envrc .envrc~; sleep 0.1; echo mine > .envrc; rm .envrc~",
    "mv .git/hooks .git/old; mkdir .git/hooks; echo mine > .git/hooks/pre-commit; rm -r .git/old",
];

#[test]
fn what_a_program_outside_replaces_is_closed_again() {
    let yard = repository("");
    std::fs::write(yard.project.join(".envrc"), "mine\n").unwrap();
    for outside in OUTSIDE {
        for name in ["up", "done"] {
            let _ = std::fs::remove_file(yard.project.join(name));
        }
        let tries = "touch up; while test ! -e done; do sleep 0.01; done; \
                     for name in .git/config .envrc .git/hooks/pre-commit; do \
                     echo evil >> $name; rm -f $name; done; git config user.name Inside || echo no change";
        let mut cage = yard.runner("a", &[], &["sh", "-c", tries]);
        let cage = cage.stdout(Stdio::piped()).spawn().unwrap();
        until(|| yard.project.join("up").exists());
        let mut by_hand = Command::new("sh");
        let by_hand = by_hand.args(["-ec", outside]).current_dir(&yard.project).status().unwrap();
        assert!(by_hand.success(), "{outside}");
        // The runner gets as long as a slow machine takes.
        std::thread::sleep(Duration::from_millis(300));
        std::fs::write(yard.project.join("done"), "").unwrap();
        let told = String::from_utf8(cage.wait_with_output().unwrap().stdout).unwrap();
        let names = [".git/config", ".envrc", ".git/hooks/pre-commit"];
        let texts = names.map(|name| std::fs::read_to_string(yard.project.join(name)));
        let texts: Vec<_> = texts.into_iter().flatten().collect();
        let wanted = if outside.contains("hooks") { 3 } else { 2 };
        assert_eq!(texts.len(), wanted, "{outside}: {texts:?} {told}");
        assert!(texts.iter().all(|text| !text.contains("evil")), "{outside}: {texts:?} {told}");
    }
}

fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn where_it_cannot_be_done_nothing_is_changed_and_nothing_left() {
    let yard = repository("");
    let before = settings(&yard);
    let script = "git config user.name Grace";
    // Files are moved between directories since the second Landlock.
    let told = yard.lacking("abi-1", "a", script);
    assert_ne!(told.in_tier("a").one("exit"), "0", "{told:?}");
    assert_eq!(settings(&yard), before);
    nothing_is_left(&yard, &told);
    // A lock of a command's own, which takes no more than reading.
    let lock = "import fcntl,os,time; f=os.open('.git/config',os.O_RDONLY); fcntl.lockf(f,fcntl.LOCK_SH); \
                open('up','w'); time.sleep(60)";
    let script = format!(
        "python3 -c \"{lock}\" & while test ! -e up; do sleep 0.01; done; {script}; code=$?; kill $!; exit $code"
    );
    let told = yard.shell("a", &script);
    assert_ne!(told.in_tier("a").one("exit"), "0", "{told:?}");
    nothing_is_left(&yard, &told);
    let told = yard.shell("a", "git config user.name Grace");
    assert_eq!(told.in_tier("a").one("exit"), "0", "the control: {told:?}");
}

#[test]
fn settings_stay_read_only_while_and_after_they_are_replaced() {
    let yard = repository("");
    // Each of these changes what it finds open, while git replaces the settings again and again.
    let script = "cd .git; exec 9<config
        (while test ! -e ../end; do echo '[core] pager = evil' >> config; ln config taken; mv config taken; done) 2>/dev/null &
        (while test ! -e ../end; do for f in hooks/config-*; do
            echo evil >> $f; ln $f taken; chmod 777 $f; mv $f taken; rm $f; done; done) 2>/dev/null &
        (while test ! -e ../end; do truncate -c -s +1 config.lock; done) 2>/dev/null &
        n=0; for i in $(seq 40); do git config user.name N$i && n=$((n+1)); done 2>/dev/null
        touch ../end; wait; echo x >> config; echo x > /proc/self/fd/9; rm -f config config.lock taken
        test $n -gt 0 && echo replaced";
    let told = yard.shell("a", script);
    assert_eq!(told.in_tier("a").printed().lines().last(), Some("replaced"), "{told:?}");
    let now = settings(&yard);
    // The name may be lost: a file that grows while git writes it is no longer what git reads.
    assert!(now.contains("[user]"), "{now}");
    let strange = now.lines().filter(|line| line.contains("evil") || *line == "x");
    assert_eq!(strange.count(), 0, "{now}");
    nothing_is_left(&yard, &told);
}

fn mode(bits: u32) -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(bits)
}

#[test]
fn nothing_is_replaced_while_another_cage_relies_on_it() {
    relies_on_it(&repository(""));
    // Such a cage has no place to make new settings ready, and relies on the old ones all the same.
    let yard = repository("");
    std::fs::remove_dir_all(yard.project.join(".git/hooks")).unwrap();
    relies_on_it(&yard);
}

fn relies_on_it(yard: &Yard) {
    let wait = "touch up; while test ! -e done; do sleep 0.01; done; \
                echo evil >> .git/config || echo still read-only";
    let mut other = yard.runner("a", &[], &["sh", "-c", wait]);
    let other = other.stdout(Stdio::piped()).spawn().unwrap();
    until(|| yard.project.join("up").exists());
    std::fs::create_dir_all(yard.project.join(".git/hooks")).unwrap();
    let change = "git config user.name Grace";
    let told = yard.shell("a", change);
    assert_ne!(told.in_tier("a").one("exit"), "0", "{told:?}");
    let refused = told.all("refusal");
    assert!(refused.iter().any(|line| line.contains("while another command runs")), "{told:?}");
    std::fs::write(yard.project.join("done"), "").unwrap();
    let told = other.wait_with_output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("still read-only") && !settings(yard).contains("evil"), "{told}");
    std::fs::remove_file(yard.project.join(".git/config.lock")).unwrap_or_default();
    // A new folder of hooks was moved aside.
    std::fs::create_dir_all(yard.project.join(".git/hooks")).unwrap();
    let told = yard.shell("a", change);
    assert_eq!(told.in_tier("a").one("exit"), "0", "the control: {told:?}");
}
