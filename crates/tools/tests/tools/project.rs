//! A temporary project to run tools in, and its neighbours that no tool may reach.

use protocol::call::{Outcome, RunReport};
use protocol::confinement::Profile;
use protocol::tool::JudgedPath;
use sandbox::CallScope;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tool_specs::interpret;
use tools::{Cancel, Engine, ToolRunRequest};

pub struct Project {
    _dir: tempfile::TempDir,
    pub place: CallScope,
    pub judged: Vec<JudgedPath>,
    pub max_result_chars: u32,
    pub cancel: Cancel,
    pub engine: Engine<'static>,
}

impl Project {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["proj", "proj-evil", "added", "temp", "proj/state"] {
            std::fs::create_dir(base.join(name)).unwrap();
        }
        std::fs::remove_dir(base.join("proj/state")).unwrap();
        std::fs::write(base.join("secret"), "the secret\n").unwrap();
        std::fs::write(base.join("proj-evil/secret"), "the secret\n").unwrap();
        let place = CallScope {
            project: base.join("proj"),
            added: vec![base.join("added")],
            temp: base.join("temp"),
            private: vec![],
            home: None,
            caches: None,
            withheld: vec![base.join("proj/state")],
        };
        Self {
            _dir: dir,
            place,
            judged: Vec::new(),
            max_result_chars: 30_000,
            cancel: Cancel::new().unwrap(),
            engine: Engine::Without,
        }
    }

    /// With these files, directories made as needed.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let project = Self::new();
        for (name, content) in files {
            project.put(name, content.as_bytes());
        }
        project
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.project.join(name)
    }

    pub fn base(&self) -> &Path {
        self.place.project.parent().unwrap()
    }

    pub fn put(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a call; none may take longer than a minute on a busy machine.
    pub fn run(&self, tool: &str, input: Value) -> RunReport {
        let input = input.to_string();
        let profile = interpret(tool, &input).map_or(Profile::Query, |call| call.spec.profile);
        let order = ToolRunRequest {
            profile,
            tool,
            input: &input,
            judged: &self.judged,
            max_result_chars: self.max_result_chars,
            denied: tools::DeniedReads::NONE,
        };
        let begin = Instant::now();
        let report = tools::run(&order, &self.place, &self.cancel, self.engine);
        assert!(begin.elapsed() < Duration::from_secs(60), "{tool} {input} took too long");
        report
    }

    /// Runs a call that must succeed, and gives its text.
    pub fn ok(&self, tool: &str, input: Value) -> String {
        let result = self.run(tool, input).result;
        assert_eq!(
            (result.outcome, result.is_error, result.code),
            (Outcome::Done, false, None),
            "{}",
            result.text
        );
        result.text
    }

    /// Runs a call that must fail with this code, and gives its text.
    pub fn fails(&self, tool: &str, input: Value, code: &str) -> String {
        let result = self.run(tool, input).result;
        assert_eq!(result.code.as_deref(), Some(code), "{}", result.text);
        assert!(result.is_error);
        assert_ne!(result.outcome, Outcome::Done);
        assert!(result.text.contains(&format!("[{code}]")), "{}", result.text);
        result.text
    }

    /// The names in a directory of the project, sorted.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path(directory))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// True for a process without permission checks; a test of a refusal by mode needs an unprivileged
/// user.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Creates a FIFO without a writer.
pub fn fifo(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
}
