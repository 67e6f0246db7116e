//! The facts of a proposed call: from its arguments, and from the parts of its session that decide about it, to its
//! confinement and its runner. It changes nothing of the session. Used by `calls`.

use super::configured_calls::{check_server_tool, configured, confine_server, env_of, hooks};
use super::effect_reach::{self, ReachingCall};
use super::rights;
use super::services::{Asker, Services};
use super::tasks::start::TaskStart;
use crate::call_actor::line_pattern;
use crate::sign_in::SignInKeys;
use call::{
    CachePolicy, CallFacts, CallRemarks, Contained, Executor, FileVersions, NeedsProbe, Protects,
    UndoBy,
};
use launch::session_network::SessionNetwork;
use launch::spawner::Spawner;
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::client::SettingChange;
use protocol::confinement::{Confinement, Level, Network, Profile, Tier};
use protocol::hosts::HostRule;
use protocol::judgement::{EffectReach, PermissionMode, ToolKind};
use protocol::provider::PassedFd;
use protocol::tool::TlsIdentity;
use protocol::web::{PrivateNetworks, WebAddress, WebSettings};
use setup::git_signing::AgentGrant;
use setup::session_spec::{SessionSpec, read_chars};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use tool_specs::{
    CallAbout, Caller, ConfiguredRun, InterpretedCall, JobAsk, JobRequest, RunnerProgram, RunsIn,
    ServerToolCall, TaskRequest,
};

/// Most bytes of a call's arguments. They are sent to the broker twice, with a diff, and must fit
/// into its message cap. People could not judge more, either.
const LONGEST_INPUT: usize = 3 << 20;
/// Most characters of a hook's answer, which may hold the arguments of a call.
const HOOK_CHARS: u32 = 1 << 20;
/// Most bytes for the input of a command in the background at once: as much as a pipe holds.
const LONGEST_TEXT: usize = 64 * 1024;

/// A call whose arguments were read, and checked against the session.
pub(super) struct CheckedCall {
    pub(super) facts: CallFacts,
    pub(super) signing: Option<AgentGrant>,
    pub(super) confinement: Confinement,
    pub(super) private_hosts: Vec<HostRule>,
    /// The network that it joins.
    pub(super) network: Option<Arc<SessionNetwork>>,
    pub(super) runner: RunnerProgram,
}

impl CheckedCall {
    /// The hosts that its proxy denies, and the keys that it signs in with, if it has one.
    pub(super) fn proxy(
        &self,
        spec: &SessionSpec,
        identity: Option<&Arc<TlsIdentity>>,
        passed_fds: &[(PassedFd, OwnedFd)],
    ) -> (Vec<HostRule>, Option<SignInKeys>) {
        match self.confinement.network {
            Network::Listed => (
                approval::denied_hosts(&spec.rules().rules),
                SignInKeys::of(spec, identity, passed_fds),
            ),
            Network::Off | Network::On => (Vec::new(), None),
        }
    }
}

/// The parts of a session that decide about a proposed call.
pub(super) struct CallContext<'a, A> {
    pub(super) spec: &'a SessionSpec,
    /// The directory of the session's journal.
    pub(super) journal: &'a Path,
    pub(super) services: &'a Services<A>,
    pub(super) passed_fds: &'a [(PassedFd, OwnedFd)],
    pub(super) spawner: &'a Spawner,
    /// The versions of files that the model has read or written.
    pub(super) file_versions: &'a FileVersions,
    /// Protected files that a call changed.
    pub(super) tampered: &'a [String],
    /// The tier that the session's commands get.
    pub(super) tier: Tier,
}

