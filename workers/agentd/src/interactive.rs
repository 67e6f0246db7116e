//! `agentd`, `agentd new` and `agentd attach`: a user attached to a session of the daemon.

use crate::attach_services::CliServices;
use crate::cli::{RunFlags, SessionFlags};
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag, real_dir};
use crate::daemon;
use crate::fleet_commands;
use crate::open_request::{KeyNeed, open_request, plugin_settings};
use crate::query;
use crate::resumed::resumed;
use crate::sessions;
use crate::signals::BlockedSignals;
use client::{
    AttachArgs, AttachEnd, AttachOptions, Colour, InlineView, Labels, LeaderKey, LeaveReason,
    LineKeys, LinesView, RelaySource, RunFailure, ScreenInput, ScreenItem, ScreenView,
    SupervisorSource, Terminal, TerminalGuard, TerminalMode, ThemeName, fleet_executable,
    sibling_executable,
};
use config::{UiBusy, UiKeys, UiNotify, UiView};
use prompts::{PluginPlace, PromptPlaces};
use protocol::client::{ClientRights, OtherClients, SessionStart, SessionStatus, WhileBusy};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use std::io::{self, IsTerminal};
use std::path::Path;
use terminal::{
    ColourDepth, FullScreen, FullScreenOptions, Mouse, Notify, Title, choose_theme, theme_names,
};

/// For the first session of a project.
const FIRST_START: &str = "\
A session goes on when its terminal closes. Each tool call runs in a sandbox of its own.
Enter sends, Esc stops the turn, ↑ ↓ answer a question, `:help` lists keys and commands.
`agentd init` makes rules for this project; `agentd audit ls` shows what ran.";

/// `agentd` alone: this project's session that is live or was cut short, else a new one.
pub(crate) fn here(flags: &RunFlags) -> Result<CliExit, CliError> {
    if !is_terminal() {
        return Err(CliError::user("there is no prompt, no command and no terminal").hint(
            "`agentd -p 'What is here?'` runs one prompt, `agentd demo` shows an example, \
             `agentd --help` lists the commands",
        ));
    }
    for (flag, is_given) in [
        ("--output-last-message", flags.output_last_message.is_some()),
        ("--json-schema", flags.json_schema.is_some()),
    ] {
        if is_given {
            return Err(CliError::user(format!("{flag} is for runs of one prompt"))
                .hint("add -p PROMPT; `agentd export ID` writes a session to a file"));
        }
    }
    let context = CliContext::of_process()?;
    let earlier = match &flags.resume {
        Some(id) => Some(sessions::named(&context, id)?),
        None if flags.continue_newest => Some(sessions::newest_here(&context, &flags.session)?),
        None => unfinished_here(&context, &flags.session)?,
    };
    let (start, need) = match earlier {
        Some(of) if flags.fork => (SessionStart::Fork { of, at: None }, KeyNeed::Always),
        Some(session) => (resumed(session, ClientRights::Full), KeyNeed::WhereSet),
        None => (SessionStart::New, KeyNeed::Always),
    };
    run_attached(
        &context,
        &flags.session,
        start,
        need,
        attach_options(None, ClientRights::Full, OtherClients::Stay),
    )
}

/// `agentd new`.
pub(crate) fn new(prompt: Option<String>, flags: &SessionFlags) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let entrance = attach_options(prompt, ClientRights::Full, OtherClients::Stay);
    run_attached(&context, flags, SessionStart::New, KeyNeed::Always, entrance)
}

/// `agentd attach`.
pub(crate) fn attach(
    beginning: Option<&str>,
    flags: &SessionFlags,
    rights: ClientRights,
    others: OtherClients,
) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    if let Some(beginning) = beginning
        && fleet_commands::is_elsewhere(&context, beginning)?
    {
        return attach_elsewhere(&context, beginning, flags, (rights, others));
    }
    let session = match beginning {
        Some(beginning) => sessions::named(&context, beginning)?,
        None => sessions::newest_here(&context, flags)?,
    };
    // A read-only client does not start a supervisor.
    if rights == ClientRights::ReadOnly && sessions::holder(&context, &session)?.is_none() {
        return Err(CliError::user(format!(
            "session {session} is not running, so there is nothing to watch"
        ))
        .hint(format!(
            "`agentd show {session}` prints it, `agentd attach {session}` continues it"
        )));
    }
    let project = journal::header(&sessions::directory(&context, &session));
    let project = project.map_err(|error| CliError::config(chain(&error)).exit(CliExit::Failed))?;
    let flags = SessionFlags { project: Some(project.project.0), ..flags.clone() };
    let entrance = attach_options(None, rights, others);
    run_attached(&context, &flags, resumed(session, rights), KeyNeed::WhereSet, entrance)
}

