//! The wire to `agentd-tool`: one call's life.
//!
//! `SessionLock` → `SaveProtected`? → `Overlays`? → `Mounted`? → `Sign`? → `Join`* → `Confine` → `Keeper`? → `Mounted`* →
//! `ProxyListener`* → `Caged` (or `Uncaged`, the end) → `Go` → `Began` → `Output`* → `Done` (or `Lost`, the
//! end). The runner receives its job only with `Go`, after its cage is complete and START is durable.
//!
//! A runner in reserve: `SessionLock` → `Overlays`? → `Mounted`? → `Join`* → `Reserve` → `Keeper`? → `Mounted`* →
//! `Resting` → `SaveProtected`? → `Renew` → `Caged` (or `Lost`, the end: the cage no longer fits), and on as above. After a
//! runner's death, another one repairs: `SessionLock` → `Repair` → `Repaired` (or `Uncaged`).

use crate::call::{ProbeReport, RunReport, TamperedFile};
use crate::confinement::{Confinement, Enforced, GitSettings, ProxyConnection, Tier};
use crate::hosts::{HostPort, HostRule};
use crate::judgement::RuleSet;
use crate::log::LogLine;
use crate::mcp::{FromServer, ToServer};
use crate::store::FileBackup;
use crate::web::{RedirectScope, WebSettings};
use crate::{Decode, Encode, Link};

/// The wire's name.
#[derive(Debug)]
pub enum ToolLink {}

impl Link for ToolLink {
    type To = ToTool;
    type From = FromTool;
    const NAME: &'static str = "tool";
    /// A file of some MiB to write, or a result with its diff.
    const MESSAGE_CAP: usize = 16 << 20;
}

/// The job that the runner executes after `Go`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum RunnerJob {
    /// Look at the paths that this call names; change nothing.
    Probe {
        /// The tool's real name.
        tool: String,
        /// Its arguments as JSON.
        input: String,
    },
    /// Probe the paths that these edits would replace; change nothing.
    ProbeRestore(Vec<FileBackup>),
    /// Put these back, all or none.
    Restore {
        /// As they were.
        files: Vec<FileBackup>,
        /// As in `Run`.
        judged: Vec<JudgedPath>,
        /// As in `Run`.
        max_result_chars: u32,
        /// The rules that deny `read`.
        denied_reads: RuleSet,
    },
    /// Run the call.
    Run {
        /// The tool's real name.
        tool: String,
        /// Its arguments as JSON.
        input: String,
        /// The files that the verdict was given for: `(real path, SHA-256 or none)`. If one differs
        /// now, the call fails with `stale` and changes nothing.
        judged: Vec<JudgedPath>,
        /// Environment of a command, already reduced to the variables that it may see.
        env: Vec<(String, String)>,
        /// Longest time for a command in milliseconds where the call names none.
        timeout_ms: u64,
        /// Most characters of the result for the model.
        max_result_chars: u32,
        /// The rules that deny `read`: no result shows the text of such a file, and instructions import none.
        denied_reads: RuleSet,
    },
    /// For `agentd-web`: run this call of a tool of the web.
    Web {
        /// The tool's real name.
        tool: String,
        /// Its arguments as JSON.
        input: String,
        /// The person's settings.
        settings: WebSettings,
        /// Where it may be led.
        onward: RedirectScope,
        /// As in `Run`.
        max_result_chars: u32,
    },
    /// For `agentd-web`: until `Cancel`, proxy the command's connections on the listening sockets
    /// that follow, in the order of [`FromTool::ProxyListener`].
    Proxy {
        /// How many descriptors.
        doors: u16,
        /// Where it may lead.
        hosts: Vec<HostRule>,
        /// Where it may not, though `hosts` names it.
        denied: Vec<HostRule>,
        /// Those among them that may be in private networks and on this machine, and named in numbers.
        private: Vec<HostRule>,
        /// Where it signs in. A descriptor with the key of each account follows the socket's, in their
        /// order.
        sign_in: Option<SignIn>,
    },
    /// For `agentd-web`: make a certificate for these hosts, and the authority that signs it.
    Certify(Vec<HostPort>),
}

/// How a proxy signs in for a command.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SignIn {
    /// The certificate shown to the command in place of the hosts' own.
    pub identity: TlsIdentity,
    /// The hosts.
    pub accounts: Vec<SignInAccount>,
}

/// One host that the proxy has a key for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SignInAccount {
    /// Which.
    pub host: HostPort,
    /// The user of `Basic`; without one the key is sent as `Bearer`.
    pub user: Option<String>,
}

/// A certificate and its private key, which no `Debug` shows.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct TlsIdentity {
    /// DER.
    pub certificate: Vec<u8>,
    /// PKCS #8.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(…)")
    }
}

/// The result of `RunnerJob::Certify`. The authority's own key is gone.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CertifiedSession {
    /// The authority's certificate as PEM, for commands to trust.
    pub authority: String,
    /// The signed certificate.
    pub identity: TlsIdentity,
}

