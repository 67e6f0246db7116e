//! The wire to a runner: `agentd-tool` and its like, one process for one job.
//!
//! Every runner begins alike: `Handover`* → `Begin` → `Cage` news* → `Caged` (or `Uncaged`, the end) → `Go`. It
//! receives its job only with `Go`, after its cage is complete; for a call, after START is
//! written, and durable if it is a mutation. Then each job has messages of its own:
//!
//! | Job | To it | From it |
//! |---|---|---|
//! | a call ([`RunnerJob::Run`], `Restore`, `Web`) | [`ToCall`], `Cancel` | [`FromCall`], from `Began` to `Done` (or `Lost`, the end) |
//! | a probe | | `Began`, `Probed` |
//! | a proxy | `Cancel` | `Proxied` |
//! | a certificate | | `Certified` |
//! | a repair ([`CageOrder::Repair`], without `Go`) | | `Repaired` |
//!
//! A runner in reserve ([`CageOrder::Reserve`]) says `Resting` in place of `Caged`. Then `Handover`? → `Renew` →
//! `Caged` (or `Lost`, the end: the cage no longer fits), and on as above.

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
    /// that follow, in the order of [`FromCage::ProxyListener`].
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
    /// Before `Begin` and `Renew`: a descriptor rides behind this. Those of a proxy ride behind its `Go`.
    Handover(Handover),
    /// Once: build this cage.
    Begin(Box<CageOrder>),
    /// After `Resting`: a call takes this runner. Look again at what its cage opened and protects.
    Renew,
    /// Once, after `Caged`.
    Go(RunnerJob),
    /// Behind `Caged`: exit. After `Go`: end the job now; the output of a command so far is kept.
    Cancel,
    /// After `Go`, to a call.
    Call(ToCall),
    /// At any time: say `Pong` with the same number.
    Ping(u64),
}

/// The use of a descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Handover {
    /// Keep it as long as anything of the call lives. It carries the session's lock, so that the session
    /// does not go on elsewhere before this call is over.
    SessionLock,
    /// An empty file: save the protected files' content in it before `Caged`. For a repair, the file that a
    /// runner saved.
    Protected,
    /// Keep it open until every process of the call has ended. It holds the lock on the project's overlays.
    Overlays,
    /// The overlays as an earlier call mounted them. They are mounted once, and attached in each call's root.
    Mounted,
    /// Where the confinement joins the network of another call: this namespace of it. The user namespace
    /// comes first.
    Join(NamespaceKind),
    /// A connection to the person's ssh agent. The runner uses it for the command's git signatures by these
    /// keys, and for no other request.
    Sign(Vec<SigningKey>),
}

/// The cage to build, and why.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum CageOrder {
    /// For the job that `Go` names.
    Confine(Confinement),
    /// To rest without a call until `Renew`.
    Reserve(Confinement),
    /// To restore the protected files that a call of this confinement changed. No process of that call is
    /// alive.
    Repair(Confinement),
}

/// To a call that runs.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToCall {
    /// The conversation goes on while the command runs; answered by `InBackground`.
    Background,
    /// Write this to the command's standard input; answered by `InputTaken`.
    Input {
        /// The bytes, as text.
        text: String,
        /// What becomes of the input then.
        then: AfterInput,
    },
    /// A message to the server that runs.
    Server(ToServer),
    /// About the protected files.
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
    /// For the log.
    Log(LogLine),
    /// The answer to `Ping`.
    Pong(u64),
    /// About its cage.
    Cage(FromCage),
    /// From a call.
    Call(FromCall),
    /// The answer to [`RunnerJob::Probe`] and `ProbeRestore`.
    Probed(Result<ProbeReport, String>),
    /// Of a [`RunnerJob::Proxy`]: all that was decided so far. The last one answers `Cancel`; the proxy
    /// ends.
    Proxied {
        /// Equal ones are one, the first in order.
        connections: Vec<ProxyConnection>,
        /// How many more were decided after those.
        uncounted: u64,
    },
    /// The answer to [`CageOrder::Repair`]: the changed files and their repairs, or the reason why they are
    /// unknown. The runner exits.
    Repaired(Result<Vec<TamperedFile>, String>),
    /// The answer to [`RunnerJob::Certify`], or the reason for having none. The process exits.
    Certified(Result<CertifiedSession, String>),
}

/// What a runner says about its cage.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromCage {
    /// While it is built, where the cage has one.
    Keeper(Keeper),
    /// A descriptor rides behind this: the overlays as they are mounted, for another call. While it is
    /// built.
    Mounted,
    /// A descriptor rides behind this: a socket, inside the command's network, at which our proxy is to be
    /// found; the first is for programs that take a proxy, the others are those of
    /// [`redirects`](crate::hosts::redirects). While it is built, where the network is an allow-list.
    ProxyListener,
    /// It stands, for no call. `opened` names each path that it has opened or covers.
    Resting {
        /// Its tier.
        tier: Tier,
        /// See `sandbox::opened_paths`.
        opened: String,
    },
    /// It is complete; this is the enforced confinement.
    Caged(Enforced),
    /// It could not be made; the runner ends, nothing was run.
    Uncaged {
        /// The step that failed.
        step: String,
        /// In plain words, with a way on.
        reason: String,
    },
    /// It does not fit any more, or a process of it died before the program began, for this reason. Nothing
    /// was run; the runner ends.
    Lost(String),
}

/// What a call says while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromCall {
    /// The answer to `Go` for a call or a probe. It is in the socket before anything of the job is done:
    /// a runner that ended without it has done nothing.
    Began,
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
    /// Protected files that were put right just now.
    PutRight(Vec<TamperedFile>),
    /// The end; the runner exits.
    Done(Box<RunReport>),
}