impl<A: Asker> CallContext<'_, A> {
    /// The facts of a call, and what its process may do; or the result of a call that is invalid.
    pub(super) async fn facts(
        &self,
        call: Call,
        executor: Executor,
    ) -> Result<CheckedCall, ToolResult> {
        if call.input.len() > LONGEST_INPUT {
            return Err(too_long(&call.tool, call.input.len()));
        }
        let found =
            tool_specs::interpret(&call.tool, &call.input).map_err(|invalid| invalid.result())?;
        let executor = executor_of(executor, &found)?;
        self.check_room(&call, found.runs_in)?;
        if let Some(CallAbout::Job(request)) = &found.about {
            check_ask(&call.tool, &request.asks)?;
        }
        if found.spec.name == "undo_restore" {
            self.services.check_restore()?;
        }
        if let Some(request) = &found.task {
            let start = TaskStart::of(self.spec, self.journal, call.id.number);
            start.check(request, self.services)?;
        }
        let configured = match found.spec.caller {
            Caller::ModelOfServer => {
                check_server_tool(self.spec, &call, found.about.as_ref())
                    .map_err(|why| not_given(&call.tool, &why))?;
                None
            }
            Caller::Model => {
                self.spec
                    .check_given(found.spec.name)
                    .map_err(|why| not_given(&call.tool, &why))?;
                None
            }
            Caller::Conversation => {
                let by = configured(self.spec, &call, &found);
                Some(by.ok_or_else(|| not_its_own(found.spec.name))?)
            }
        };
        let own_server = found.page.as_ref().and_then(|page| self.network_of_page(page));
        let page = match &own_server {
            Some(_) => found.page.clone(),
            None => rights::page(self.spec, &found)?,
        };
        let (mut widens, mut confinement) = rights::asked(self.spec, &found, page.as_ref()).await?;
        confine_server((self.spec, self.spawner), &call, &mut confinement)?;
        if own_server.is_some() {
            // Its process reaches nothing beyond what the command may reach already.
            widens.clear();
        }
        let network = own_server.or_else(|| self.services.network_for(&confinement));
        confinement.joins = network.as_ref().map(|network| network.call);
        let signing = rights::signing(self.spec, &found).await?;
        let hint = rights::unsigned(self.spec, &found);
        let (undo, cache) = (undo_of(&found), cache_of(&found, call.origin.is_model()));
        // The store copies the files that the probe found.
        let needs_probe = !found.paths.is_empty()
            && (undo == UndoBy::Copy
                || approval::needs_probe(self.spec.rules(), found.spec.name, found.spec.kind));
        let env = env_of(
            (self.spec, self.passed_fds),
            (&call, found.profile),
            &confinement,
            signing.as_ref(),
        );
        let sandboxed = SettingChange::Mode(PermissionMode::Sandboxed);
        let reach = match (configured.is_some(), self.spec.rules().mode) {
            // Its entry in the configuration lets it run.
            (true, _) => EffectReach::Unknown,
            // The question offers no mode that the session may not have.
            (false, mode)
                if mode != PermissionMode::Sandboxed
                    && self.spec.check_change(&sandboxed).is_err() =>
            {
                EffectReach::Unknown
            }
            (false, _) => effect_reach::reach(ReachingCall {
                mode: self.spec.rules().mode,
                kind_for_verdict: found.spec.judged_as(),
                tool: found.spec.name,
                executor: &executor,
                runs_in: found.runs_in,
                undo,
                confinement: &confinement,
                profile: found.profile,
                tier: self.tier,
            }),
        };
        let contained = contained(self.spec, &executor, found.profile, &confinement);
        let described = self.spec.describe_call(&confinement, (&found, page.as_ref()));
        let facts = CallFacts {
            call: Call { tool: found.spec.name.to_owned(), input: found.input, ..call },
            kind: found.spec.kind,
            kind_for_verdict: found.spec.judged_as(),
            command: found.command,
            stored_bytes: found.stored_bytes,
            confinement: match &executor {
                Executor::Job(JobRequest { call, .. }) => {
                    self.cage_of("the background command", Some(*call))
                }
                Executor::Server(ServerToolCall { tool, .. }) => self.cage_of(
                    "its MCP server",
                    self.services.servers.call_of(tool, self.spec.servers()),
                ),
                Executor::SubAgent(_) => "that of the session, or less".to_owned(),
                Executor::Store => "agentd's own directories; no program runs".to_owned(),
                Executor::Runner | Executor::Conversation(_) => described,
            },
            page,
            needs_probe: if needs_probe { NeedsProbe::Yes } else { NeedsProbe::No },
            extra_rights: match &executor {
                Executor::Job(request) => self.services.rights_of_input(request),
                Executor::Server(_) | Executor::SubAgent(_) => Vec::new(),
                Executor::Runner | Executor::Conversation(_) | Executor::Store => widens,
            },
            env,
            timeout_ms: hooks(self.spec, found.profile)
                .map_or(self.spec.config().tools.timeout_ms, |hooks| hooks.timeout_ms),
            max_result_chars: match found.spec.name {
                "read" => read_chars(self.spec.config()),
                // Only the conversation reads the answer of a hook.
                "hook" | "guard_hook" => HOOK_CHARS,
                _ => self.spec.config().tools.max_result_chars,
            },
            pending_question: None,
            contained,
            reach,
            executor,
            runs_in: found.runs_in,
            undo,
            protects: match sandbox::has_protected_names(found.profile) {
                true => Protects::Files,
                false => Protects::Nothing,
            },
            cache,
            file_versions: match found.spec.requires_read {
                true => self.file_versions.clone(),
                false => self.file_versions.without_digests(),
            },
            web: (found.profile == Profile::Web).then(|| {
                (self.web_settings(&confinement), approval::page_rules(self.spec.rules()))
            }),
            denied_reads: approval::read_denials(self.spec.rules()),
            configured,
            typed_by: None,
            tampered: self.tampered.to_vec(),
            remarks: CallRemarks::default(),
            hint,
        };
        let private_hosts = match found.configured {
            Some(ConfiguredRun::RemoteServer { hosts }) => hosts,
            Some(ConfiguredRun::EventHook { .. } | ConfiguredRun::EditHook { .. }) | None => {
                Vec::new()
            }
        };
        let runner = found.spec.runner;
        Ok(CheckedCall { facts, signing, confinement, private_hosts, network, runner })
    }

    /// The settings of a call that reads pages. Where it is in a network of the session's commands, there
    /// is no other machine.
    fn web_settings(&self, confinement: &Confinement) -> WebSettings {
        let mut settings = self.spec.config().web.clone();
        if confinement.joins.is_some() {
            settings.private = PrivateNetworks::Reached;
        }
        settings
    }

    /// Checks that there is room for a call in the background.
    fn check_room(&self, call: &Call, runs_in: RunsIn) -> Result<(), ToolResult> {
        match runs_in {
            RunsIn::Background if call.origin != CallOrigin::ServerStart => {
                self.services.check_room(&call.tool)
            }
            RunsIn::Background | RunsIn::Foreground => Ok(()),
        }
    }

    /// The confinement of the call that is to answer, for a question.
    fn cage_of(&self, whose: &str, number: Option<u32>) -> String {
        let cage = number.and_then(|call| self.services.cage(call));
        format!("that of {whose}: {}", cage.unwrap_or("it does not run"))
    }

    /// The network of the commands in the background, if this page is one of their servers'. A network
    /// with a proxy leads further, and so is none. A page of this machine that the person named stays one.
    fn network_of_page(&self, page: &WebAddress) -> Option<Arc<SessionNetwork>> {
        let session = self.spec.confinement();
        let is_persons = self.spec.config().web.private == PrivateNetworks::Reached
            && approval::is_host_named(&self.spec.rules().rules, page);
        if !page.is_loopback() || is_persons || session.network != Network::Off {
            return None;
        }
        self.services.network_for(&Confinement { profile: Profile::Command, ..session.clone() })
    }
}