/// Attaches to a session on another host of the fleet. Keys of this host stay here.
fn attach_elsewhere(
    context: &CliContext,
    beginning: &str,
    flags: &SessionFlags,
    (rights, others): (ClientRights, OtherClients),
) -> Result<CliExit, CliError> {
    let executable = fleet_executable()?;
    let mut relay = RelaySource::start(&executable, beginning)
        .map_err(|error| CliError::user(error.to_string()))?;
    let start = resumed(relay.session(), rights);
    let entrance = attach_options(None, rights, others);
    let mut visit = visit(context, flags, start, KeyNeed::WhereSet, entrance)?;
    visit.opening.papers.clear();
    visit.papers.clear();
    show_attached(context, flags, &mut relay, visit)
}

fn attach_options(
    prompt: Option<String>,
    rights: ClientRights,
    others: OtherClients,
) -> AttachOptions {
    AttachOptions {
        rights,
        others,
        prompt,
        leader: String::new(),
        keys: LineKeys::Emacs,
        busy: WhileBusy::Queue,
        first_words: None,
    }
}

/// This project's newest session, if it is running or its last turn has no end.
fn unfinished_here(
    context: &CliContext,
    flags: &SessionFlags,
) -> Result<Option<SessionId>, CliError> {
    let project = project(flags)?;
    let Some(row) = sessions::newest_of(context, &project) else { return Ok(None) };
    Ok(match row.state {
        SessionStatus::Idle
        | SessionStatus::Working
        | SessionStatus::Background(_)
        | SessionStatus::Asking(_)
        | SessionStatus::Degraded(_)
        | SessionStatus::CutShort(_)
        | SessionStatus::IdleCutShort(_) => Some(row.session),
        SessionStatus::Ended => journal::is_unfinished(&sessions::directory(context, &row.session))
            .then_some(row.session),
        SessionStatus::Unreadable(why) => {
            eprintln!("agentd: session {} cannot be read: {why}", row.session);
            None
        }
    })
}

