//! `agentd acp --setup`: asks at a terminal for vendor and key, and writes both down. Editors start it so, where a person
//! has not set a key.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use config::{NeedsKey, ProviderChoice, VENDORS, Vendor, set_provider};
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Asks, and writes.
pub(crate) fn main() -> Result<CliExit, CliError> {
    if !io::stdin().is_terminal() {
        return Err(CliError::user("--setup asks at a terminal")
            .hint("set provider.name and provider.key_file in the configuration instead"));
    }
    let context = CliContext::of_process()?;
    let file = context.dirs.user_file().ok_or_else(|| {
        CliError::config("there is no place for your configuration").hint("set HOME")
    })?;
    let names: Vec<&str> = VENDORS.iter().map(|vendor| vendor.name).collect();
    let first = names.first().copied().unwrap_or_default();
    let vendor = loop {
        let said = asked(&format!("Vendor ({}) [{first}]: ", names.join(", ")))?;
        let wanted = if said.is_empty() { first } else { said.as_str() };
        match VENDORS.iter().find(|vendor| vendor.name == wanted) {
            Some(vendor) => break vendor,
            None => eprintln!("there is no vendor {wanted:?}"),
        }
    };
    let model = match vendor.model {
        Some(_) => None,
        None => Some(required(&format!("Model, by {}'s name for it: ", vendor.title))?),
    };
    let key_file = match vendor.needs_key {
        NeedsKey::Never => None,
        NeedsKey::Always | NeedsKey::Remote => Some(write_key(&file, vendor)?),
    };
    let named = key_file.as_ref().map(|path| path.to_str().ok_or(path)).transpose();
    let named = named.map_err(|path| {
        CliError::config(format!(
            "the path {} is no UTF-8, as the configuration has to be",
            path.display()
        ))
    })?;
    let choice = ProviderChoice { vendor: vendor.name, model: model.as_deref(), key_file: named };
    set_provider(&file, choice).map_err(|error| CliError::config(chain(&error)))?;
    eprintln!("agentd: {} names {} now", file.display(), vendor.title);
    Ok(CliExit::Done)
}

/// Asks for the key, and keeps it in a file that only this user reads.
fn write_key(config: &Path, vendor: &Vendor) -> Result<PathBuf, CliError> {
    let path = config.with_file_name(format!("key-{}", vendor.name));
    if path.exists() {
        let said =
            asked(&format!("{} is there. Write a new key over it? [y/N]: ", path.display()))?;
        if !matches!(said.as_str(), "y" | "Y" | "yes") {
            return Ok(path);
        }
    }
    eprint!("Key of {} (not shown): ", vendor.title);
    let key = without_echo(read_line)?;
    eprintln!();
    if key.is_empty() {
        return Err(CliError::user("the key is empty; nothing was written"));
    }
    let failed = |error: io::Error| {
        CliError::config(format!("{} cannot be written: {error}", path.display()))
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
    let written = file.write_all(format!("{key}\n").as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&new, &path)).map_err(failed)?;
    Ok(path)
}

fn required(question: &str) -> Result<String, CliError> {
    loop {
        let said = asked(question)?;
        if !said.is_empty() {
            return Ok(said);
        }
    }
}

fn asked(question: &str) -> Result<String, CliError> {
    eprint!("{question}");
    read_line()
}

/// A line without the space around it.
fn read_line() -> Result<String, CliError> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Err(CliError::user("the input has ended; nothing was written")),
        Ok(_) => Ok(line.trim().to_owned()),
        Err(error) => Err(CliError::user(format!("the terminal cannot be read: {error}"))),
    }
}

/// Does something while the terminal shows nothing of what is typed.
fn without_echo<T>(act: impl FnOnce() -> Result<T, CliError>) -> Result<T, CliError> {
    let failed = |errno: nix::Error| {
        CliError::user(format!("the terminal cannot be told to hide the key: {errno}"))
    };
    let before = tcgetattr(io::stdin()).map_err(failed)?;
    let mut hidden = before.clone();
    hidden.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(io::stdin(), SetArg::TCSANOW, &hidden).map_err(failed)?;
    let done = act();
    tcsetattr(io::stdin(), SetArg::TCSANOW, &before).map_err(failed)?;
    done
}
