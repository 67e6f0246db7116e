//! `agentd-web`: network access for calls that have none themselves.
//!
//! As the proxy of a command's allow-list it is confined first (`web`: network and resolver, no
//! user files). Then it gets the hosts and the socket in the command's network namespace, and
//! serves until the command ends. It learns nothing else of the call. If it signs in, it also gets
//! the keys, and presents a certificate that another `agentd-web` process made when the session was
//! opened. For a web tool it is the call's runner: in the same cage it fetches one page and returns
//! its text.

mod proxy_loop;

use anyhow::bail;
use ipc::Receiver;
use protocol::company_proxy::ProxyEnvironment;
use protocol::confinement::{Confinement, Enforced, Profile};
use protocol::tool::{
    CageOrder, FromCage, FromCall, FromTool, RunnerJob, SignIn, ToTool, ToolLink,
};
use protocol::web::{RedirectScope, WebAddress};
use sandbox::CallScope;
use sandbox::{Cage, CageError, CageStep, NetworkNamespace};
use std::process::ExitCode;
use tool_worker::{Listener, Preamble, next_job};
use tools::{Cancel, Engine, JobControl, ToolRunRequest};
use web::{Credentials, Fetcher, Judge};

type Say = ipc::Sender<FromTool>;

/// A page keeps its 40,000 characters and its title, even if other results are limited further.
const PAGE_CHARS: u32 = 41_000;

/// The program.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The channel may have failed, so the error goes to standard error.
            eprintln!("agentd-web: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    sandbox::harden()?;
    let (mut words, say) = ipc::worker::<ToolLink>()?;
    tool_worker::log(&say);
    let Some((handed, order)) = Preamble::read(&mut words, &say)? else { return Ok(()) };
    let confinement = match *order {
        CageOrder::Confine(confinement) if !handed.is_for_command() => confinement,
        CageOrder::Confine(_) | CageOrder::Reserve(_) | CageOrder::Repair(_) => {
            bail!("an order for another runner came")
        }
    };
    match lock(&confinement, &handed.inherited.network) {
        Ok(enforced) => {
            tool_worker::note_cage(&enforced);
            say.send(&FromTool::Cage(FromCage::Caged(enforced)))?;
        }
        Err(CageError { step, reason, hint, source: _ }) => {
            let reason = format!("{reason}; {hint}");
            say.send(&FromTool::Cage(FromCage::Uncaged { step: step.name().to_owned(), reason }))?;
            return Ok(());
        }
    }
    let Some(job) = next_job(&mut words, &say)? else { return Ok(()) };
    // The supervisor passes these variables to this program alone.
    let proxies = ProxyEnvironment::read(|name| std::env::var(name).ok());
    let done = match job {
        RunnerJob::Proxy { doors, hosts, denied, private, sign_in } => {
            let sockets = (0..doors).map(|_| words.recv_fd()).collect::<Result<_, _>>()?;
            let credentials =
                sign_in.map(|sign_in| credentials(sign_in, &mut words)).transpose()?;
            let beyond = (credentials, proxies);
            proxy_loop::run_proxy((hosts, denied), private, beyond, sockets, words, &say)
        }
        RunnerJob::Certify(hosts) => Ok(say.send(&FromTool::Certified(web::certify(&hosts)))?),
        RunnerJob::Web { tool, input, settings, onward, max_result_chars } => {
            let cancel = Cancel::new()?;
            tool_worker::begin(&say)?;
            let no_command = JobControl::default();
            let network = NetworkNamespace::default();
            let listener = Listener { cancel: cancel.clone(), job: no_command, network };
            listener.start(words, say.clone());
            let order = ToolRunRequest {
                tool: &tool,
                input: &input,
                judged: &[],
                max_result_chars: max_result_chars.max(PAGE_CHARS),
                profile: confinement.profile,
                denied: tools::DeniedReads::NONE,
            };
            let judge = RedirectRules { tool: tool.clone(), onward };
            let (place, web) =
                (CallScope::from(&confinement), Fetcher::new(settings, judge, proxies));
            let report = tools::run(&order, &place, &cancel, Engine::Web(&web));
            let done = FromTool::Call(FromCall::Done(Box::new(report)));
            tool_worker::note(&done);
            Ok(say.send(&done)?)
        }
        RunnerJob::Probe { .. }
        | RunnerJob::ProbeRestore(_)
        | RunnerJob::Restore { .. }
        | RunnerJob::Run { .. } => bail!("a job for another runner came"),
    };
    // No process of the call runs any more.
    drop(handed.lock);
    done
}

/// Receives the keys, which follow the socket.
fn credentials(sign_in: SignIn, words: &mut Receiver<ToTool>) -> anyhow::Result<Credentials> {
    let keys: Result<Vec<_>, _> = sign_in.accounts.iter().map(|_| words.recv_fd()).collect();
    Credentials::read(sign_in, keys?).map_err(anyhow::Error::msg)
}

/// The session's rules, for redirects.
struct RedirectRules {
    tool: String,
    onward: RedirectScope,
}

impl Judge for RedirectRules {
    fn may_follow(&self, page: &WebAddress) -> bool {
        approval::may_follow_redirect(&self.onward, &self.tool, page)
    }

    fn is_named_by_a_rule(&self, page: &WebAddress) -> bool {
        approval::is_host_named(&self.onward.rules.rules, page)
    }
}

/// Confines this process by its only profile.
fn lock(confinement: &Confinement, network: &NetworkNamespace) -> Result<Enforced, CageError> {
    match confinement.profile {
        Profile::Web => {
            if confinement.joins.is_some() {
                network.join()?;
            }
            Cage::enter(confinement)
        }
        Profile::Probe
        | Profile::Query
        | Profile::Mutate
        | Profile::Command
        | Profile::Session
        | Profile::Broker
        | Profile::Provider
        | Profile::Store
        | Profile::Verify
        | Profile::Format
        | Profile::Hook
        | Profile::GuardHook
        | Profile::Mcp
        | Profile::McpWrite
        | Profile::McpRemote
        | Profile::Git
        | Profile::GitLook
        | Profile::Document => Err(CageError {
            step: CageStep::Program,
            reason: format!("{} is not allowed in this process", confinement.profile.name()),
            hint: "this is a bug in agentd".to_owned(),
            source: None,
        }),
    }
}