/// A path as it was when the call was judged.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct JudgedPath {
    /// With links resolved.
    pub real: String,
    /// SHA-256 of its bytes; absent where there was no file.
    pub digest: Option<String>,
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToTool {
    /// A descriptor rides behind this: keep it as long as anything of the call lives. It carries
    /// the session's lock, so that the session does not go on elsewhere before this call is over.
    SessionLock,
    /// An empty file follows: save the protected files' content in it before `Caged`.
    SaveProtected,
    /// A descriptor follows: keep it open until every process of the call has ended. It holds the
    /// lock on the project's overlays.
    Overlays,
    /// A descriptor rides behind this: the overlays as an earlier call mounted them. They are mounted
    /// once, and attached in each call's root.
    Mounted,
    /// Before `Confine` and `Reserve`, where the confinement joins the network of another call: a
    /// descriptor of this namespace of it follows. The user namespace comes first.
    Join(NamespaceKind),
    /// Once: build this cage.
    Confine(Confinement),
    /// Once, in place of `Confine`: build this cage, then rest without a call until `Renew`.
    Reserve(Confinement),
    /// After `Resting`: a call takes this runner. Look again at what its cage opened and protects.
    /// `SaveProtected` may come before it.
    Renew,
    /// Once, in place of `Confine`: confine yourself as a runner of this confinement, and restore
    /// the protected files that the call changed. The file that its runner saved with `SaveProtected`
    /// follows. No process of that call is alive.
    Repair(Confinement),
    /// Once, after `Caged`.
    Go(RunnerJob),
    /// After `Go`: end the call now; output so far is kept.
    Cancel,
    /// After `Go`: the conversation goes on while the command runs; answered by `InBackground`.
    Background,
    /// After `Go`: write this to the command's standard input; answered by `InputTaken`.
    Input {
        /// The bytes, as text.
        text: String,
        /// What becomes of the input then.
        then: AfterInput,
    },
    /// At any time: say `Pong` with the same number.
    Ping(u64),
    /// After `Go`: a message to the server that runs.
    Server(ToServer),
    /// Before `Confine`: a connection to the person's ssh agent follows. The runner uses it for the
    /// command's git signatures by these keys, and for no other request.
    Sign(Vec<SigningKey>),
    /// After `Go`: about the protected files, while the command runs.
    Protected(ProtectedOrder),
}

/// What the supervisor says about protected files while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ProtectedOrder {
    /// Look at them now: a person may be about to use them.
    Look,
    /// Another call of the session may change git's settings from now on, or has ended.
    OtherCall {
        /// Its number.
        call: u32,
        /// What it may do.
        git: GitSettings,
    },
}

/// A namespace of a command that later commands of its session join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum NamespaceKind {
    /// The one that owns the network. Absent where agentd has root's rights.
    User,
    /// The network: loopback and nothing else.
    Network,
}

/// A public key of ssh.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SigningKey {
    /// As it goes over ssh's wires.
    pub blob: Vec<u8>,
    /// Whose it is, in words.
    pub comment: String,
}

/// A command's standard input after a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum AfterInput {
    /// It takes more.
    KeepOpen,
    /// It is at its end.
    Close,
}

/// Which stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OutputStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The process that kills all others in a cage when the runner dies. If it was stopped, the process
/// that waits for the runner's exit does so instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Keeper {
    /// As the runner and the supervisor number it; a child of the runner.
    pub pid: u32,
    /// How it does so.
    pub kind: KeeperKind,
    /// The process that becomes the command; a child of the runner too.
    pub command: u32,
}

/// How a keeper ends the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum KeeperKind {
    /// By its own end: it is the first process of a PID namespace.
    FirstProcess,
    /// Kills every process in its Landlock domain, then exits. Killing this process itself would
    /// leave them alive.
    Guard,
}

/// From the runner.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromTool {
    /// A descriptor rides behind this: a socket, inside the command's network, at which our proxy
    /// is to be found; the first is for programs that take a proxy, the others are those of
    /// [`redirects`](crate::hosts::redirects). Before `Caged`, where the network is an allow-list.
    ProxyListener,
    /// A descriptor rides behind this: the overlays as they are mounted, for another call. Before
    /// `Caged`.
    Mounted,
    /// The cage is complete; this is the enforced confinement.
    Caged(Enforced),
    /// The cage stands, for no call. `opened` names each path that the cage has opened or covers.
    Resting {
        /// The tier of the cage.
        tier: Tier,
        /// See `sandbox::opened_paths`.
        opened: String,
    },
    /// The cage could not be made; the runner ends, nothing was run.
    Uncaged {
        /// The step that failed.
        step: String,
        /// In plain words, with a way on.
        reason: String,
    },
    /// A command printed this, at most 64 KiB; for screens, the result is in `Done`.
    Output {
        /// Where.
        stream: OutputStream,
        /// Control codes neutralised.
        text: String,
    },
    /// A descriptor of this namespace of the command follows, for later commands of the session. Before
    /// `InBackground`, where the command made a network of its own.
    Namespace(NamespaceKind),
    /// The answer to `Background`.
    InBackground,
    /// The answer to `Input`: the pipe took all of it, or why not.
    InputTaken(Result<(), String>),
    /// From the server that runs.
    Server(FromServer),
    /// The answer to `RunnerJob::Probe`.
    Probed(Result<ProbeReport, String>),
    /// The answer to `RunnerJob::Run`; the runner ends.
    Done(RunReport),
    /// Of an `RunnerJob::Proxy`: all that was decided so far. The last one answers `Cancel`; the proxy
    /// ends.
    Proxied {
        /// Equal ones are one, the first in order.
        connections: Vec<ProxyConnection>,
        /// How many more were decided after those.
        uncounted: u64,
    },
    /// For the log.
    Log(LogLine),
    /// The answer to `Ping`.
    Pong(u64),
    /// Before `Caged`, where the cage has one.
    Keeper(Keeper),
    /// The answer to `Repair`: the changed files and their repairs, or the reason why they are
    /// unknown. The runner exits. While a command runs: the files that were put right just now.
    Repaired(Result<Vec<TamperedFile>, String>),
    /// Before `Done`: a process of the cage died before the program began, for this reason. Nothing
    /// was run; the runner ends.
    Lost(String),
    /// The answer to `RunnerJob::Certify`, or the reason for having none. The process exits.
    Certified(Result<CertifiedSession, String>),
    /// The answer to `Go` for a call or a probe. It is in the socket before anything of the job is done:
    /// a runner that ended without it has done nothing.
    Began,
}
