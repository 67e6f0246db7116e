//! `agentd doctor`: checks this machine by trying each feature.

mod attempts;
mod path;
pub(crate) mod project;
mod tiers;

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::{CliContext, TrustFlag};
use crate::output::{print_json, print_styled};
use crate::query;
use crate::systemd_units::{self, AfterLogout};
use client::{Colour, Terminal, sibling_executable};
use config::{KeySource, ValueOrigin};
use protocol::company_proxy::ProxyEnvironment;
use protocol::confinement::Tier;
use protocol::hidden::on_screen;
use sandbox::{Controller, Delegation, HostProbe, StepOutcome};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::Path;

/// Every executable that a run needs.
const EXECUTABLES: &[&str] = &[
    "agentd-supervisor",
    "agentd-session",
    "agentd-provider",
    "agentd-broker",
    "agentd-store",
    "agentd-tool",
    "agentd-code",
    "agentd-web",
];

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingState {
    Ok,
    /// Works, with a loss that is named.
    Note,
    /// Nothing runs without it.
    Missing,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct DoctorFinding {
    name: &'static str,
    state: FindingState,
    text: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The exit code that a run would end with for it.
    #[serde(skip)]
    exit: CliExit,
}

/// Depth of the check of the cage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoctorDepth {
    /// Make a cage.
    Steps,
    /// Also attack it: one attack per rule.
    Attempts,
}

/// The program inside a cage, for `attempts`.
pub(crate) fn act(words: &[String]) -> ! {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    std::process::exit(sandbox::run_attack(&words))
}

pub(crate) fn main(json: bool, depth: DoctorDepth) -> Result<CliExit, CliError> {
    let mut findings = vec![kernel()];
    // The probe forks, so it runs before this process has threads.
    let context = CliContext::of_process();
    let host = context.as_ref().ok().map(CliContext::probe_host);
    let (mut cage, mut attempts) = (None, None);
    match host {
        Some(Ok(host)) => {
            let forced = tiers::forced(&host);
            findings.extend(self::cage(&host, forced.as_ref()));
            findings.extend(tiers::dropped(&host));
            findings.push(cgroup(sandbox::delegation(), host.tier));
            if depth == DoctorDepth::Attempts {
                let tried = attempts::all(&host);
                findings.extend(attempts::findings(&tried));
                attempts = Some(attempts::json(&tried));
            }
            cage = Some(cage_json(&host, forced.as_ref()));
        }
        Some(Err(failure)) => findings.push(unusable("temporary files", &failure)),
        None => {}
    }
    findings.extend(executables());
    match &context {
        Ok(context) => findings.extend(of_context(context)),
        Err(failure) => findings.push(unusable("directories", failure)),
    }
    let exit = findings
        .iter()
        .find(|finding| finding.state == FindingState::Missing)
        .map_or(CliExit::Done, |finding| finding.exit);
    if json {
        let line = serde_json::json!({
            "build": protocol::BUILD_ID,
            "ok": exit == CliExit::Done,
            "cage": cage,
            "attempts": attempts,
            "findings": findings,
        });
        print_json(&format!("{line}\n"));
    } else {
        print_styled(&page(&findings));
    }
    Ok(exit)
}

fn unusable(name: &'static str, failure: &CliError) -> DoctorFinding {
    DoctorFinding::missing(name, failure.message().to_owned(), CliExit::Configuration)
}

fn page(findings: &[DoctorFinding]) -> String {
    let terminal = if std::io::stdout().is_terminal() { Terminal::Yes } else { Terminal::No };
    let colour = Colour::decide(terminal, |name| std::env::var(name).ok());
    let mut page = format!("agentd {}\n", protocol::BUILD_ID);
    for finding in findings {
        let state = match finding.state {
            FindingState::Ok => colour.green("ok     "),
            FindingState::Note => colour.bold("note   "),
            FindingState::Missing => colour.red("MISSING"),
        };
        page.push_str(&format!("{state} {:<16} {}\n", finding.name, on_screen(&finding.text)));
        if let Some(hint) = &finding.hint {
            page.push_str(&format!("{:24} {}\n", "", on_screen(hint)));
        }
    }
    page
}