fn project(flags: &SessionFlags) -> Result<std::path::PathBuf, CliError> {
    real_dir(flags.project.as_deref().unwrap_or(Path::new(".")), "the project directory")
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

fn run_attached(
    context: &CliContext,
    flags: &SessionFlags,
    start: SessionStart,
    need: KeyNeed,
    entrance: AttachOptions,
) -> Result<CliExit, CliError> {
    let visit = visit(context, flags, start, need, entrance)?;
    let executable = sibling_executable("agentd-supervisor")?;
    let mut daemon = daemon::of(context, &executable)?;
    // A daemon that refuses this client fails here, with the full reason.
    drop(daemon.find_or_start()?);
    show_attached(context, flags, &mut daemon, visit)
}

/// What a terminal asks for, from flags and configuration.
fn visit(
    context: &CliContext,
    flags: &SessionFlags,
    start: SessionStart,
    need: KeyNeed,
    mut entrance: AttachOptions,
) -> Result<AttachArgs, CliError> {
    if !is_terminal() {
        return Err(CliError::user("this needs a terminal")
            .hint("`agentd -p` is for scripts, `agentd show` and `agentd logs -f` for pipes"));
    }
    context.writable_state()?;
    let trust = if flags.trust_project { TrustFlag::Given } else { TrustFlag::NotGiven };
    let ui = context
        .load(&project(flags)?, &plugin_settings(&flags.conversation.plugin_dir)?, trust)?
        .ui;
    entrance.leader = ui.leader;
    entrance.busy = match ui.busy {
        UiBusy::Queue => WhileBusy::Queue,
        UiBusy::Steer => WhileBusy::Steer,
    };
    entrance.keys = match ui.keys {
        UiKeys::Emacs => LineKeys::Emacs,
        UiKeys::Vim => LineKeys::Vim,
    };
    let leader = LeaderKey::parse(&entrance.leader).ok_or_else(|| {
        CliError::config(format!("ui.leader is {:?}, which is not a free key", entrance.leader))
            .hint("write it as \"Ctrl-\\\\\" or with a letter that is free, such as \"Ctrl-b\"")
    })?;
    if matches!(start, SessionStart::New)
        && sessions::newest_of(context, &project(flags)?).is_none()
    {
        entrance.first_words = Some(FIRST_START);
    }
    let (opening, papers) = open_request(context, flags, start, Audience::Person, need)?;
    let mode = match is_dumb() || is_heard(flags, ui.accessible) {
        true => TerminalMode::Lines,
        false => TerminalMode::Keys(leader),
    };
    Ok(AttachArgs { opening, papers, options: entrance, mode })
}

/// True if this terminal takes lines only.
fn is_dumb() -> bool {
    std::env::var("TERM").map_or(true, |term| term.is_empty() || term == "dumb")
}

/// True if a screen reader reads the session.
fn is_heard(flags: &SessionFlags, accessible: bool) -> bool {
    !flags.view.full_screen && (flags.view.screen_reader || accessible)
}

/// Shows the session in this terminal until it is left.
fn show_attached(
    context: &CliContext,
    flags: &SessionFlags,
    source: &mut dyn SupervisorSource,
    visit: AttachArgs,
) -> Result<CliExit, CliError> {
    let trust = if flags.trust_project { TrustFlag::Given } else { TrustFlag::NotGiven };
    let config =
        context.load(&project(flags)?, &plugin_settings(&flags.conversation.plugin_dir)?, trust)?;
    let (ui, plugins) = (config.ui, config.plugins);
    let heard = is_heard(flags, ui.accessible);
    let labels = if heard { Labels::Words } else { Labels::Signs };
    let dumb = is_dumb() || heard;
    let colour = Colour::decide(Terminal::Yes, |name: &str| std::env::var(name).ok());
    let signals = BlockedSignals::block()
        .map_err(|error| CliError::internal(format!("cannot block signals: {error}")))?;
    let services = CliServices { context, rights: visit.options.rights };
    let mouse = if ui.mouse { Mouse::Used } else { Mouse::LeftAlone };
    let title = if ui.title { Title::Written } else { Title::LeftAlone };
    let notify = match ui.notify {
        UiNotify::Bell => Notify::Bell,
        UiNotify::Osc9 => Notify::Osc9,
        UiNotify::Osc777 => Notify::Osc777,
        UiNotify::Off => Notify::Off,
    };
    let theme = screen_theme(&ui.theme)?;
    let full = flags.view.full_screen || (ui.view == UiView::Full && !flags.view.inline);
    let project = project(flags)?;
    let view = |inputs| -> io::Result<Box<dyn ScreenView>> {
        Ok(match (dumb, full) {
            (true, _) => Box::new(LinesView::new(colour, labels)),
            (false, true) => {
                let guard = std::env::current_exe().and_then(|own| TerminalGuard::start(&own));
                let unguarded = guard.as_ref().err().map(|error| {
                    format!(
                        "if this terminal's agentd is killed by signal 9, type `reset`: the process \
                         that would restore the terminal could not be started: {error}"
                    )
                });
                let guard = guard.ok();
                let prompt_places = PromptPlaces {
                    project: project.clone(),
                    home: std::env::home_dir().filter(|home| home.is_absolute()),
                    config: context.dirs.config.clone(),
                    plugins: plugins
                        .iter()
                        .map(|plugin| PluginPlace {
                            name: plugin.name.clone(),
                            root: plugin.root.clone(),
                        })
                        .collect(),
                };
                let options = FullScreenOptions {
                    colour,
                    depth: ColourDepth::decide(|name| std::env::var(name).ok()),
                    theme,
                    mouse,
                    notify,
                    title,
                    guard,
                    project,
                    prompt_places,
                };
                let mut view = FullScreen::enter(options, inputs)?;
                unguarded.into_iter().for_each(|words| view.show(ScreenItem::Note(words)));
                Box::new(view)
            }
            (false, false) => Box::new(InlineView::enter(colour)?),
        })
    };
    let left = client::attach(source, visit, &services, view, |inputs| {
        signals.deliver_as(inputs, ScreenInput::Signal);
    });
    let failed = |error| crate::run::failure(&RunFailure { session: None, error });
    ended(left.map_err(failed)?)
}

/// The theme of this name. That of a theme of `bat` is for code alone.
fn screen_theme(name: &str) -> Result<ThemeName, CliError> {
    if let Some(theme) = ThemeName::parse(name) {
        return Ok(theme);
    }
    if choose_theme(name) {
        return Ok(ThemeName::Auto);
    }
    let own = ThemeName::ALL.map(ThemeName::name).join(", ");
    let of_code: Vec<&str> = theme_names().collect();
    Err(CliError::config(format!("ui.theme is {name:?}, which is no theme"))
        .hint(format!("the themes are {own}; for code alone: {}", of_code.join(", "))))
}

/// Prints the last lines and returns the exit code.
fn ended(left: AttachEnd) -> Result<CliExit, CliError> {
    let back = left.session.map_or_else(
        || "no session was opened".to_owned(),
        |session| format!("session {session}: `agentd attach {session}` returns"),
    );
    for text in &left.unconfirmed {
        eprintln!("the session may not have received: {text}");
    }
    match left.reason {
        LeaveReason::Quit => {
            eprintln!("{back}");
            Ok(CliExit::Done)
        }
        LeaveReason::Detached(why) => {
            let why = why.map_or_else(|| "detached".to_owned(), |why| format!("detached: {why}"));
            eprintln!("{why}; the session continues\n{back}");
            Ok(CliExit::Detached)
        }
        LeaveReason::Ended(why) => {
            eprintln!("{why}\n{back}");
            Ok(CliExit::Done)
        }
        LeaveReason::Failed(kind, message) => Err(query::failed(kind, message)),
        LeaveReason::Lost(why) => {
            Err(CliError::internal(why).exit(CliExit::SupervisorUnreachable).hint(back))
        }
        // The terminal is gone; the session is not.
        LeaveReason::Signal(nix::libc::SIGHUP) => Ok(CliExit::Detached),
        LeaveReason::Signal(nix::libc::SIGINT) => Ok(CliExit::Interrupted),
        LeaveReason::Signal(_) => Ok(CliExit::Terminated),
    }
}
