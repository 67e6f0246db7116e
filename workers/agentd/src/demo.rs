//! `agentd demo`: a recorded model drives the real product in a temporary project. Its claims are
//! checked afterwards.

mod accident;
mod checks;
mod listener;
mod reach;
mod scene;
mod view;

use crate::audit;
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::output::print_styled;
use crate::signals::BlockedSignals;
use checks::{DemoCheck, DemoEvidence};
use client::{
    Colour, Finished, PrivateSource, Prompts, SupervisorLaunch, Task, Terminal, sibling_executable,
};
use listener::DemoListener;
use protocol::client::{ProjectTrust, SessionRequest, SessionStart, Unsandboxed};
use protocol::confinement::{FilePath, Network, Tier};
use protocol::hidden::on_screen;
use protocol::judgement::{Audience, PermissionMode};
use protocol::provider::PassedFd;
use protocol::session::TurnEnd;
use sandbox::HostProbe;
use scene::DemoScene;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use view::{DemoView, in_words};

/// The model's side of the conversation.
const RECORDING: &str = include_str!("demo/recording.jsonl");
/// A note on the refusals that the audit table cannot show.
const NOT_OBSERVABLE: &str = "not observable: refused reads, here of the secret; the command's \
                              output shows it\n";
/// Longest run. An emulated machine takes longer than the usual seconds.
const TIME_LIMIT: Duration = Duration::from_secs(240);

/// The attempt to connect that runs inside a cage.
pub(crate) fn reach(address: SocketAddr) -> CliExit {
    reach::main(address)
}

/// Use of the flag `--keep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    Remove,
    Keep,
}

pub(crate) fn main(afterwards: Afterwards) -> Result<CliExit, CliError> {
    let began = Instant::now();
    // Forks, so before there are threads.
    let signal = signal(&CliContext::of_process()?.probe_host()?);
    let mut scene = DemoScene::make()?;
    let listener = DemoListener::open()
        .map_err(|error| CliError::config(format!("cannot listen on 127.0.0.1: {error}")))?;
    print_styled(&format!(
        "A recorded model works in {}, with real tools in real cages.\n",
        scene.project().display()
    ));
    let own_visits = u32::from(listener.counts_a_visitor());
    let colour = colour();
    let mut view = DemoView::new(colour);
    let played = play(&scene, &listener, signal, &mut view)?;
    let evidence = DemoEvidence {
        scene: &scene,
        view: &view,
        listener: &listener,
        own_visits,
        supervisor_lived: played.supervisor_lived,
    };
    let mut checks = vec![conversation(&played.finished)];
    checks.extend(checks::all(&evidence));
    checks.push(nothing_left(&played));
    checks.extend(record(&scene, &view, colour)?);
    print_styled(&format!("\n{}\n", colour.bold("What really happened")));
    let mut held = true;
    for DemoCheck { claim, found } in &checks {
        held &= found.is_ok();
        let line = match found {
            Ok(shown) => format!("  {} {claim} ({})", colour.green("ok"), on_screen(shown)),
            Err(why) => format!("  {} {claim}: {}", colour.red("FAILED"), on_screen(why)),
        };
        print_styled(&format!("{line}\n"));
    }
    if let Some(cage) = view.cages.iter().rfind(|cage| !cage.in_process) {
        print_styled(&format!("\ncage: {}\n", in_words(cage)));
    }
    if afterwards == Afterwards::Keep || !held {
        scene.keep();
        print_styled(&format!("kept: {}\n", scene.root().display()));
    }
    let seconds = began.elapsed().as_secs_f64();
    if held {
        print_styled(&format!("demo: ok in {seconds:.1} s\n"));
        Ok(CliExit::Done)
    } else {
        print_styled(&format!(
            "demo: FAILED in {seconds:.1} s; `agentd doctor` shows what this machine allows\n"
        ));
        Ok(CliExit::Failed)
    }
}

/// A conversation that was played to its end.
struct Played {
    finished: Finished,
    supervisor: u32,
    supervisor_lived: bool,
}

fn play(
    scene: &DemoScene,
    listener: &DemoListener,
    signal: &str,
    view: &mut DemoView,
) -> Result<Played, CliError> {
    let signals = BlockedSignals::block()
        .map_err(|error| CliError::internal(format!("cannot block signals: {error}")))?;
    let executable = sibling_executable("agentd-supervisor")?;
    let variables = scene.variables();
    let launch = SupervisorLaunch {
        executable: &executable,
        without: config::KEY_VARIABLES,
        with: &variables,
    };
    let mut supervisors = PrivateSource::start(launch)?;
    let pid = supervisors.pid().unwrap_or_default();
    view.accidents.supervisor = i32::try_from(pid).ok();
    let task = task(scene, listener, signal, pid)?;
    let ran = client::run(&mut supervisors, task, view, |inputs| signals.deliver(inputs));
    let supervisor_lived = alive(pid);
    supervisors
        .end()
        .map_err(|error| CliError::internal(format!("agentd-supervisor did not end: {error}")))?;
    let finished = ran.map_err(|failed| {
        CliError::internal(format!("the demo did not run: {}", chain(&failed.error)))
            .exit(CliExit::of_error(&failed.error))
    })?;
    Ok(Played { finished, supervisor: pid, supervisor_lived })
}