impl DoctorFinding {
    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, state: FindingState::Ok, text: text.into(), hint: None, exit: CliExit::Done }
    }

    fn note(name: &'static str, text: impl Into<String>) -> Self {
        Self { state: FindingState::Note, ..Self::ok(name, text) }
    }

    fn missing(name: &'static str, text: impl Into<String>, exit: CliExit) -> Self {
        Self { state: FindingState::Missing, exit, ..Self::ok(name, text) }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn kernel() -> DoctorFinding {
    match std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        Ok(release) => DoctorFinding::ok("kernel", format!("Linux {}", release.trim())),
        Err(error) => DoctorFinding::note("kernel", format!("its version cannot be read: {error}")),
    }
}

/// Every step that was tried, for programs.
fn cage_json(host: &HostProbe, forced: Option<&ValueOrigin>) -> serde_json::Value {
    let tier = |tier: Tier| match tier {
        Tier::A => "A",
        Tier::B => "B",
        Tier::C => "C",
    };
    let steps = host.steps.iter().map(|tried| {
        let (outcome, why) = match &tried.outcome {
            StepOutcome::Done => ("done", None),
            StepOutcome::Failed(why) => ("failed", Some(why)),
            StepOutcome::NotReached => ("not reached", None),
        };
        serde_json::json!({
            "tier": tier(tried.tier),
            "step": tried.step.name(),
            "outcome": outcome,
            "why": why,
        })
    });
    serde_json::json!({
        "tier": forced.map_or(tier(host.tier), |_| tier(Tier::B)),
        "forced_by": forced.map(ToString::to_string),
        "host_tier": tier(host.tier),
        "landlock_abi": host.landlock_abi,
        "dropped": host.dropped,
        "steps": steps.collect::<Vec<_>>(),
    })
}

fn cage(host: &HostProbe, forced: Option<&ValueOrigin>) -> Vec<DoctorFinding> {
    let failed = |tier: Tier| {
        host.steps.iter().filter(move |tried| tried.tier == tier).find_map(|tried| {
            match &tried.outcome {
                StepOutcome::Failed(why) => Some(format!("{}: {why}", tried.step)),
                StepOutcome::Done | StepOutcome::NotReached => None,
            }
        })
    };
    let abi = format!("Landlock ABI {}", host.landlock_abi);
    if let Some(by) = forced {
        return vec![tiers::lowered(host, by)];
    }
    match host.tier {
        Tier::A => {
            vec![DoctorFinding::ok("cage", format!("tier A: namespaces, Landlock, seccomp; {abi}"))]
        }
        Tier::B => {
            let mut findings =
                vec![DoctorFinding::note("cage", format!("tier B: Landlock and seccomp; {abi}"))];
            findings.push(DoctorFinding::note("in tier B", tiers::missing_in_b()));
            findings.extend(
                failed(Tier::A)
                    .map(|why| DoctorFinding::note("no tier A", why).hint(tiers::way_to_a())),
            );
            findings
        }
        Tier::C => {
            let text = "none can be made, so no tool call runs on this machine";
            let hint = "agentd needs Linux 5.13 or newer with Landlock and seccomp; --unsafe-no-sandbox \
                        runs calls without any, and every screen says NONE then";
            let mut findings =
                vec![DoctorFinding::missing("cage", text, CliExit::SandboxUnavailable).hint(hint)];
            for (name, tier) in [("no tier A", Tier::A), ("no tier B", Tier::B)] {
                findings.extend(failed(tier).map(|why| DoctorFinding::note(name, why)));
            }
            findings
        }
    }
}

