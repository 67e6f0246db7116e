//! What a cage costs, against the same without one and against bubblewrap: `cargo bench -p sandbox`.
//! Each row says its target, PASS or MISS. What a row needs and is not installed is said in the row:
//! bubblewrap (`bwrap`), `git`, `rg`, `make` and `gcc`. Rounds with and without a cage take turns, so that
//! a machine's bad minute is in both.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ATTEMPT: &str = env!("CARGO_BIN_EXE_sandbox-attempt");
/// Files that are looked through.
const FILES: usize = 5000;
/// Sources of the small build.
const SOURCES: usize = 12;

fn main() {
    println!("| Figure | Value | Target | | Baseline of the same run |");
    println!("|---|---|---|---|---|");
    let bare = Place::bare();
    for (tier, most) in [("b", 1.2), ("a", 2.5)] {
        from_go_to_exec(&bare, tier, most);
    }
    against_bubblewrap(&bare);
    let place = Place::filled();
    for tier in ["b", "a"] {
        work(&place, tier, "git status", &["git"], "git status --short >/dev/null", 10);
        work(&place, tier, "rg over 5,000 files", &["rg"], "rg -c needle . >/dev/null", 5);
        // Each start is looked at by the listener before it goes on.
        work(&place, tier, "a shell that starts programs", &[], "/bin/true", 100);
        let build = "rm -f *.o all && make -s -j2 all";
        work(&place, tier, "a small build", &["make", "gcc"], build, 2);
    }
}

/// One line of the table. Smaller is better.
fn row(figure: &str, value: f64, target: f64, baseline: &str) {
    let verdict = if value <= target { "PASS" } else { "MISS" };
    println!("| {figure} | {value:.2} x | <= {target} x | {verdict} | {baseline} |");
}

fn absent(figure: &str, target: f64, program: &str) {
    println!("| {figure} | | <= {target} x | {program} is not installed | none |");
}

/// A project and a temporary directory.
struct Place {
    _dir: tempfile::TempDir,
    project: PathBuf,
    temp: PathBuf,
}

impl Place {
    /// With git's folder, which is protected, and nothing else in it.
    fn bare() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (project, temp) = (root.join("project"), root.join("temp"));
        for made in [&project, &project.join(".git"), &temp] {
            std::fs::create_dir(made).unwrap();
        }
        Self { _dir: dir, project, temp }
    }

    /// With something to work on.
    fn filled() -> Self {
        let place = Self::bare();
        let project = &place.project;
        for file in 0..FILES {
            let folder = project.join(format!("dir{}", file % 50));
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!("line of file {file}\nhay\nneedle {file}\n").repeat(10);
            std::fs::write(folder.join(format!("{file}.txt")), text).unwrap();
        }
        let (mut objects, mut calls) = (String::new(), String::new());
        for source in 0..SOURCES {
            let text = format!(
                "#include <stdio.h>\nint f{source}(void) {{ return puts(\"{source}\"); }}\n"
            );
            std::fs::write(project.join(format!("f{source}.c")), text).unwrap();
            write!(objects, " f{source}.o").unwrap();
            write!(calls, "int f{source}(void); ").unwrap();
        }
        std::fs::write(
            project.join("main.c"),
            format!("{calls}int main(void) {{ return f0(); }}\n"),
        )
        .unwrap();
        std::fs::write(
            project.join("Makefile"),
            format!("all: main.o{objects}\n\tgcc -o all $^\n"),
        )
        .unwrap();
        if is_installed("git") {
            let made =
                "git init -q . && git add . && git -c user.name=t -c user.email=t@t commit -qm x";
            assert!(shell(project, made).status().unwrap().success());
        }
        place
    }

    /// The words that describe it to the helper.
    fn words(&self, tier: &str) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        [("tier", tier.to_owned()), ("project", text(&self.project)), ("temp", text(&self.temp))]
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }

    /// A shell's script in a cage.
    fn caged(&self, tier: &str, script: &str) -> Command {
        let mut command = Command::new(ATTEMPT);
        command.arg("cage").args(self.words(tier)).args(["--", "/bin/sh", "-c", script]);
        command
    }
}

fn shell(project: &Path, script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).current_dir(project).stdin(Stdio::null());
    // As the helper's own commands have them.
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/nonexistent");
    command
}

