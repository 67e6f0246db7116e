//! What the kernel did not let a call do: its type, and its words for every reader.

use super::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::fmt::{Display, Formatter, Result};
use std::net::SocketAddr;

/// How sure a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The filter answered it.
    Refused,
    /// Seen on its way to the kernel, which refuses it by the same grants.
    Predicted,
}

/// One thing that the kernel did not let a call do.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct Refusal {
    /// How sure.
    pub kind: RefusalKind,
    /// The system call.
    pub syscall: String,
    /// Its decisive argument. Older builds wrote its words, as `detail`.
    #[serde(alias = "detail")]
    pub subject: Subject,
    /// The errno answered or expected.
    pub errno: i32,
    /// The process, as the host numbers it.
    pub pid: u32,
    /// How often in a row.
    pub count: u64,
}

/// The decisive argument of a refused system call. Paths and names are for readers: control
/// characters are escaped, and a long one is cut.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A change of a file, a directory or a name.
    Path {
        /// The real path.
        path: String,
        /// The change.
        act: PathAct,
    },
    /// A program outside the executable directories.
    Program {
        /// The real path.
        path: String,
        /// The script whose first line names the program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<String>,
    },
    /// The start of a program, by a process that may start none.
    Start {
        /// As the process names it.
        path: Option<String>,
    },
    /// An internet address.
    Address(SocketAddr),
    /// An address of this machine, where a program outside the cage listens.
    HostAddress(SocketAddr),
    /// A socket file.
    UnixSocket(String),
    /// A socket in the abstract name space.
    AbstractSocket(String),
    /// A socket without a name.
    UnnamedSocket,
    /// An address of another family.
    OtherAddress,
    /// A new socket.
    Socket(SocketSpec),
    /// A new pair of sockets.
    SocketPair(SocketSpec),
    /// A signal to a process, or to a group if the number is negative.
    Signal {
        /// Its number.
        signal: i32,
        /// The receiver, as the caller numbers it.
        pid: i32,
    },
    /// Another process, or a group if the number is negative.
    Process {
        /// The access.
        act: ProcessAct,
        /// As the caller numbers it.
        pid: i32,
    },
    /// New namespaces, by their names.
    Namespaces(Vec<String>),
    /// A request to a device.
    Request(u32),
    /// Another execution domain.
    Personality(u32),
    /// An operation on the kernel or the machine.
    Operation {
        /// Its name.
        what: String,
        /// The path in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Any, of a program that hides its memory.
    HiddenMemory,
    /// The words of an older build, or the JSON of a newer one.
    #[serde(untagged, deserialize_with = "any")]
    Text(String),
}

/// A change of a file, a directory or a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathAct {
    /// Opened for writing.
    Write,
    /// A new name.
    Make,
    /// A name removed.
    Remove,
    /// A name that a renamed file gets.
    Replace,
    /// A file that gets a second name.
    Link,
    /// Its mode.
    Mode,
    /// Its owner.
    Owner,
    /// Its times.
    Times,
    /// Its length.
    Length,
    /// Its attributes.
    Attributes,
    /// A configuration of git that cannot be replaced now.
    Busy,
}

/// An access to another process.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessAct {
    /// Tracing it.
    Trace,
    /// Its memory.
    Memory,
    /// A descriptor of it.
    Descriptor,
    /// Its limits.
    Limits,
    /// A setting of it, by its name.
    Setting(String),
}

/// The arguments of a new socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct SocketSpec {
    /// The address family.
    pub family: u32,
    /// The type, without its flags.
    pub kind: u32,
    /// The protocol.
    pub protocol: u32,
}

/// A text as it is, anything else as JSON.
fn any<'de, D: Deserializer<'de>>(read: D) -> std::result::Result<String, D::Error> {
    let read = Value::deserialize(read)?;
    Ok(read.as_str().map_or_else(|| read.to_string(), str::to_owned))
}

