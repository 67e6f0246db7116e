//! `agentd mcp install`: fetches the package of a server once, with the hashes of a lock, so that the server
//! starts without a registry. The steps are in `main`, top to bottom.

mod manager;
mod npm;
mod pypi;
mod request;
pub(super) mod store;

use super::{edit, not_edited, own_file};
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::output::print;
use config::secrets::Redactor;
use config::{
    McpServerConfig, NewServer, PackageSource, ProjectAccess, ServerPackage, ServerPlace,
};
use manager::PackageManager;
use protocol::hidden::on_screen;
use request::PackageRequest;
use serde_json::Value;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use store::{NewPackage, PackageStore};

/// What the flags say.
pub(super) struct InstallArgs {
    pub(super) name: String,
    /// `--package`.
    pub(super) package: Option<String>,
    pub(super) consent: InstallConsent,
    /// The arguments behind `--`.
    pub(super) args: Vec<String>,
}

/// Use of the flag `--yes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstallConsent {
    Ask,
    Given,
}

/// The packages of a lock.
#[derive(Debug)]
pub(super) struct ResolvedPackage {
    /// The name of the server's, as the registry has it.
    name: String,
    version: String,
    /// How many they are.
    count: usize,
    /// Those with install scripts.
    scripts: Vec<String>,
}

pub(super) fn main(args: &InstallArgs) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let file = own_file(&context)?;
    let server = config::server_in(&file, &args.name).map_err(|error| not_edited(&error))?;
    let (request, words) = wanted(args, server.as_ref(), &context)?;
    let store = PackageStore::open(&context.dirs)?;
    let new = store.begin()?;
    let manager = PackageManager::new(&context.environment, &new.tree(), &new.home());
    eprintln!("agentd: asks the registry for {}", request.in_words());
    let found = match request.source {
        PackageSource::Npm => npm::resolve(&manager, &request, &new.tree())?,
        PackageSource::Pypi => pypi::resolve(&manager, &request, &new.tree())?,
    };
    let package = recorded(&request, &found, &new)?;
    let dir_name = package.dir_name(&args.name);
    let place = store.root().join(&dir_name);
    print(&plan(args, (&found, &package), &place));
    if !agreed(args.consent)? {
        eprintln!("agentd: nothing is installed; --yes installs it");
        return Ok(CliExit::Failed);
    }
    let (before, program) = match request.source {
        PackageSource::Npm => {
            npm::fetch(&manager)?;
            (Vec::new(), npm::program(&request, &new.tree())?)
        }
        PackageSource::Pypi => {
            pypi::fetch(&manager)?;
            pypi::program(&manager, &request, &new.tree())?
        }
    };
    let program = place.join(program).into_os_string().into_string();
    let program = program
        .map_err(|path| CliError::config(format!("the path {} is not UTF-8", path.display())))?;
    let command: Vec<String> = before.into_iter().chain([program]).chain(words).collect();
    let placed = store.place(&new, &dir_name)?;
    let has_hosts = server.as_ref().is_some_and(|server| !server.hosts.is_empty());
    let written = match server {
        Some(_) => config::install_server(&file, &args.name, (&command, &package)),
        None => {
            let server = new_server(&args.name, command, Some(package.clone()));
            config::add_servers(&file, &[server]).map(|lines| lines.first().copied().unwrap_or(0))
        }
    };
    let line = written.map_err(|error| {
        placed.undo();
        not_edited(&error)
    })?;
    // Its old version, now that the new one stands.
    store::remove_packages(&context.dirs, &args.name, Some(&dir_name))?;
    let (name, package) = (&args.name, package.in_words());
    print(&format!("installed {package} as {name} ({}:{line})\n", file.display()));
    if has_hosts {
        eprintln!("agentd: its `hosts` need no registry any more");
    }
    Ok(CliExit::Done)
}

/// The package, and the arguments of the server.
fn wanted(
    args: &InstallArgs,
    server: Option<&McpServerConfig>,
    context: &CliContext,
) -> Result<(PackageRequest, Vec<String>), CliError> {
    let name = &args.name;
    let named = args.package.as_deref().map(PackageRequest::of_flag).transpose();
    let named = named.map_err(|why| CliError::user(format!("--package {why}")))?;
    let Some(server) = server else {
        let request = named.ok_or_else(|| {
            CliError::user(format!("your configuration file has no server {name} that runs"))
                .hint("--package npm:PACKAGE or --package pypi:PACKAGE adds it")
        })?;
        if !config::is_server_name(name) {
            return Err(CliError::user(format!("a server cannot have the name {name:?}"))
                .hint("take letters, digits, `-` and single `_` between them"));
        }
        let known = Redactor::new().map_err(|error| CliError::internal(error.to_string()))?;
        let server = new_server(name, args.args.clone(), None);
        if config::writes_secret(&server, &known) {
            return Err(edit::has_secret());
        }
        return Ok((request, args.args.clone()));
    };
    let at = format!("{name} ({}:{})", server.by.file, server.by.line);
    let ServerPlace::Program(words) = &server.place else {
        return Err(CliError::user(format!("{at} has a `url`, and no package here")));
    };
    let configured = match &server.package {
        Some(package) => installed(words, package, &at, context)?,
        None => match (PackageRequest::of_command(words), &named) {
            (Ok(found), _) => found,
            (Err(_), Some(request)) if !args.args.is_empty() => {
                (request.clone(), args.args.clone())
            }
            (Err(why), named) => {
                let hint = match named {
                    Some(_) => "name its arguments behind `--`; they take the place of its command",
                    None => "--package npm:PACKAGE or --package pypi:PACKAGE names the package",
                };
                return Err(CliError::user(format!("{at}: {why}")).hint(hint));
            }
        },
    };
    let (found, old) = configured;
    let words = if args.args.is_empty() { old } else { args.args.clone() };
    Ok((named.unwrap_or(found), words))
}