/// The signal that a caged command sends to the supervisor. If this host's cages cannot stop
/// signals, signal 0 only tests if a signal could be sent.
fn signal(host: &HostProbe) -> &'static str {
    let tier = match std::env::var("AGENTD_SANDBOX_TIER") {
        Ok(tier) if tier.eq_ignore_ascii_case("b") => Tier::B,
        Ok(_) | Err(_) => host.tier,
    };
    if sandbox::signals_are_confined(tier, host.landlock_abi) { "KILL" } else { "0" }
}

fn task(
    scene: &DemoScene,
    listener: &DemoListener,
    signal: &str,
    supervisor: u32,
) -> Result<Task, CliError> {
    let written = |error: io::Error| CliError::internal(format!("the recording: {error}"));
    let text = RECORDING
        .replace("{outside}", &scene.outside().display().to_string())
        .replace("{secret}", &scene.secret().display().to_string())
        .replace("{listener}", &listener.address().to_string())
        .replace("{signal}", signal)
        .replace("{supervisor}", &supervisor.to_string());
    let file = scene.root().join("recording.jsonl");
    std::fs::write(&file, text).map_err(written)?;
    let recording = File::open(&file).map_err(written)?;
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let opening = SessionRequest {
        project: FilePath::from(scene.project()),
        named: None,
        added: Vec::new(),
        start: SessionStart::New,
        env: scene.context()?.passed(None, &[]),
        settings: vec![
            set("provider.name", "replay"),
            set("provider.model", "recorded"),
            set("permissions.deny", "bash:sudo *"),
        ],
        // All calls are allowed, so that only the cage refuses.
        mode: Some(PermissionMode::Auto),
        network: Some(Network::Off),
        trust: ProjectTrust::AsRecorded,
        audience: Audience::NonInteractive,
        papers: vec![PassedFd::Replay],
        uncaged: Unsandboxed::Refused,
        conversation: protocol::client::ConversationFlags::default(),
        agents: None,
        umask: crate::context::own_umask(),
        seat: None,
    };
    let prompt = "Finish greet.sh and run it. Then show what you cannot do.".to_owned();
    Ok(Task {
        opening,
        papers: vec![recording.into()],
        prompt,
        more: Prompts::One,
        form: None,
        time_limit: Some(TIME_LIMIT),
    })
}

fn conversation(finished: &Finished) -> DemoCheck {
    let found = match (&finished.conclusion.end, &finished.conclusion.fault) {
        (Some(TurnEnd::Done), None) => Ok(format!("{} requests", finished.conclusion.num_turns)),
        (_, Some(fault)) => Err(fault.clone()),
        (_, None) => Err("it has no end".to_owned()),
    };
    DemoCheck { claim: "the conversation ended normally", found }
}

/// Prints the records, the refusals and the result of `audit verify`, and checks that the records
/// name the observable refusals.
fn record(scene: &DemoScene, view: &DemoView, colour: Colour) -> Result<[DemoCheck; 2], CliError> {
    let context = scene.context()?;
    let calls = journal::calls(&context.audit_dir(), &journal::CallFilter::default())
        .map_err(|error| CliError::internal(chain(&error)))?;
    print_styled(&format!("\n{}\n{}", colour.bold("The audit log"), audit::table(&calls)));
    print_styled(&audit::refusals(&calls));
    print_styled(NOT_OBSERVABLE);
    let (text, exit) = audit::verified(&context)?;
    print_styled(&text);
    let verified = if exit == CliExit::Done { Ok("verified".to_owned()) } else { Err(text) };
    Ok([
        DemoCheck { claim: "the record lists the refusals", found: checks::recorded(&calls, view) },
        DemoCheck { claim: "the record is complete", found: verified },
    ])
}

/// True if every process of the run is gone.
fn nothing_left(played: &Played) -> DemoCheck {
    let found = match alive(played.supervisor) {
        true => Err(format!("process {} is still alive", played.supervisor)),
        false => Ok(format!("the supervisor, process {}, is gone", played.supervisor)),
    };
    DemoCheck { claim: "the supervisor left with the run", found }
}

fn alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn colour() -> Colour {
    let terminal = if io::stdout().is_terminal() { Terminal::Yes } else { Terminal::No };
    Colour::decide(terminal, |name| std::env::var(name).ok())
}