impl Subject {
    /// The file, directory, program or socket file that was refused.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Path { path, .. } | Self::Program { path, .. } | Self::UnixSocket(path) => {
                Some(path)
            }
            Self::Start { .. }
            | Self::Address(_)
            | Self::HostAddress(_)
            | Self::AbstractSocket(_)
            | Self::UnnamedSocket
            | Self::OtherAddress
            | Self::Socket(_)
            | Self::SocketPair(_)
            | Self::Signal { .. }
            | Self::Process { .. }
            | Self::Namespaces(_)
            | Self::Request(_)
            | Self::Personality(_)
            | Self::Operation { .. }
            | Self::HiddenMemory
            | Self::Text(_) => None,
        }
    }

    /// The same with each text that the confined process chose put through `clean`.
    #[must_use]
    pub fn cleaned(mut self, clean: impl Fn(&str) -> String) -> Self {
        let texts = match &mut self {
            Self::Path { path, .. } => [Some(path), None],
            Self::Program { path, script } => [Some(path), script.as_mut()],
            Self::Start { path } | Self::Operation { path, .. } => [path.as_mut(), None],
            Self::UnixSocket(text) | Self::AbstractSocket(text) | Self::Text(text) => {
                [Some(text), None]
            }
            Self::Address(_)
            | Self::HostAddress(_)
            | Self::UnnamedSocket
            | Self::OtherAddress
            | Self::Socket(_)
            | Self::SocketPair(_)
            | Self::Signal { .. }
            | Self::Process { .. }
            | Self::Namespaces(_)
            | Self::Request(_)
            | Self::Personality(_)
            | Self::HiddenMemory => [None, None],
        };
        for text in texts.into_iter().flatten() {
            *text = clean(text);
        }
        self
    }
}

impl SocketSpec {
    /// True for the families of the internet.
    #[must_use]
    pub fn is_inet(&self) -> bool {
        matches!(self.family, 2 | 10)
    }
}

/// The words for people and models, after the name of the system call.
impl Display for Subject {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Path { path, act } => write!(f, "{path}{}", act.words()),
            Self::Program { path, script: None } => write!(f, "{path}, running it"),
            Self::Program { path, script: Some(script) } => {
                write!(f, "{path}, running {script} with it")
            }
            Self::Start { path: None } => write!(f, "starting a program"),
            Self::Start { path: Some(path) } => write!(f, "starting a program {path}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::HostAddress(address) => write!(f, "{address} of the host"),
            Self::UnixSocket(path) => write!(f, "{path}"),
            Self::AbstractSocket(name) => write!(f, "abstract socket @{name}"),
            Self::UnnamedSocket => write!(f, "a socket without a name"),
            Self::OtherAddress => write!(f, "an address of another family"),
            Self::Socket(spec) => write!(f, "{spec}"),
            Self::SocketPair(spec) => write!(f, "{spec}, as a pair"),
            Self::Signal { signal, pid } => write!(f, "signal {signal} to {}", process(*pid)),
            Self::Process { act, pid } => write!(f, "{} {}", act.words(), process(*pid)),
            Self::Namespaces(names) => write!(f, "new namespaces: {}", names.join(", ")),
            Self::Request(number) => match number {
                0x5412 => write!(f, "TIOCSTI, typing into the terminal"),
                0x541C => write!(f, "TIOCLINUX, driving the console"),
                0x541D => write!(f, "TIOCCONS, taking the console's output"),
                0x5423 => write!(f, "TIOCSETD, another line discipline"),
                other => write!(f, "request {other:#x}"),
            },
            Self::Personality(number) => write!(f, "personality {number:#x}"),
            Self::Operation { what, path: None } => write!(f, "{what}"),
            Self::Operation { what, path: Some(path) } => write!(f, "{what} {path}"),
            Self::HiddenMemory => write!(f, "by a program that hides its memory"),
            Self::Text(text) => write!(f, "{text}"),
        }
    }
}

impl PathAct {
    fn words(self) -> &'static str {
        match self {
            Self::Write => " for writing",
            Self::Make => ", making it",
            Self::Remove => ", removing it",
            Self::Replace => ", as a new name",
            Self::Link => ", linking to it",
            Self::Mode => ", its mode",
            Self::Owner => ", its owner",
            Self::Times => ", its times",
            Self::Length => ", its length",
            Self::Attributes => ", its attributes",
            Self::Busy => {
                ", while another command runs in its repository or since a program outside \
                 replaced it"
            }
        }
    }
}

