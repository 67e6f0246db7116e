//! `agentd -p` and `agentd run`: one prompt, one answer, by the daemon where it runs and else by a
//! supervisor of its own.

use crate::cli::{Format, Net, ProviderFlag, RunFlags};
use crate::daemon;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::place::{KEY_VARIABLES, Place, TrustFlag, real_dir};
use crate::prompt;
use crate::signals::HeldSignals;
use client::{
    Colour, Finished, JsonView, Launch, OwnSupervisors, RunError, StreamJsonView, Task, Terminal,
    TextView, View, beside_self, failure_line, seal_key,
};
use config::{Config, KeyVariable, ProviderName};
use protocol::client::{FailedKind, Opening, ProjectTrust, Start};
use protocol::confinement::{FilePath, Network};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use protocol::provider::Paper;
use protocol::session::OpenTurn;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Runs it, and says how it ended.
pub(crate) fn main(given: Option<&str>, flags: &RunFlags) -> Result<Exit, Failure> {
    match one_shot(given, flags) {
        Ok(finished) => Ok(Exit::of_run(&finished)),
        Err(failure) => {
            // A program that reads results gets one for this too.
            if flags.output_format != Format::Text {
                let _ = io::stdout().write_all(failure_line(failure.message()).as_bytes());
            }
            Err(failure)
        }
    }
}

fn one_shot(given: Option<&str>, flags: &RunFlags) -> Result<Finished, Failure> {
    let prompt = prompt::read(given)?;
    let place = Place::of_process()?;
    place.writable_state()?;
    let task = task(&place, flags, prompt)?;
    let mut view = view(flags.output_format);
    let executable = beside_self("agentd-supervisor")?;
    let mut daemon = daemon::of(&place, &executable)?;
    if daemon.find()?.is_some() {
        let signals = held_signals()?;
        let ran = client::run(&mut daemon, task, view.as_mut(), |inputs| signals.deliver(inputs));
        return ran.map_err(|error| failure(&error));
    }
    drive(task, view.as_mut())
}

fn held_signals() -> Result<HeldSignals, Failure> {
    HeldSignals::hold()
        .map_err(|error| Failure::internal(format!("cannot hold signals back: {error}")))
}

/// Brings a supervisor up, runs the task on it, and takes it down again whatever came of it.
pub(crate) fn drive(task: Task, view: &mut dyn View) -> Result<Finished, Failure> {
    let signals = held_signals()?;
    let executable = beside_self("agentd-supervisor")?;
    let launch = Launch { executable: &executable, without: KEY_VARIABLES, with: &[] };
    let mut supervisors = OwnSupervisors::start(launch)?;
    let ran = client::run(&mut supervisors, task, view, |inputs| signals.deliver(inputs));
    let ended = supervisors.end();
    let finished = ran.map_err(|error| failure(&error))?;
    ended.map_err(|error| {
        Failure::internal(format!("cannot tell how agentd-supervisor ended: {error}"))
    })?;
    Ok(finished)
}

fn failure(error: &RunError) -> Failure {
    let exit = Exit::of_error(error);
    let message = chain(error);
    match error {
        RunError::Failed { kind, message: _ } => match kind {
            FailedKind::Configuration | FailedKind::SandboxUnavailable => {
                Failure::config(message).exit(exit)
            }
            FailedKind::Usage | FailedKind::NotFound | FailedKind::Held => {
                Failure::user(message).exit(exit)
            }
            FailedKind::Internal => Failure::internal(message).exit(exit),
        },
        RunError::Lost(_) | RunError::NoSupervisor(_) => Failure::internal(message)
            .exit(exit)
            .hint("the session is on disk; `--resume` with its id goes on"),
        RunError::Stopped(_) => Failure::user(message).exit(exit),
    }
}

fn view(format: Format) -> Box<dyn View> {
    match format {
        Format::Text => {
            let is = |terminal| if terminal { Terminal::Yes } else { Terminal::No };
            let variable = |name: &str| std::env::var(name).ok();
            let colour = Colour::decide(is(io::stderr().is_terminal()), variable);
            Box::new(TextView::new(colour, is(io::stdout().is_terminal())))
        }
        Format::Json => Box::new(JsonView),
        Format::StreamJson => Box::new(StreamJsonView),
    }
}

