//! The wire to `agentd-tool`: one call's life.
//!
//! `Hold` → `Save`? → `Overlays`? → `Mounted`? → `Sign`? → `Confine` → `Keeper`? → `Mounted`* → `Door`* → `Caged` (or `Uncaged`, the end) → `Go` →
//! `Output`* → `Done` (or `Lost`, the end). The runner learns what it shall do only with `Go`, after
//! its cage stands and the call's start is on disk. Behind a runner that died: `Hold` → `Repair` →
//! `Repaired` (or `Uncaged`).

use crate::call::{Probe, Report, Tampered};
use crate::confinement::{Confinement, Connection, Enforced};
use crate::hosts::{HostPort, HostRule};
use crate::store::KeptFile;
use crate::upkeep::LogLine;
use crate::web::{Onward, WebSettings};
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

/// What the runner shall do once it is let go.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Errand {
    /// Look at the paths that this call names; change nothing.
    Probe {
        /// The tool's real name.
        tool: String,
        /// Its arguments as JSON.
        input: String,
    },
    /// Look at what these would replace; change nothing.
    ProbeRestore(Vec<KeptFile>),
    /// Put these back, all or none.
    Restore {
        /// As they were.
        files: Vec<KeptFile>,
        /// As in `Run`.
        judged: Vec<JudgedPath>,
        /// As in `Run`.
        max_result_chars: u32,
    },
    /// Run the call.
    Run {
        /// The tool's real name.
        tool: String,
        /// Its arguments as JSON.
        input: String,
        /// What the verdict was given for: `(real path, SHA-256 or none)`. Where a file differs
        /// now, the call answers `stale` and changes nothing.
        judged: Vec<JudgedPath>,
        /// Environment of a command, already reduced to what it may see.
        env: Vec<(String, String)>,
        /// Longest time for a command in milliseconds where the call names none.
        timeout_ms: u64,
        /// Most characters of the result for the model.
        max_result_chars: u32,
    },
    /// For `agentd-web`: run this call of a tool of the web.
    Web {
        /// The tool's real name.
        tool: String,
        /// Its arguments as JSON.
        input: String,
        /// What the person set.
        settings: WebSettings,
        /// Where it may be led.
        onward: Onward,
        /// As in `Run`.
        max_result_chars: u32,
    },
    /// For `agentd-web`: until `Cancel`, carry what a command asks for over the sockets whose
    /// descriptors ride behind this, in the order of [`FromTool::Door`].
    Proxy {
        /// How many descriptors.
        doors: u16,
        /// Where it may lead.
        hosts: Vec<HostRule>,
        /// Where it may not, though `hosts` names it.
        denied: Vec<HostRule>,
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
    /// What it shows the command in the hosts' place.
    pub identity: Identity,
    /// The hosts.
    pub accounts: Vec<Account>,
}

/// One host that the proxy has a key for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Account {
    /// Which.
    pub host: HostPort,
    /// The user of `Basic`; without one the key is sent as `Bearer`.
    pub user: Option<String>,
}

/// A certificate and its private key, which no `Debug` shows.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Identity {
    /// DER.
    pub certificate: Vec<u8>,
    /// PKCS #8.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(…)")
    }
}

/// What came of `Errand::Certify`. The authority's own key is gone.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Certified {
    /// The authority's certificate as PEM, for commands to trust.
    pub authority: String,
    /// What it signed.
    pub identity: Identity,
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
    Hold,
    /// An empty file rides behind this: before `Caged`, keep there what the protected names hold.
    Save,
    /// A descriptor rides behind this: keep it as long as anything of the call lives. It carries the lock
    /// on what the overlays of the project keep.
    Overlays,
    /// A descriptor rides behind this: the overlays as an earlier call mounted them. They are mounted
    /// once, and attached in each call's root.
    Mounted,
    /// Once: build this cage.
    Confine(Confinement),
    /// Once, in place of `Confine`: lock yourself as the runner of a call of this confinement is,
    /// and put right what that call changed of the protected names. What its runner kept by `Save`
    /// rides behind this. Nothing of that call lives any more.
    Repair(Confinement),
    /// Once, after `Caged`.
    Go(Errand),
    /// After `Go`: end the call now; what was printed so far is kept.
    Cancel,
    /// At any time: say `Pong` with the same number.
    Ping(u64),
    /// Before `Confine`: a connection to the person's ssh agent rides behind this: git's signatures of the command by these
    /// keys are made there, and nothing else is asked of it.
    Sign(Vec<SigningKey>),
}

/// A public key of ssh.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SigningKey {
    /// As it goes over ssh's wires.
    pub blob: Vec<u8>,
    /// Whose it is, in words.
    pub comment: String,
}

/// Which stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The process of a cage that ends all others in it where the runner does not: at the runner's
/// death. Where it was stopped, that is whoever waits for the runner's end.
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
    /// By killing what is in its Landlock domain, after which it ends itself. Killing it would
    /// leave them.
    Guard,
}

/// From the runner.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromTool {
    /// A descriptor rides behind this: a socket, inside the command's network, at which our proxy
    /// is to be found; the first is for programs that take a proxy, the others are those of
    /// [`redirects`](crate::hosts::redirects). Before `Caged`, where the network is an allow-list.
    Door,
    /// A descriptor rides behind this: the overlays as they are mounted, for another call. Before
    /// `Caged`.
    Mounted,
    /// The cage stands, and this is what holds.
    Caged(Enforced),
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
        stream: Stream,
        /// Control codes neutralised.
        text: String,
    },
    /// The answer to `Errand::Probe`.
    Probed(Result<Probe, String>),
    /// The answer to `Errand::Run`; the runner ends.
    Done(Report),
    /// Of an `Errand::Proxy`: all that was decided so far. The last one answers `Cancel`; the proxy
    /// ends.
    Proxied {
        /// Equal ones are one, the first in order.
        connections: Vec<Connection>,
        /// How many more were decided after those.
        uncounted: u64,
    },
    /// For the log.
    Log(LogLine),
    /// The answer to `Ping`.
    Pong(u64),
    /// Before `Caged`, where the cage has one.
    Keeper(Keeper),
    /// The answer to `Repair`: what was changed and what was done about each, or why nothing can be
    /// said; the runner ends.
    Repaired(Result<Vec<Tampered>, String>),
    /// Before `Done`: a process of the cage died before the program began, for this reason. Nothing
    /// was run; the runner ends.
    Lost(String),
    /// The answer to `Errand::Certify`, or why there is none; the process ends.
    Certified(Result<Certified, String>),
}