/// Enforcement of a command's total memory and processes: by the kernel, or by counting.
fn cgroup(delegation: Delegation, cage: Tier) -> DoctorFinding {
    const WATCHED: &str = "counted ten times a second";
    match delegation {
        Delegation::Available { base, .. } if cage == Tier::C => {
            let text = format!(
                "delegated: a command without a cage starts in its own cgroup in {}, but can \
                 leave it",
                base.display()
            );
            DoctorFinding::note("cgroup", text)
        }
        Delegation::Available { base, controllers } => {
            let by_kernel = |one: &Controller| controllers.contains(one);
            let (held, watched): (Vec<_>, Vec<_>) =
                Controller::ALL.into_iter().partition(by_kernel);
            let named = |list: Vec<Controller>| {
                list.into_iter().map(Controller::label).collect::<Vec<_>>().join(" and ")
            };
            let text = format!(
                "delegated: each command gets its own in {}; the kernel enforces its {}",
                base.display(),
                named(held)
            );
            match watched.is_empty() {
                true => DoctorFinding::ok("cgroup", text),
                false => DoctorFinding::note(
                    "cgroup",
                    format!("{text}; {WATCHED}: its {}", named(watched)),
                )
                .hint("the unit must be given the missing controller: memory and pids"),
            }
        }
        Delegation::Unavailable(reason) => {
            let text =
                format!("none for commands, {reason}; their memory and processes are {WATCHED}");
            DoctorFinding::note("cgroup", text).hint(reason.hint())
        }
    }
}

fn executables() -> Vec<DoctorFinding> {
    let missing: Vec<&str> =
        EXECUTABLES.iter().copied().filter(|name| sibling_executable(name).is_err()).collect();
    if let Err(error) = std::env::current_exe() {
        let text = format!("their directory is unknown: {error}");
        let hint = "mount /proc, readable for you";
        return vec![
            DoctorFinding::missing("executables", text, CliExit::SupervisorUnreachable).hint(hint),
        ];
    }
    if missing.is_empty() {
        return vec![DoctorFinding::ok("executables", "all are in the directory of this one")];
    }
    let text = format!("{} missing in the directory of this executable", missing.join(", "));
    let hint = "build them with `cargo build --workspace`, or install all with `cargo install \
                --locked --path .`";
    vec![DoctorFinding::missing("executables", text, CliExit::SupervisorUnreachable).hint(hint)]
}

/// Findings about the daemon at this socket. Empty if none runs.
fn daemon(socket: &Path) -> Vec<DoctorFinding> {
    let failed = |failure: &CliError| DoctorFinding::note("daemon", failure.message().to_owned());
    let connection = match query::connect_if_running(socket) {
        Ok(None) => return Vec::new(),
        Ok(Some(connection)) => connection,
        Err(failure) => return vec![failed(&failure)],
    };
    let status = match crate::daemon::ask(connection) {
        Ok(status) => status,
        Err(failure) => return vec![failed(&failure)],
    };
    let text = format!("process {}, {} sessions", status.pid, status.sessions);
    if status.troubles.is_empty() {
        return vec![DoctorFinding::ok("daemon", text)];
    }
    let troubles = status.troubles.iter();
    troubles.map(|trouble| DoctorFinding::note("daemon", format!("{text}; {trouble}"))).collect()
}

/// The units of this user that start the daemon. Empty if there are none.
fn systemd(context: &CliContext) -> Option<DoctorFinding> {
    let installed = systemd_units::installed(context)?;
    let starts = match &installed.executable {
        Ok(executable) => format!("starts {} daemon run", executable.display()),
        Err(text) => return Some(DoctorFinding::note("systemd", text.clone())),
    };
    Some(match installed.after_logout {
        AfterLogout::Stays => {
            DoctorFinding::ok("systemd", format!("{starts}; it stays after your last logout"))
        }
        AfterLogout::Ends => {
            DoctorFinding::note("systemd", format!("{starts}; it ends with your last login"))
                .hint("`loginctl enable-linger` lets it stay")
        }
    })
}

/// The proxies of the environment, for everything that leads to the network.
fn proxies(context: &CliContext) -> Vec<DoctorFinding> {
    let value = |name: &str| Some(context.environment.get(name)?.to_string_lossy().into_owned());
    let lines = ProxyEnvironment::read(value).lines().into_iter();
    let finding = |line| match line {
        Ok(text) => DoctorFinding::ok("proxy", text),
        Err(error) => DoctorFinding::note("proxy", format!("{error}")),
    };
    lines.map(finding).collect()
}