/// The process that executes a call. The conversation sends `Run` for every call that it does not execute itself;
/// the store executes some of those.
fn executor_of(executor: Executor, found: &InterpretedCall) -> Result<Executor, ToolResult> {
    let executor = match (executor, found.profile, &found.about, &found.task) {
        (Executor::Runner, Profile::Store, _, _) => Executor::Store,
        (Executor::Runner, Profile::Session, Some(CallAbout::Job(request)), _) => {
            Executor::Job(request.clone())
        }
        (Executor::Runner, Profile::Session, Some(CallAbout::Server(call)), _) => {
            Executor::Server(call.clone())
        }
        (Executor::Runner, Profile::Session, None, Some(task)) => {
            Executor::SubAgent(TaskRequest::clone(task))
        }
        (executor, _, _, _) => executor,
    };
    match (&executor, found.profile) {
        (
            Executor::Conversation(_)
            | Executor::Job(_)
            | Executor::Server(_)
            | Executor::SubAgent(_),
            Profile::Session,
        )
        | (Executor::Store, Profile::Store) => {}
        (
            Executor::Conversation(_)
            | Executor::Store
            | Executor::Job(_)
            | Executor::Server(_)
            | Executor::SubAgent(_),
            _,
        )
        | (Executor::Runner, Profile::Session | Profile::Store) => {
            return Err(not_its_own(found.spec.name));
        }
        (Executor::Runner, _) => {}
    }
    Ok(executor)
}