/// The request for a package as it is, and the arguments behind its program.
fn installed(
    words: &[String],
    package: &ServerPackage,
    at: &str,
    context: &CliContext,
) -> Result<(PackageRequest, Vec<String>), CliError> {
    let root = context.dirs.packages().map(|root| root.canonicalize().unwrap_or(root));
    let is_program =
        |word: &String| root.as_ref().is_some_and(|root| Path::new(word).starts_with(root));
    let program = words.iter().position(is_program);
    let request = PackageRequest::exact(package.source, &package.name, &package.version);
    let (Some(program), Some(request)) = (program, request) else {
        return Err(CliError::config(format!("{at} has a `package`, and its command is another"))
            .hint("take `package` out of it, and name its command"));
    };
    let words: Vec<String> = words.iter().skip(program).cloned().collect();
    let bin = words.first().and_then(|word| Path::new(word).file_name()?.to_str());
    let program = match package.source {
        PackageSource::Npm => bin.map(str::to_owned),
        PackageSource::Pypi => bin.and_then(|bin| bin.strip_suffix(".py")).map(str::to_owned),
    };
    Ok((PackageRequest { program, ..request }, words.into_iter().skip(1).collect()))
}

fn new_server(name: &str, command: Vec<String>, package: Option<ServerPackage>) -> NewServer {
    let place = (ProjectAccess::Reads, ServerPlace::Program(command));
    NewServer { package, ..edit::server(name.to_owned(), Vec::new(), &[], place) }
}

/// The record of a package whose lock is written.
fn recorded(
    request: &PackageRequest,
    found: &ResolvedPackage,
    new: &NewPackage,
) -> Result<ServerPackage, CliError> {
    let lock = new.tree().join(request.source.lock_file());
    let bytes = std::fs::read(&lock).map_err(|error| unreadable(&lock, &error))?;
    Ok(ServerPackage {
        source: request.source,
        name: found.name.clone(),
        version: found.version.clone(),
        lock: ServerPackage::digest(&bytes),
    })
}

/// What would be installed.
fn plan(
    args: &InstallArgs,
    (found, package): (&ResolvedPackage, &ServerPackage),
    place: &Path,
) -> String {
    let others = match found.count.saturating_sub(1) {
        0 => "no other package".to_owned(),
        1 => "1 package that it needs".to_owned(),
        others => format!("{others} packages that it needs"),
    };
    let scripts = match found.scripts.as_slice() {
        [] => String::new(),
        scripts => format!("; {} would have some", scripts.join(", ")),
    };
    format!(
        "{}: {} and {others}\n  install scripts do not run{scripts}\n  hashes: {}, SHA-256 {}\n  place: {}\n",
        args.name,
        package.in_words(),
        package.source.lock_file(),
        package.lock,
        place.display()
    )
}

/// The person's word.
fn agreed(consent: InstallConsent) -> Result<bool, CliError> {
    if consent == InstallConsent::Given {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let failed = |error: io::Error| CliError::internal(error.to_string());
    let mut err = io::stderr().lock();
    err.write_all(b"Install it? [y/N] ").and_then(|()| err.flush()).map_err(failed)?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(failed)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// A package that cannot be a server here.
fn unusable(request: &PackageRequest, why: &str) -> CliError {
    CliError::user(format!("{} cannot be installed: {}", request.in_words(), on_screen(why)))
        .exit(CliExit::Failed)
        .hint("nothing was changed")
}

fn write(file: &Path, text: &str) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        CliError::config(format!("{} cannot be written: {error}", file.display()))
    };
    std::fs::write(file, text).map_err(failed)
}

fn read_json(file: &Path) -> Result<Value, CliError> {
    let bytes = std::fs::read(file).map_err(|error| unreadable(file, &error))?;
    serde_json::from_slice(&bytes).map_err(|error| unreadable(file, &error.into()))
}

fn unreadable(file: &Path, error: &io::Error) -> CliError {
    CliError::config(format!("{} cannot be read: {error}", file.display())).exit(CliExit::Failed)
}
