//! The types of a filter rule; the rules themselves are in `rule_table`.

use protocol::confinement::PathAct;

/// One row of the table: a condition and an action. The first matching row decides.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilterRule {
    /// The system call.
    pub(crate) call: &'static str,
    /// All tests must hold; no tests means always.
    pub(crate) when: &'static [ArgTest],
    /// The action.
    pub(crate) then: FilterAction,
    /// The effect of the call, as a phrase for the record.
    pub(crate) what: &'static str,
}

/// A test of an argument register: its low 32 bits, except for the marker. A filter can trust only
/// registers, since another thread can change memory after it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArgTest {
    /// Number of the argument, from 0.
    pub(crate) arg: usize,
    /// Mask of the compared bits.
    pub(crate) mask: u32,
    /// The values that they are compared with.
    pub(crate) is: ArgMatch,
}

/// A set of values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgMatch {
    /// One of these.
    In(&'static [u32]),
    /// None of these.
    NotIn(&'static [u32]),
    /// Any value except the marker. All 64 bits are compared, regardless of the mask.
    Unmarked,
}

/// The action of a matching rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterAction {
    /// Refused with this errno, and recorded if there are notifications.
    Refuse(i32),
    /// Refused with this errno, unless the process ID in this argument is the caller's own.
    RefuseOthers(usize, i32),
    /// Refused with this errno, unless the process ID in this argument belongs to the cage. Without
    /// notifications left to the kernel, since a filter cannot know that.
    RefuseOutside(usize, i32),
    /// Answered at once and never recorded: callers fall back to an older call.
    Fallback(i32),
    /// Reported to the notify supervisor, then left to the kernel.
    Observe(ObservedCall),
    /// Never left to the kernel: the notify supervisor makes the call on its own copy of the
    /// arguments.
    Emulate(EmulatedCall),
}

/// A call that the notify supervisor makes in the caller's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmulatedCall {
    /// `connect`.
    Connect,
    /// `truncate`.
    Truncate,
    /// A change of mode, owner or times.
    Metadata(MetadataTarget, MetadataField),
}

/// The file whose metadata changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataTarget {
    /// The file of the descriptor in this argument.
    Descriptor(usize),
    /// The file at the path in this argument.
    Path {
        /// The argument with the directory; `None` for the working directory.
        dir: Option<usize>,
        /// The argument with the path.
        path: usize,
        /// Treatment of a link at the end of the path.
        follow: FollowLink,
    },
}

/// The metadata that changes, with the number of its first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataField {
    /// The permissions.
    Mode(usize),
    /// User and group.
    Owner(usize),
    /// Two times in memory.
    Times(usize, TimeUnit),
}

/// The format of two times in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    /// Only seconds, as `utime` takes them.
    Seconds,
    /// With microseconds.
    Micros,
    /// With nanoseconds.
    Nanos,
}

/// A call that the notify supervisor observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObservedCall {
    /// Opens a file with write intent.
    Open {
        /// The argument with the directory; `None` for the working directory.
        dir: Option<usize>,
        /// The argument with the path.
        path: usize,
        /// The location of the flags.
        flags: OpenFlags,
    },
    /// Starts a program.
    Start {
        /// The argument with the directory; `None` for the working directory.
        dir: Option<usize>,
        /// The argument with the path.
        path: usize,
        /// The argument with the flags, if there is one.
        flags: Option<usize>,
    },
    /// Creates, removes or changes names.
    Names(&'static [PathArg]),
    /// Acts on another process.
    Process(ProcessArg, ProcessAct),
    /// `connect`.
    Connect,
    /// `bind`.
    Bind,
    /// Creates a System V segment.
    Segment,
}

/// Location of the flags of an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenFlags {
    /// In this argument.
    Arg(usize),
    /// The fixed flags of `creat`.
    Creat,
    /// In the structure this argument points to.
    How(usize),
}

/// A path argument, and the change of its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathArg {
    /// The argument with the directory; `None` for the working directory.
    pub(crate) dir: Option<usize>,
    /// The argument with the path.
    pub(crate) path: usize,
    /// The change.
    pub(crate) role: EntryChange,
}

/// A change of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryChange {
    /// It is created and must not exist.
    Made,
    /// It is removed and must exist.
    Removed,
    /// It may exist, and is replaced by another file.
    Replaced,
    /// It must exist and gets a second name elsewhere.
    Linked,
    /// Metadata of its file changes.
    Changed(PathAct, FollowLink),
}

/// Treatment of a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowLink {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Unless `AT_SYMLINK_NOFOLLOW` is set in this argument.
    Flag(usize),
}

/// The argument that names a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessArg {
    /// A process ID as the caller numbers it; a negative one is a group.
    Number(usize),
    /// A pidfd.
    Descriptor(usize),
}

/// An action on another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessAct {
    /// Sends the signal in this argument.
    Signal(usize),
    /// Attaches to it.
    Trace,
    /// Reads or writes its memory.
    Memory,
    /// Takes a descriptor from it.
    Descriptor,
}