/// The hooks of this directory, and each part of their files that has no effect.
fn hooks(config: &config::Config) -> Vec<DoctorFinding> {
    let count = config.hooks.commands.len();
    let of_hooks = config.warnings.iter().filter(|warning| warning.key.starts_with("hooks"));
    let named = of_hooks.map(|warning| DoctorFinding::note("hooks", warning.to_string()));
    let all = (count > 0).then(|| {
        DoctorFinding::ok("hooks", format!("{count} configured, see `agentd config show`"))
    });
    all.into_iter().chain(named).collect()
}

fn of_context(context: &CliContext) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    findings.push(match context.writable_state() {
        Ok(()) => DoctorFinding::ok("state", context.dirs.state.display().to_string()),
        Err(failure) => {
            DoctorFinding::missing("state", failure.message().to_owned(), CliExit::Configuration)
                .hint("set XDG_STATE_HOME to a directory of your own")
        }
    });
    match context.dirs.socket() {
        Ok(socket) => {
            let would_be = format!("would be {}", socket.display());
            let given = context.environment.absolute("XDG_RUNTIME_DIR");
            findings.push(match given.filter(|dir| !config::is_own_runtime(dir)) {
                None => DoctorFinding::ok("socket", would_be),
                Some(dir) => {
                    let text =
                        format!("{would_be}; XDG_RUNTIME_DIR, {}, is not yours", dir.display());
                    DoctorFinding::note("socket", text)
                        .hint("set it to a directory of your own; a log-in makes /run/user/UID")
                }
            });
            findings.extend(daemon(&socket));
            findings.extend(systemd(context));
        }
        Err(error) => {
            findings.push(DoctorFinding::missing("socket", chain(&error), CliExit::Configuration))
        }
    }
    let here = std::fs::canonicalize(".").unwrap_or_else(|_| Path::new("/").to_owned());
    findings.extend(path::findings(context, &here));
    findings.extend(sandbox::unwritable_for_calls(&here).map(|owner| {
        let text = format!("calls can change nothing in {}, which user {owner} owns", here.display());
        let way_on = format!("run agentd as that user: `setpriv --reuid {owner} --regid {owner} --clear-groups agentd`");
        DoctorFinding::note("project", text).hint(way_on)
    }));
    findings.extend(proxies(context));
    match context.load(&here, &[], TrustFlag::NotGiven) {
        Ok(config) => {
            let warnings = config.warnings.len();
            findings.push(match warnings {
                0 => DoctorFinding::ok("configuration", format!("valid for {}", here.display())),
                count => {
                    DoctorFinding::note("configuration", format!("valid, with {count} warnings"))
                }
            });
            findings.extend(hooks(&config));
            findings.push(match &config.provider.key {
                Some(KeySource::Variable(key)) => {
                    DoctorFinding::ok("key", format!("{} is set", key.name))
                }
                Some(KeySource::File { path, .. }) => {
                    DoctorFinding::ok("key", format!("in the file {}", path.display()))
                }
                Some(KeySource::Command { line, .. }) => {
                    DoctorFinding::ok("key", format!("printed by `{line}`"))
                }
                None if config.provider.name.vendor().is_keyless(config.provider.local) => {
                    DoctorFinding::ok("key", "none is set, and this server needs none")
                }
                None => DoctorFinding::note("key", "none is set").hint(format!(
                    "set {}; `agentd demo` needs none",
                    config.provider.name.vendor().key_variables()
                )),
            });
            findings.push(DoctorFinding::ok(
                "provider",
                format!(
                    "{}, model {}",
                    config.provider.base_url,
                    config.provider.model.as_deref().unwrap_or("none: name one with --model")
                ),
            ));
        }
        Err(failure) => findings.push(DoctorFinding::missing(
            "configuration",
            failure.message().to_owned(),
            CliExit::Configuration,
        )),
    }
    findings
}
