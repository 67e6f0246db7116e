//! The demo's files: a project, a home with a secret, and agentd's state, in one temporary
//! directory. Calls also try to create files outside of it.

use crate::cli_error::CliError;
use crate::context::CliContext;
use config::{Dirs, Environment};
use data_encoding::HEXLOWER;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The script of the project before the model's edit.
const SCRIPT: &str = "#!/bin/sh\n# Greets whoever runs it.\n# TODO: greet\n";

/// The temporary directory, removed at the end unless `--keep` is given.
#[derive(Debug)]
pub(super) struct DemoScene {
    root: PathBuf,
    /// Where calls try to write: a directory of the machine that every command sees.
    pub(super) outside: PathBuf,
    /// In the secret and nowhere else.
    pub(super) canary: String,
    kept: bool,
}

impl DemoScene {
    pub(super) fn make() -> Result<Self, CliError> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes)
            .map_err(|error| CliError::internal(format!("no random numbers: {error}")))?;
        let hex = HEXLOWER.encode(&bytes);
        let (name, canary) = hex.split_at(12);
        let root = temporary().join(format!("agentd-demo-{name}"));
        let (outside, canary) = (PathBuf::from("/etc"), format!("canary-{canary}"));
        let scene = Self { root, outside, canary, kept: false };
        scene.fill().map_err(|error| {
            CliError::config(format!("cannot make {}: {error}", scene.root.display()))
                .hint("set TMPDIR to a directory of your own")
        })?;
        Ok(scene)
    }

    fn fill(&self) -> io::Result<()> {
        let make = |dir: &Path| DirBuilder::new().mode(0o700).create(dir);
        make(&self.root)?;
        for dir in ["project", "home", "home/.ssh", "state", "config", "run"] {
            make(&self.root.join(dir))?;
        }
        fs::write(self.project().join("greet.sh"), SCRIPT)?;
        let secret =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.secret());
        io::Write::write_all(&mut secret?, format!("{}\n", self.canary).as_bytes())?;
        // A copy of this program, so that the attempt to connect needs no other.
        let reach = self.project().join("reach");
        fs::copy(std::env::current_exe()?, &reach)?;
        fs::set_permissions(&reach, fs::Permissions::from_mode(0o755))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// How the names begin that calls try to make outside.
    pub(super) fn outside(&self) -> PathBuf {
        self.outside.join(self.root.file_name().unwrap_or_default())
    }

    /// How many there are.
    pub(super) fn made_outside(&self) -> io::Result<usize> {
        let own = self.outside();
        let beginning = own.file_name().unwrap_or_default().to_string_lossy();
        let names = fs::read_dir(&self.outside)?.flatten().map(|entry| entry.file_name());
        Ok(names.filter(|name| name.to_string_lossy().starts_with(&*beginning)).count())
    }

    pub(super) fn secret(&self) -> PathBuf {
        self.root.join("home/.ssh/id_demo")
    }

    /// Keeps the directory when the demo is over.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    /// The variables that make this world agentd's, over those of the caller.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let set =
            |name: &str, dir: &str| (name.to_owned(), self.root.join(dir).display().to_string());
        vec![
            set("HOME", "home"),
            set("XDG_STATE_HOME", "state"),
            set("XDG_CONFIG_HOME", "config"),
            set("XDG_RUNTIME_DIR", "run"),
        ]
    }

    /// The context of a process with these variables.
    pub(super) fn context(&self) -> Result<CliContext, CliError> {
        let kept = ["PATH", "LANG", "TERM", "AGENTD_SANDBOX_TIER"];
        let kept =
            kept.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let environment: Environment = kept.chain(self.variables()).collect();
        let dirs = Dirs::resolve(&environment)?;
        Ok(CliContext { environment, dirs })
    }
}

impl Drop for DemoScene {
    fn drop(&mut self) {
        if !self.kept {
            // An overlay leaves a directory that its own user cannot enter. Leftovers are in the system's temporary
            // directory, which the system cleans.
            let _ = sandbox::remove_tree(&self.root);
        }
    }
}

/// The real path of the temporary directory, if it needs no quoting in a shell script; else `/tmp`.
fn temporary() -> PathBuf {
    let plain = |dir: &PathBuf| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        // The socket's path must fit its field.
        dir.to_str().is_some_and(|text| text.len() < 40 && text.chars().all(plain))
    };
    let named = fs::canonicalize(std::env::temp_dir()).ok();
    named.filter(plain).unwrap_or_else(|| PathBuf::from("/tmp"))
}
