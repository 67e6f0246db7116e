//! `agentd-tool`: one call in a process of its own.
//!
//! The runner gets its job only after its cage is ready: `Confine` → `Caged` → `Go` → `Done`. A
//! second thread reads the supervisor's messages from `Go` on, so that a cancel request, a ping or
//! the supervisor's end takes effect during the call. A third thread sends a command's output, so
//! that a slow supervisor never stops the draining of its pipes.

mod listen;
pub use listen::Listener;
mod output_sender;
mod preamble;
pub use preamble::{Preamble, next_job};
mod reserve;

use anyhow::Context;
use ipc::ChannelError;
use output_sender::OutputSender;
use protocol::call::RunReport;
use protocol::confinement::{Confinement, Enforced, Profile};
use protocol::tool::{
    CageOrder, FromCage, FromCall, FromTool, JudgedPath, RunnerJob, SigningKey, ToolLink,
};
use sandbox::CallScope;
use sandbox::{Cage, CageError, CageStep, Inherited, ProtectedReport};
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;
pub use tools::Engine;
use tools::signing::AgentSocket;
use tools::{CageLost, Cancel, CommandSetup, DeniedReads, JobControl, ToolRunRequest};

type SupervisorSender = ipc::Sender<FromTool>;

/// The program.
pub fn main() -> ExitCode {
    main_with(Engine::Without)
}

/// The same program with this engine: `agentd-code`.
pub fn main_with(engine: Engine<'_>) -> ExitCode {
    match run(engine) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the only place left: the channel itself may have failed.
            eprintln!("{}: {error:#}", engine.runner().executable());
            ExitCode::FAILURE
        }
    }
}

fn run(engine: Engine<'_>) -> anyhow::Result<()> {
    sandbox::harden()?;
    let (mut words, say) = ipc::worker::<ToolLink>()?;
    log(&say);
    ipc::step!("tool: hello said");
    let Some((mut handed, order)) = Preamble::read(&mut words, &say)? else { return Ok(()) };
    let (confinement, built) = match *order {
        CageOrder::Repair(confinement) => {
            let file = handed.protected.context("a repair without the file of its call")?;
            return Ok(say.send(&repair(&confinement, file))?);
        }
        CageOrder::Reserve(confinement) => {
            let cage = reserve::rest(&confinement, &mut handed, (&mut words, &say))?;
            (confinement, cage.map(|cage| (Some(cage), None, None)))
        }
        CageOrder::Confine(confinement) => {
            let built = build(&confinement, &mut handed, &say)?;
            (confinement, built)
        }
    };
    let Some((mut cage, proxy, agent)) = built else { return Ok(()) };
    let Some(job) = next_job(&mut words, &say)? else { return Ok(()) };
    ipc::step!("tool: go received");
    let cancel = Cancel::new()?;
    begin(&say)?;
    let control = JobControl::default();
    let network = cage.as_mut().map(Cage::take_own_network).unwrap_or_default();
    let command = listen::Listener { cancel: cancel.clone(), job: control.clone(), network };
    command.start(words, say.clone());
    let Preamble { lock, overlays, protected: saved, .. } = handed;
    let protected = protected_report(saved.as_ref(), &say);
    let answer = answer(
        job,
        (&confinement, engine),
        (cage, proxy, agent),
        (&cancel, control, protected),
        &say,
    );
    record_restored(&answer, saved);
    // Nothing of the call lives any more.
    drop((lock, overlays));
    note(&answer);
    ipc::step!("tool: before done");
    let said = say.send(&answer);
    ipc::step!("tool: done said");
    match said {
        // The supervisor is gone, so the report has no reader.
        Err(ChannelError::Io(_) | ChannelError::Closed) if cancel.is_requested() => Ok(()),
        other => Ok(other?),
    }
}

/// Tells the supervisor that the job begins. Nothing of it may be done before, or if this fails: the
/// message is in the socket when this returns, and a runner without it counts as never begun. For
/// `agentd-web` too.
///
/// # Errors
/// The channel is closed.
pub fn begin(say: &SupervisorSender) -> Result<(), ChannelError> {
    ipc::step!("tool: begins");
    say.send(&FromTool::Call(FromCall::Began))
}

/// A command's cage, the address of its proxy, and its socket for signatures. All are absent for a tool
/// that runs in this process.
type BuiltCage = (Option<Cage>, Option<SocketAddr>, Option<AgentSocket>);