impl ProcessAct {
    fn words(&self) -> String {
        match self {
            Self::Trace => "attaching to".to_owned(),
            Self::Memory => "memory of".to_owned(),
            Self::Descriptor => "a descriptor of".to_owned(),
            Self::Limits => "limits of".to_owned(),
            Self::Setting(what) => format!("{what} of"),
        }
    }
}

fn process(number: i32) -> String {
    match number {
        ..0 => format!("process group {}", number.unsigned_abs()),
        0.. => format!("pid {number}"),
    }
}

/// For example `AF_INET stream socket`; names an unusual protocol.
impl Display for SocketSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let family = match self.family {
            1 => "AF_UNIX",
            2 => "AF_INET",
            4 => "AF_IPX",
            5 => "AF_APPLETALK",
            9 => "AF_X25",
            10 => "AF_INET6",
            15 => "AF_KEY",
            16 => "AF_NETLINK",
            17 => "AF_PACKET",
            21 => "AF_RDS",
            29 => "AF_CAN",
            30 => "AF_TIPC",
            31 => "AF_BLUETOOTH",
            38 => "AF_ALG",
            39 => "AF_NFC",
            40 => "AF_VSOCK",
            43 => "AF_SMC",
            44 => "AF_XDP",
            number => &format!("family {number}"),
        };
        let kind = match self.kind {
            1 => "stream",
            2 => "datagram",
            3 => "raw",
            5 => "packet sequence",
            number => &format!("type {number}"),
        };
        write!(f, "{family} {kind} socket")?;
        match self.protocol {
            0 | 6 | 17 => Ok(()),
            262 => write!(f, ", protocol 262 (MPTCP)"),
            other => write!(f, ", protocol {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sockets_in_words() {
        let said = |family, kind, protocol| SocketSpec { family, kind, protocol }.to_string();
        assert_eq!(said(2, 1, 0), "AF_INET stream socket");
        assert_eq!(said(10, 3, 58), "AF_INET6 raw socket, protocol 58");
        assert_eq!(said(2, 1, 262), "AF_INET stream socket, protocol 262 (MPTCP)");
        assert_eq!(said(40, 1, 0), "AF_VSOCK stream socket");
        assert_eq!(said(99, 9, 0), "family 99 type 9 socket");
    }

    #[test]
    fn the_words_of_an_older_build_stay_as_they_are() {
        let old = r#"{"kind":"predicted","syscall":"openat","detail":"/etc/x for writing","errno":13,"pid":7,"count":1}"#;
        let read: Refusal = serde_json::from_str(old).unwrap();
        assert_eq!(read.subject, Subject::Text("/etc/x for writing".to_owned()));
        assert_eq!(read.subject.to_string(), "/etc/x for writing");
        let again: Refusal = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn a_subject_of_a_newer_build_is_kept_as_its_json() {
        for newer in [
            r#"{"key_ring":{"name":"x"}}"#,
            r#"{"path":{"act":"encrypt","path":"/etc/x"}}"#,
            r#"{"path":{"act":"write"}}"#,
            "[1,null]",
        ] {
            let line = format!(
                r#"{{"kind":"refused","syscall":"x","subject":{newer},"errno":1,"pid":7,"count":1}}"#
            );
            let read: Refusal = serde_json::from_str(&line).unwrap();
            assert_eq!(read.subject, Subject::Text(newer.to_owned()));
        }
    }

    #[test]
    fn each_text_of_a_process_is_cleaned() {
        let clean = |text: &str| text.replace('x', "y");
        let text = || "x".to_owned();
        for (subject, words) in [
            (Subject::Path { path: text(), act: PathAct::Make }, "y, making it"),
            (Subject::Program { path: text(), script: Some(text()) }, "y, running y with it"),
            (Subject::Start { path: Some(text()) }, "starting a program y"),
            (Subject::UnixSocket(text()), "y"),
            (Subject::AbstractSocket(text()), "abstract socket @y"),
            (Subject::Text(text()), "y"),
            (Subject::Operation { what: "mounting".to_owned(), path: Some(text()) }, "mounting y"),
        ] {
            assert_eq!(subject.cleaned(clean).to_string(), words);
        }
    }
}
