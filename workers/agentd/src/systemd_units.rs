//! `agentd daemon install` and `uninstall`: systemd's units for the daemon of this user. The first client starts it
//! through the socket.

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use client::{sibling_executable, systemctl};
use nix::unistd::{Uid, User};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The units, by their names.
const UNITS: [(&str, &str); 2] = [
    ("agentd.socket", include_str!("../systemd/agentd.socket")),
    ("agentd.service", include_str!("../systemd/agentd.service")),
];
/// How a unit begins that agentd wrote.
const OWN: &str = "# Written by `agentd daemon install`";

/// Writes the units, and has the user's manager listen at the socket. No daemon may run.
pub(crate) fn install(context: &CliContext) -> Result<(), CliError> {
    let folder = folder(context)?;
    let executable = sibling_executable("agentd")?;
    let wanted = runtime_of_manager(context)?;
    let units = UNITS.map(|(name, text)| Ok((folder.join(name), unit(text, &executable)?)));
    let units = units.into_iter().collect::<Result<Vec<_>, CliError>>()?;
    units.iter().try_for_each(|(path, _)| check_own(path))?;
    let unwritten = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| CliError::user(format!("{path} cannot be written: {error}"))
    };
    fs::create_dir_all(&folder).map_err(unwritten(&folder))?;
    for (path, text) in &units {
        write_whole(path, text).map_err(unwritten(path))?;
        eprintln!("agentd: wrote {}", path.display());
    }
    told(&["daemon-reload"])?;
    told(&["enable", "--now", "agentd.socket"])?;
    eprintln!(
        "agentd: systemd listens at {}; the first client starts the daemon\n\
         agentd: it ends with your last login, unless you run `loginctl enable-linger`",
        wanted.join("socket").display()
    );
    Ok(())
}

/// The units of this user that agentd wrote, to be removed.
pub(crate) struct OwnUnits(Vec<PathBuf>);

impl OwnUnits {
    /// Those that are there. None if there are none.
    pub(crate) fn find(context: &CliContext) -> Result<Option<Self>, CliError> {
        let folder = folder(context)?;
        let mut there: Vec<_> = UNITS.map(|(name, _)| folder.join(name)).into();
        there.retain(|path| path.exists());
        there.iter().try_for_each(|path| check_own(path))?;
        Ok((!there.is_empty()).then_some(Self(there)))
    }

    /// Has the user's manager listen no more: no client starts the daemon again.
    pub(crate) fn stop_listening(&self) -> Result<(), CliError> {
        told(&["disable", "--now", "agentd.socket"])
    }

    /// Removes them.
    pub(crate) fn remove(self) -> Result<(), CliError> {
        for path in self.0 {
            fs::remove_file(&path).map_err(|error| {
                CliError::user(format!("{} cannot be removed: {error}", path.display()))
            })?;
            eprintln!("agentd: removed {}", path.display());
        }
        told(&["daemon-reload"])
    }
}

/// The units that are there.
pub(crate) struct InstalledUnits {
    /// The executable that the service starts, or what is wrong with it.
    pub(crate) executable: Result<PathBuf, String>,
    pub(crate) after_logout: AfterLogout,
}

/// What becomes of the daemon when its user has logged out everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterLogout {
    /// The user's manager goes on: it lingers.
    Stays,
    Ends,
}

/// The units of this user, if the service is there.
pub(crate) fn installed(context: &CliContext) -> Option<InstalledUnits> {
    let service = folder(context).ok()?.join("agentd.service");
    let text = fs::read_to_string(&service).ok()?;
    let named = service.display();
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=\""));
    let path = line.and_then(|line| line.strip_suffix("\" daemon run"));
    let executable = match path.map(|path| PathBuf::from(path.replace("%%", "%"))) {
        Some(path) if path.exists() => Ok(path),
        Some(path) => Err(format!(
            "{named} starts {}, which is gone; `agentd daemon install` writes it anew",
            path.display()
        )),
        None => Err(format!("{named} is not as `agentd daemon install` writes it")),
    };
    // <https://www.freedesktop.org/software/systemd/man/latest/loginctl.html>
    let user = User::from_uid(Uid::current()).ok().flatten();
    let lingers =
        user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user.name).exists());
    let after_logout = if lingers { AfterLogout::Stays } else { AfterLogout::Ends };
    Some(InstalledUnits { executable, after_logout })
}

/// Where the units of this user are.
fn folder(context: &CliContext) -> Result<PathBuf, CliError> {
    let config = context.environment.absolute("XDG_CONFIG_HOME");
    let home = || context.environment.absolute("HOME").map(|home| home.join(".config"));
    let config = config.or_else(home).ok_or_else(|| {
        CliError::config("the folder of systemd's units is unknown").hint("set HOME")
    })?;
    Ok(config.join("systemd/user"))
}

/// The directory in which both the user's manager and clients look for the socket.
fn runtime_of_manager(context: &CliContext) -> Result<PathBuf, CliError> {
    let of_manager = context.environment.absolute("XDG_RUNTIME_DIR").map(|dir| dir.join("agentd"));
    of_manager.filter(|dir| *dir == context.dirs.runtime).ok_or_else(|| {
        CliError::config("XDG_RUNTIME_DIR is not set, or is not yours alone: no systemd manager of this user runs here")
            .hint("log in, as by ssh, rather than by su; `agentd daemon start` needs no systemd")
    })
}

/// The unit's text. In a unit `%` begins a specifier and spaces end a word.
/// <https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html#Command%20lines>
fn unit(text: &str, executable: &Path) -> Result<String, CliError> {
    let path = executable.to_str().filter(|path| !path.contains(['"', '\\', '\n', '$']));
    let path = path.ok_or_else(|| {
        let named = executable.display();
        CliError::user(format!(
            "systemd cannot start {named}: its path has a quote, a backslash, `$` or odd bytes"
        ))
        .hint("install agentd elsewhere")
    })?;
    Ok(text.replace("@AGENTD@", &format!("\"{}\"", path.replace('%', "%%"))))
}

/// An own unit of the person is left as it is.
fn check_own(path: &Path) -> Result<(), CliError> {
    let refused = |why: String| {
        Err(CliError::user(format!("{} {why}", path.display())).hint("move it away, and try again"))
    };
    match fs::read_to_string(path) {
        Ok(text) if text.starts_with(OWN) => Ok(()),
        Ok(_) => refused("was not written by agentd, so it is left as it is".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => refused(format!("cannot be read: {error}")),
    }
}

/// Writes a file whole or not at all.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

fn told(words: &[&str]) -> Result<(), CliError> {
    let line = format!("systemctl --user {}", words.join(" "));
    systemctl(words).map(drop).map_err(|error| {
        CliError::user(format!("`{line}` failed: {error}"))
            .exit(CliExit::Failed)
            .hint("`agentd daemon start` starts a daemon without systemd")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_executable_is_named_so_that_systemd_reads_its_path() {
        let [_, (_, service)] = UNITS;
        let text = unit(service, Path::new("/home/a b/100%/agentd")).unwrap();
        assert!(text.contains("\nExecStart=\"/home/a b/100%%/agentd\" daemon run\n"), "{text}");
        assert!(unit(service, Path::new("/home/a\"b/agentd")).is_err());
    }
}