/// Builds the cage of a call and reports it; `None` if that failed, which the supervisor knows.
fn build(
    confinement: &Confinement,
    handed: &mut Preamble,
    say: &SupervisorSender,
) -> anyhow::Result<Option<BuiltCage>> {
    let locked = agent_socket(handed.agent.take(), confinement).and_then(|agent| {
        let (cage, enforced) = lock(confinement, std::mem::take(&mut handed.inherited))?;
        save(cage.as_ref(), &mut handed.protected)?;
        Ok((cage, enforced, agent))
    });
    match locked {
        Ok((mut cage, enforced, agent)) => {
            if let Some(keeper) = cage.as_ref().and_then(Cage::keeper) {
                say.send(&FromTool::Cage(FromCage::Keeper(keeper)))?;
            }
            ipc::step!("tool: cage built");
            for mounted in cage.as_mut().map(Cage::take_overlay_mounts).unwrap_or_default() {
                say.send(&FromTool::Cage(FromCage::Mounted))?;
                say.send_fd(mounted.as_fd())?;
            }
            let doors = cage.as_mut().map(Cage::take_proxy_listeners).transpose();
            let proxy = pass_listeners(doors.context("an allow-list socket")?, say)?;
            note_cage(&enforced);
            say.send(&FromTool::Cage(FromCage::Caged(enforced)))?;
            Ok(Some((cage, proxy, agent)))
        }
        Err(CageError { step: CageStep::Lost, reason, .. }) => {
            say.send(&FromTool::Cage(FromCage::Lost(reason)))?;
            Ok(None)
        }
        Err(CageError { step, reason, hint, source: _ }) => {
            let reason = format!("{reason}; {hint}");
            say.send(&FromTool::Cage(FromCage::Uncaged { step: step.name().to_owned(), reason }))?;
            Ok(None)
        }
    }
}

/// Sends this process's log lines to the supervisor. For `agentd-web` too.
pub fn log(say: &SupervisorSender) {
    let say = say.clone();
    ipc::log::start("tool", move |line| drop(say.send(&FromTool::Log(line))));
}

/// The cage that stands, for the log.
pub fn note_cage(enforced: &Enforced) {
    let (profile, tier) = (&enforced.profile, enforced.tier);
    tracing::debug!(%profile, ?tier, landlock = enforced.landlock_abi, "confined");
}

/// How the call ended, for the log.
pub fn note(answer: &FromTool) {
    if let FromTool::Call(FromCall::Done(report)) = answer {
        let outcome = &report.result.outcome;
        let refused = report.refusals.len();
        tracing::info!(?outcome, refused, "done");
    }
}

/// Passes the listening sockets of an allow-list to the supervisor for the proxy, and returns the
/// first address. This process keeps none of them, so that the proxy does not depend on it.
fn pass_listeners(
    doors: Option<Vec<(OwnedFd, SocketAddr)>>,
    say: &SupervisorSender,
) -> Result<Option<SocketAddr>, ChannelError> {
    let doors = doors.unwrap_or_default();
    for (socket, _) in &doors {
        say.send(&FromTool::Cage(FromCage::ProxyListener))?;
        say.send_fd(socket.as_fd())?;
    }
    Ok(doors.first().map(|(_, address)| *address))
}

/// The socket at which a command that may sign finds the person's agent. It is made before this process
/// locks itself, and no thread runs before that.
fn agent_socket(
    agent: Option<(OwnedFd, Vec<SigningKey>)>,
    confinement: &Confinement,
) -> Result<Option<AgentSocket>, CageError> {
    let Some((agent, keys)) = agent else { return Ok(None) };
    let made = AgentSocket::bind(&confinement.temp.to_path(), agent, keys);
    made.map(Some).map_err(|error| CageError {
        step: CageStep::Handover,
        reason: format!("a socket for signing: {error}"),
        hint: "leave `git_signing` out, or try again".to_owned(),
        source: Some(error),
    })
}

/// Builds the cage: this process locks itself, or prepares a deeper one for a command.
fn lock(
    confinement: &Confinement,
    inherited: Inherited,
) -> Result<(Option<Cage>, Enforced), CageError> {
    match confinement.profile {
        Profile::Command
        | Profile::Verify
        | Profile::Format
        | Profile::Git
        | Profile::GitLook
        | Profile::Hook
        | Profile::GuardHook
        | Profile::Document
        | Profile::Mcp
        | Profile::McpWrite
        | Profile::McpRemote => {
            Cage::prepare(confinement, inherited).map(|(cage, enforced)| (Some(cage), enforced))
        }
        Profile::Probe
        | Profile::Query
        | Profile::Mutate
        | Profile::Session
        | Profile::Broker
        | Profile::Provider
        | Profile::Store
        | Profile::Web => Cage::enter(confinement).map(|enforced| (None, enforced)),
    }
}

/// Saves the content of the protected files before the cage is reported as ready: without room for
/// the copy the command does not start.
fn save(cage: Option<&Cage>, file: &mut Option<File>) -> Result<(), CageError> {
    match (cage, file) {
        (Some(cage), Some(file)) => cage.save_baseline(file),
        (None, _) | (_, None) => Ok(()),
    }
}

/// Records the restored files, so that the next supervisor knows them if this one dies before the
/// report is on disk.
fn record_restored(answer: &FromTool, file: Option<File>) {
    if let (FromTool::Call(FromCall::Done(report)), Some(mut file)) = (answer, file)
        && !report.tampered.is_empty()
        && let Err(error) = sandbox::record_repairs(&mut file, &report.tampered)
    {
        tracing::warn!(%error, "cannot record the restored files");
    }
}

/// Tells the supervisor, and the file for a repair, what is put right while the command runs.
fn protected_report(saved: Option<&File>, say: &SupervisorSender) -> ProtectedReport {
    let say = say.clone();
    ProtectedReport {
        file: saved.and_then(|file| file.try_clone().ok()),
        say: Box::new(move |found| drop(say.send(&FromTool::Call(FromCall::PutRight(found))))),
    }
}