/// How it can be undone.
fn undo_of(found: &InterpretedCall) -> UndoBy {
    match (found.profile, found.spec.name) {
        (_, "undo_restore") => UndoBy::Restore,
        (Profile::Mutate | Profile::Format, _) => UndoBy::Copy,
        (Profile::Command | Profile::Git | Profile::Hook | Profile::McpWrite, _)
            if found.spec.kind == ToolKind::Mutation =>
        {
            UndoBy::Snapshot
        }
        (_, _) => UndoBy::Nothing,
    }
}

/// Its relation to cached results.
fn cache_of(found: &InterpretedCall, is_of_model: bool) -> CachePolicy {
    match (found.spec.cacheable, found.profile, found.spec.kind) {
        // Pinned files are read again each time.
        (true, _, _) if is_of_model => CachePolicy::Lookup,
        (_, Profile::Mutate | Profile::Format, _) => CachePolicy::InvalidatesPaths,
        (
            _,
            Profile::Command | Profile::Git | Profile::Hook | Profile::McpWrite,
            ToolKind::Mutation,
        ) => CachePolicy::InvalidatesAll,
        (_, _, _) => CachePolicy::Unused,
    }
}

/// Whether a call's effects stay in the workspace of this host, whatever it does: its START says so,
/// and the host that goes on with a lost session relies on it.
fn contained(
    spec: &SessionSpec,
    executor: &Executor,
    profile: Profile,
    confinement: &Confinement,
) -> Contained {
    let Some(seat) = spec.seat() else { return Contained::No };
    let of_runner =
        *executor == Executor::Runner && matches!(profile, Profile::Command | Profile::Git);
    let closed = confinement.network == Network::Off && confinement.joins.is_none();
    let alone = confinement.added.is_empty() && !seat.shared_disk;
    let caged = confinement.highest_tier == Tier::A && confinement.level != Level::Uncaged;
    match of_runner && closed && alone && caged {
        true => Contained::Yes,
        false => Contained::No,
    }
}

/// Checks what a call asks of one in the background, before it is judged.
fn check_ask(tool: &str, asks: &JobAsk) -> Result<(), ToolResult> {
    let invalid = |text: String| {
        Err(ToolResult::error(Outcome::Invalid, "invalid_arguments", tool, &text, ""))
    };
    match asks {
        JobAsk::Output { pattern: Some(pattern), .. } => match line_pattern(pattern) {
            Ok(_) => Ok(()),
            Err(error) => invalid(format!("`pattern` is no regular expression: {error}")),
        },
        JobAsk::Input { text, .. } if text.len() > LONGEST_TEXT => {
            invalid(format!("`text` has {} bytes; the most is {LONGEST_TEXT}", text.len()))
        }
        JobAsk::Output { pattern: None, .. } | JobAsk::Input { .. } | JobAsk::Stop => Ok(()),
    }
}