fn is_installed(program: &str) -> bool {
    let found = shell(Path::new("/"), &format!("command -v {program}")).output().unwrap();
    found.status.success()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// From the word to go to the running program, against a plain spawn by the same process.
fn from_go_to_exec(place: &Place, tier: &str, most: f64) {
    let (plain, caged) = (0..200).map(|_| clock(place, tier)).map(|at| (at[0], at[3])).unzip();
    let (plain, caged) = (median(plain), median(caged));
    let baseline = format!("plain spawn {plain:.0} us");
    let figure = format!("from Go to exec, tier {}", tier.to_uppercase());
    row(&figure, caged / plain, most, &baseline);
}

/// Microseconds of one plain `true` and one in a cage, by one process: plain spawn, and to its end;
/// `prepare`, exec behind it, exec in all, end in all.
fn clock(place: &Place, tier: &str) -> Vec<f64> {
    let out = Command::new(ATTEMPT).arg("clock").args(place.words(tier)).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.split_whitespace().map(|one| one.parse().unwrap()).collect()
}

/// `true` in a cage of tier A, against a whole one in bubblewrap, which has no Landlock, no filter and no
/// record of refusals. From Go on, since a runner waits with its cage while the decision is written; and all
/// of it, its cage's making and the helper's own start included.
fn against_bubblewrap(place: &Place) {
    // The other way round: bubblewrap takes at least 1.5 times as long.
    const MOST: f64 = 0.67;
    let figure = "from Go to the end of `true`, tier A, of all of it in bubblewrap";
    if !is_installed("bwrap") {
        return absent(figure, MOST, "bwrap");
    }
    let bubble = || {
        let mut command = Command::new("bwrap");
        command.args(["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]);
        command.args(["--die-with-parent", "--new-session", "--clearenv"]);
        for system in ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc"] {
            command.args(["--ro-bind-try", system, system]);
        }
        for system in ["/sys/devices/system", "/sys/fs/cgroup"] {
            command.args(["--ro-bind-try", system, system]);
        }
        command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/dev/shm"]);
        for own in [&place.project, &place.temp] {
            command.arg("--bind").arg(own).arg(own);
        }
        command.arg("--ro-bind").arg(place.project.join(".git")).arg(place.project.join(".git"));
        command.arg("--chdir").arg(&place.project).arg("/bin/true");
        command
    };
    let (mut theirs, mut from_go, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..100 {
        theirs.push(took(bubble()));
        let at = clock(place, "a");
        from_go.push((at[5] - at[2]) / 1e6);
        let mut command = Command::new(ATTEMPT);
        command.arg("cage").args(place.words("a")).args(["--", "/bin/true"]);
        all.push(took(command));
    }
    let theirs = median(theirs);
    let baseline = format!("bubblewrap {:.2} ms", theirs * 1e3);
    row(figure, median(from_go) / theirs, MOST, &baseline);
    let all = median(all) / theirs;
    println!(
        "| the same with the cage's making and a process's start | {all:.2} x | none | | {baseline} |"
    );
}

fn took(mut command: Command) -> f64 {
    let begun = Instant::now();
    let out = command.stdin(Stdio::null()).output().unwrap();
    let took = begun.elapsed().as_secs_f64();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    took
}

/// What a command does takes, inside one call and outside of any. Told by the script itself: the cage's
/// own making is another figure.
fn work(place: &Place, tier: &str, what: &str, needs: &[&str], script: &str, rounds: u32) {
    const MOST: f64 = 1.35;
    let figure = format!("{what}, inside a call of tier {}", tier.to_uppercase());
    if let Some(program) = needs.iter().find(|program| !is_installed(program)) {
        return absent(&figure, MOST, program);
    }
    let timed = format!(
        "export TMPDIR={}; begun=$(date +%s%N); for round in $(seq {rounds}); do {script} || exit 9; done; \
         echo took $(( $(date +%s%N) - begun ))",
        place.temp.display()
    );
    let (mut plain, mut caged) = (Vec::new(), Vec::new());
    for round in 0..8 {
        let outside = said(shell(&place.project, &timed));
        let inside = said(place.caged(tier, &timed));
        // The first fills caches.
        if round > 0 {
            plain.push(outside["took"]);
            caged.push(inside["out: took"]);
        }
    }
    let (plain, caged) = (median(plain), median(caged));
    let once = Duration::from_nanos(plain as u64) / rounds;
    let baseline = format!("outside {:.2} ms", once.as_secs_f64() * 1e3);
    row(&figure, caged / plain, MOST, &baseline);
}

/// Its lines `NAME NUMBER`.
fn said(mut command: Command) -> HashMap<String, f64> {
    let out = command.output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let said: HashMap<String, f64> = text
        .lines()
        .filter_map(|line| {
            let (name, number) = line.rsplit_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        })
        .collect();
    let told = said.keys().any(|name| name.ends_with("took"));
    assert!(told, "{text} {}", String::from_utf8_lossy(&out.stderr));
    said
}