/// Restores the protected files after a command whose runner saved this copy and was killed.
fn repair(confinement: &Confinement, mut file: File) -> FromTool {
    match Cage::enter_to_repair(confinement) {
        Ok(enforced) => {
            note_cage(&enforced);
            FromTool::Repaired(sandbox::repair(&mut file))
        }
        Err(CageError { step, reason, .. }) => {
            FromTool::Cage(FromCage::Uncaged { step: step.name().to_owned(), reason })
        }
    }
}

fn answer(
    job: RunnerJob,
    (confinement, engine): (&Confinement, Engine<'_>),
    (cage, proxy, agent): (Option<Cage>, Option<SocketAddr>, Option<AgentSocket>),
    (cancel, control, protected): (&Cancel, JobControl, ProtectedReport),
    say: &SupervisorSender,
) -> FromTool {
    let place = CallScope::from(confinement);
    #[cfg(agentd_hooks)]
    let place = everywhere_if_asked(place);
    match (job, confinement.profile) {
        (RunnerJob::Probe { tool, input }, Profile::Probe | Profile::Query) => {
            FromTool::Probed(tools::probe(&tool, &input, &place, cancel, engine))
        }
        (RunnerJob::ProbeRestore(files), Profile::Probe) => {
            FromTool::Probed(Ok(tools::probe_restore(&files, &place, cancel)))
        }
        (RunnerJob::Restore { files, judged, max_result_chars, denied_reads }, Profile::Mutate) => {
            let why = approval::read_denier(&denied_reads);
            let denied = DeniedReads::by(&why);
            let report =
                tools::restore(&files, (&judged, denied), max_result_chars, &place, cancel);
            FromTool::Call(FromCall::Done(Box::new(report)))
        }
        (
            RunnerJob::Probe { .. } | RunnerJob::ProbeRestore(_) | RunnerJob::Restore { .. },
            other,
        ) => FromTool::Probed(Err(format!("a probe needs its own cage, not {}", other.name()))),
        (
            RunnerJob::Run { tool, input, judged, env, timeout_ms, max_result_chars, denied_reads },
            profile,
        ) => {
            let (judged, tool, input): (&[JudgedPath], _, _) = (&judged, &tool, &input);
            let why = approval::read_denier(&denied_reads);
            let denied = DeniedReads::by(&why);
            let order = ToolRunRequest { tool, input, judged, max_result_chars, profile, denied };
            let ran = match cage {
                None => Ok(tools::run(&order, &place, cancel, engine)),
                Some(cage) => command(
                    &order,
                    &place,
                    (cancel, control, protected),
                    (cage, proxy, agent),
                    (&env, Duration::from_millis(timeout_ms)),
                    (say, engine),
                ),
            };
            match ran {
                Ok(report) => FromTool::Call(FromCall::Done(Box::new(report))),
                Err(CageLost(why)) => FromTool::Cage(FromCage::Lost(why)),
            }
        }
        // These are for `agentd-web`.
        (RunnerJob::Web { .. } | RunnerJob::Proxy { .. } | RunnerJob::Certify(_), _) => {
            FromTool::Proxied { connections: Vec::new(), uncounted: 0 }
        }
    }
}

/// A test disables the tools' own path check, to see the refusals of the cage.
#[cfg(agentd_hooks)]
fn everywhere_if_asked(place: CallScope) -> CallScope {
    if std::env::var_os("AGENTD_HOOK_SCOPE").is_none_or(|asked| asked != "off") {
        return place;
    }
    CallScope { added: vec!["/".into()], withheld: Vec::new(), ..place }
}

/// Runs a command. On return its output has been sent, or counted as omitted.
fn command(
    order: &ToolRunRequest<'_>,
    place: &CallScope,
    (cancel, job, protected): (&Cancel, JobControl, ProtectedReport),
    (cage, proxy, agent): (Cage, Option<SocketAddr>, Option<AgentSocket>),
    (env, time): (&[(String, String)], Duration),
    (say, engine): (&SupervisorSender, Engine<'_>),
) -> Result<RunReport, CageLost> {
    let signer = agent.map(AgentSocket::serve).transpose();
    let signer =
        signer.map_err(|error| CageLost(format!("cannot start the signing thread: {error}")))?;
    let signer = signer.as_ref();
    let screen = OutputSender::start(say.clone());
    let show = Box::new(&screen);
    // Should this fail, the thread that listens finds the channel closed.
    let server = |said| drop(say.send(&FromTool::Call(FromCall::Server(said))));
    let server = &server;
    let side = CommandSetup { cage, proxy, signer, env, time, job, server, protected, show };
    let ran = tools::run_command(order, place, cancel, (side, engine));
    screen.finish();
    ran
}

/// If the supervisor ends before the call began, this process has not failed.
pub(crate) fn ignore_closed(error: ChannelError) -> anyhow::Result<()> {
    if matches!(error, ChannelError::Closed) { Ok(()) } else { Err(error.into()) }
}