/// The conversation may answer its own tools only. A result for any other tool is refused.
fn not_its_own(tool: &str) -> ToolResult {
    let text = "the call was sent to the wrong process; nothing was run";
    ToolResult::error(Outcome::Invalid, "not_run", tool, text, "")
}

/// A sub-agent calls a tool that it was not given.
fn not_given(tool: &str, why: &str) -> ToolResult {
    let outcome = Outcome::Refused { rule: "tools of the sub-agent".to_owned() };
    ToolResult::error(outcome, "denied", tool, why, "")
}

fn too_long(tool: &str, bytes: usize) -> ToolResult {
    let text = format!("the arguments have {bytes} bytes; the most is {LONGEST_INPUT}");
    let hint = "Do it in several calls, or let a command produce the text.";
    ToolResult::error(Outcome::Invalid, "too_large", tool, &text, hint)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::tool::AfterInput;

    fn found(tool: &str, input: &str) -> InterpretedCall {
        tool_specs::interpret(tool, input).unwrap()
    }

    #[test]
    fn a_call_is_executed_where_its_tool_belongs_and_nowhere_else() {
        let read = found("read", r#"{"path":"a"}"#);
        assert_eq!(executor_of(Executor::Runner, &read), Ok(Executor::Runner));
        let wrong = executor_of(Executor::Store, &read).unwrap_err();
        assert!(wrong.text.contains("the wrong process"), "{}", wrong.text);
        let stop = found("bash_stop", r#"{"call":3}"#);
        let executor = executor_of(Executor::Runner, &stop).unwrap();
        assert!(matches!(&executor, Executor::Job(request) if request.call == 3));
        assert_eq!(executor_of(executor, &read).unwrap_err().outcome, Outcome::Invalid);
        let task = found("task", r#"{"prompt":"look","description":"a look"}"#);
        let executor = executor_of(Executor::Runner, &task).unwrap();
        assert!(matches!(executor, Executor::SubAgent(_)));
    }

    #[test]
    fn a_change_can_be_undone_and_makes_cached_results_invalid() {
        let write = found("write", r#"{"path":"a","content":"b"}"#);
        assert_eq!(undo_of(&write), UndoBy::Copy);
        assert_eq!(cache_of(&write, true), CachePolicy::InvalidatesPaths);
        let bash = found("bash", r#"{"command":"make"}"#);
        assert_eq!(undo_of(&bash), UndoBy::Snapshot);
        assert_eq!(cache_of(&bash, true), CachePolicy::InvalidatesAll);
        let read = found("read", r#"{"path":"a"}"#);
        assert_eq!(undo_of(&read), UndoBy::Nothing);
        assert_eq!(cache_of(&read, true), CachePolicy::Lookup);
        assert_eq!(cache_of(&read, false), CachePolicy::Unused, "a pinned file is read each time");
    }

    #[test]
    fn the_input_of_a_command_in_the_background_is_checked_before_it_is_judged() {
        let output = |pattern: &str| JobAsk::Output { pattern: Some(pattern.into()), wait_ms: 0 };
        assert!(check_ask("bash_output", &output("a+")).is_ok());
        assert!(check_ask("bash_output", &output("a(")).is_err());
        let input =
            |length: usize| JobAsk::Input { text: "a".repeat(length), then: AfterInput::KeepOpen };
        assert!(check_ask("bash_input", &input(LONGEST_TEXT)).is_ok());
        assert!(check_ask("bash_input", &input(LONGEST_TEXT + 1)).is_err());
    }
}