/// What the flags, the environment and the configuration add up to.
fn task(place: &Place, flags: &RunFlags, prompt: String) -> Result<Task, Failure> {
    let named = flags.project.as_deref().unwrap_or(Path::new("."));
    let project = real_dir(named, "the project directory")?;
    let mut added = Vec::new();
    for dir in &flags.add_dir {
        added.push(FilePath::from(real_dir(dir, "the added directory")?));
    }
    let settings = settings(flags)?;
    let trust = if flags.trust_project { TrustFlag::Given } else { TrustFlag::NotGiven };
    let config = place.load(&project, &settings, trust)?;
    let key = key(&config)?;
    let (papers, descriptors) = papers(place, flags, &config, key)?;
    let opening = Opening {
        project: FilePath::from(&project),
        added,
        start: match flags.resume.as_deref() {
            Some(id) => {
                Start::Resume { session: session_id(place, id)?, open_turn: OpenTurn::Waits }
            }
            None => Start::New,
        },
        env: place.passed(key.map(|key| key.name)),
        settings,
        mode: flags.permission_mode,
        network: flags.net.map(|net| match net {
            Net::Off => Network::Off,
            Net::On => Network::On,
        }),
        trust: match trust {
            TrustFlag::Given => ProjectTrust::ThisRun,
            TrustFlag::NotGiven => ProjectTrust::AsRecorded,
        },
        audience: Audience::Nobody,
        papers,
    };
    Ok(Task { opening, papers: descriptors, prompt, time_limit: flags.timeout })
}

/// The flags that are settings, in the words of the configuration.
fn settings(flags: &RunFlags) -> Result<Vec<(String, String)>, Failure> {
    let mut settings = Vec::new();
    let mut set = |key: &str, value: &str| settings.push((key.to_owned(), value.to_owned()));
    match (flags.provider, &flags.replay) {
        (Some(ProviderFlag::Replay), None) => {
            return Err(Failure::user("--provider replay has no recording to play")
                .hint("name one with --replay FILE; --record FILE makes one"));
        }
        (Some(ProviderFlag::Replay) | None, Some(_)) => set("provider.name", "replay"),
        (Some(provider), Some(_)) => {
            return Err(Failure::user(format!(
                "--replay plays a recording in place of --provider {}",
                provider.word()
            ))
            .hint("leave one of the two out"));
        }
        (Some(provider), None) => set("provider.name", provider.word()),
        (None, None) => {}
    }
    if let Some(model) = &flags.model {
        set("provider.model", model);
    }
    if let Some(rounds) = flags.max_turns {
        set("budget.rounds", &rounds.to_string());
    }
    for rule in &flags.allowed_tools {
        set("permissions.allow", rule);
    }
    Ok(settings)
}

/// The variable that holds the key, where this run needs one.
fn key(config: &Config) -> Result<Option<KeyVariable>, Failure> {
    let ProviderName::Server(_) = config.provider.name else { return Ok(None) };
    let vendor = config.provider.name.vendor();
    match config.provider.key {
        Some(key) => Ok(Some(key)),
        None if config.provider.local && vendor.local_servers_need_no_key() => Ok(None),
        None => Err(Failure::config(format!("there is no key for {}", config.provider.base_url))
            .exit(Exit::KeyRefused)
            .hint(format!("set {}; `agentd demo` needs none", vendor.keys_in_words()))),
    }
}

fn papers(
    place: &Place,
    flags: &RunFlags,
    config: &Config,
    key: Option<KeyVariable>,
) -> Result<(Vec<Paper>, Vec<OwnedFd>), Failure> {
    let mut papers = Vec::new();
    let mut descriptors = Vec::new();
    let mut add = |paper, descriptor| {
        papers.push(paper);
        descriptors.push(descriptor);
    };
    if let Some(key) = key {
        let value = place.environment.get(key.name).unwrap_or_default().as_bytes().trim_ascii();
        let sealed = seal_key(value)
            .map_err(|error| Failure::internal(format!("cannot pass the key on: {error}")))?;
        add(Paper::Key, sealed);
    }
    match (&flags.replay, config.provider.name) {
        (Some(file), _) => {
            let opened = std::fs::File::open(file);
            add(Paper::Replay, opened.map_err(|e| unusable("recording", file, &e))?.into());
        }
        (None, ProviderName::Replay) => {
            return Err(Failure::config("provider.name is \"replay\" and there is no recording")
                .hint("name one with --replay FILE"));
        }
        (None, ProviderName::Server(_)) => {}
    }
    if let Some(file) = &flags.record {
        // A recording holds the conversation, so it is its owner's alone.
        let opened =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
        add(Paper::Record, opened.map_err(|e| unusable("recording", file, &e))?.into());
    }
    Ok((papers, descriptors))
}

fn unusable(what: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::user(format!("the {what} {} cannot be opened: {error}", file.display()))
}

/// The one session whose name begins so.
fn session_id(place: &Place, beginning: &str) -> Result<SessionId, Failure> {
    let entries = std::fs::read_dir(place.sessions_dir());
    let names = entries.into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<String> = names.filter(|name| name.starts_with(beginning)).collect();
    found.sort();
    match found.as_slice() {
        [one] if !beginning.is_empty() => Ok(SessionId(one.clone())),
        [] => Err(Failure::user(format!("there is no session {beginning:?}"))
            .hint("`agentd audit ls` names sessions, and so does each run at its end")),
        several => {
            Err(Failure::user(format!("{} sessions begin with {beginning:?}", several.len()))
                .hint(format!("for example {}", several[..several.len().min(3)].join(", "))))
        }
    }
}
