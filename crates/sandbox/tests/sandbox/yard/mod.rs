//! A place to try things in: a project, a temporary directory, a home with a secret, and the
//! helper program that makes cages and tries to leave them.

#![allow(dead_code, reason = "each test program uses its part")]
#![allow(clippy::unwrap_used)]

pub mod dns;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The helper, as cargo built it.
pub const ATTEMPT: &str = env!("CARGO_BIN_EXE_sandbox-attempt");
/// What must never be read.
pub const SECRET: &str = "a-secret-of-the-home";
/// Both tiers, since every promise is kept or named in each.
pub const TIERS: [&str; 2] = ["a", "b"];

/// The directories of one test.
pub struct Yard {
    dir: tempfile::TempDir,
    pub root: PathBuf,
    pub project: PathBuf,
    pub temp: PathBuf,
    pub home: PathBuf,
    pub secret: PathBuf,
    /// A file outside every grant.
    pub canary: PathBuf,
    /// The helper, inside the project, where a cage can run it.
    pub inside: PathBuf,
}

impl Yard {
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// A yard in this directory.
    pub fn within(place: &Path) -> Self {
        let dir = tempfile::tempdir_in(place).expect("a temporary directory");
        let root = dir.path().canonicalize().unwrap();
        let place = |name: &str| {
            let path = root.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (project, temp, home) = (place("project"), place("temp"), place("home"));
        let secret = home.join(".secret");
        std::fs::write(&secret, SECRET).unwrap();
        let canary = root.join("canary");
        std::fs::write(&canary, "untouched").unwrap();
        let inside = project.join("attempt");
        // By another process: a test that forks meanwhile would hold a descriptor of this one open
        // for writing, and the copy could not be started ("text file busy").
        let copied = Command::new("cp").arg(ATTEMPT).arg(&inside).status().expect("`cp` runs");
        assert!(copied.success(), "the helper, built by cargo, is copied");
        Self { dir, root, project, temp, home, secret, canary, inside }
    }

    /// The words that describe this yard to the helper.
    fn words(&self, tier: &str) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        [
            ("tier", tier.to_owned()),
            ("project", text(&self.project)),
            ("temp", text(&self.temp)),
            ("home", text(&self.home)),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }

    /// A runner, not yet started.
    pub fn runner(&self, tier: &str, options: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(ATTEMPT);
        command.arg("cage").args(self.words(tier)).args(options).arg("--").args(program);
        command
    }

    /// Runs a script in a cage, on a kernel that lacks something.
    pub fn lacking(&self, kernel: &str, tier: &str, script: &str) -> Told {
        self.lacking_with(kernel, tier, &[], script)
    }

    /// The same with options. A kernel that lacks several things is named `one under other`.
    pub fn lacking_with(&self, kernel: &str, tier: &str, options: &[&str], script: &str) -> Told {
        let inner = self.runner(tier, options, &["sh", "-c", script]);
        let out = Command::new(ATTEMPT)
            .arg("under")
            .args(kernel.split(" "))
            .args(inner.get_args())
            .output();
        Told::from(&out.unwrap())
    }

    /// Runs a program in a cage.
    pub fn cage(&self, tier: &str, options: &[&str], program: &[&str]) -> Told {
        Told::from(&self.runner(tier, options, program).output().unwrap())
    }

    /// Runs a shell script in a cage.
    pub fn shell(&self, tier: &str, script: &str) -> Told {
        self.cage(tier, &[], &["sh", "-c", script])
    }

    /// Lets the helper try an act in a cage; the word after the act's name.
    pub fn caged(&self, tier: &str, act: &[&str]) -> String {
        self.caged_with(tier, &[], act)
    }

    /// The same with options.
    pub fn caged_with(&self, tier: &str, options: &[&str], act: &[&str]) -> String {
        let program = [&[self.inside.to_str().unwrap(), "try"], act].concat();
        let told = self.cage(tier, options, &program);
        let line = told.all("out").into_iter().next();
        line.unwrap_or_else(|| panic!("{act:?} said nothing: {told:?}"))
            .split_once(": ")
            .unwrap()
            .1
            .to_owned()
    }

    /// Locks the helper by a profile and lets it try an act.
    pub fn entered(&self, profile: &str, act: &[&str]) -> String {
        self.entered_with(profile, &[], act).one(act[0])
    }

    /// The same with options, and with all that is said of the lock.
    pub fn entered_with(&self, profile: &str, options: &[&str], act: &[&str]) -> Told {
        let out = Command::new(ATTEMPT)
            .args(["enter", "profile", profile])
            .args(self.words("a"))
            .args(options)
            .arg("--")
            .args(act)
            .output()
            .unwrap();
        Told::from(&out)
    }

    /// The positive control: the same act without a cage.
    pub fn free(&self, act: &[&str]) -> String {
        let out = Command::new(ATTEMPT).arg("try").args(act).output().unwrap();
        Told::from(&out).one(act[0])
    }

    /// Nothing outside was changed.
    pub fn canary_is_untouched(&self) {
        assert_eq!(std::fs::read_to_string(&self.canary).unwrap(), "untouched");
    }
}

/// What the helper told: names and values, in order.
#[derive(Debug)]
pub struct Told(Vec<(String, String)>);

impl From<&Output> for Told {
    fn from(out: &Output) -> Self {
        let text = String::from_utf8_lossy(&out.stdout);
        let complaint = String::from_utf8_lossy(&out.stderr);
        assert!(!complaint.contains("panicked"), "{complaint}");
        Self(
            text.lines()
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }
}

impl Told {
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    pub fn one(&self, name: &str) -> String {
        match self.all(name).as_slice() {
            [value] => (*value).to_owned(),
            other => panic!("{name}: {other:?} in {self:?}"),
        }
    }

    /// What the command printed, by line.
    pub fn printed(&self) -> String {
        self.all("out").join("\n")
    }

    /// The tier that was asked for is the tier that holds.
    pub fn in_tier(&self, tier: &str) -> &Self {
        assert_eq!(self.one("tier"), tier.to_uppercase(), "{self:?}");
        self
    }
}

/// Processes of the machine whose command line contains `mark`, without those that are gone.
pub fn processes_with(mark: &str) -> HashMap<u32, String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(mark).then_some((pid, line))
        })
        .collect()
}

/// A number that no other process has in its arguments.
pub fn mark() -> String {
    let nanos =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    // A time to sleep that nobody else asks for, unique in its fraction.
    format!("3600.{nanos}")
}

/// A Python program in a cage.
pub fn python(yard: &Yard, tier: &str, options: &[&str], program: &str) -> Told {
    yard.cage(tier, options, &["python3", "-c", program])
}

/// The bound that a call was ended for.
pub fn ended_for(told: &Told) -> String {
    let line = told.one("exceeded");
    assert_eq!(told.one("survivors"), "0");
    line.split(' ').next().unwrap().to_owned()
}
