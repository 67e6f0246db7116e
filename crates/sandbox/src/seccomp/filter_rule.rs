//! The words a rule of the filter is made of; the rules themselves are in `table`.

/// One line of the table: when it applies and what follows. The first that applies decides.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilterRule {
    /// The system call.
    pub(crate) call: &'static str,
    /// All must hold; none means always.
    pub(crate) when: &'static [ArgTest],
    /// What follows.
    pub(crate) then: FilterAction,
    /// What the call would do, as a phrase for the record.
    pub(crate) what: &'static str,
}

/// A question about an argument register, its low 32 bits but for the mark: the only thing a filter
/// can trust, since whatever lies in memory can be changed by another thread after the look.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArgTest {
    /// Which argument, from 0.
    pub(crate) arg: usize,
    /// Bits that count.
    pub(crate) mask: u32,
    /// What they are compared with.
    pub(crate) is: ArgMatch,
}

/// A set of values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgMatch {
    /// One of these.
    In(&'static [u32]),
    /// None of these.
    NotIn(&'static [u32]),
    /// Anything but the plan's mark, in all 64 bits and whatever the mask.
    Unmarked,
}

/// What follows when a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterAction {
    /// Refused with this errno, and recorded where there is a listener.
    Refuse(i32),
    /// Refused with this errno unless the process number in this argument is the caller's own.
    RefuseOthers(usize, i32),
    /// Refused with this errno unless the process number in this argument is one of the cage's own.
    /// Left to the kernel where nobody listens: then nobody can tell.
    RefuseOutside(usize, i32),
    /// Answered at once and never recorded: callers try an older call instead.
    Fallback(i32),
    /// Shown to the listener, then left to the kernel.
    Observe(ObservedCall),
    /// Never left to the kernel: the listener carries the call out on its own copy.
    Emulate(EmulatedCall),
}

/// What the listener does in the caller's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmulatedCall {
    /// `connect`.
    Connect,
    /// `truncate`.
    Truncate,
    /// A change of what a file's status says.
    Metadata(MetadataTarget, MetadataField),
}

/// Whose status it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataTarget {
    /// The file behind the descriptor in this argument.
    Descriptor(usize),
    /// What the path in this argument leads to.
    Path {
        /// The argument with the directory; nothing where it is the working directory.
        dir: Option<usize>,
        /// The argument with the path.
        path: usize,
        /// Whether a link at its end is followed.
        follow: FollowLink,
    },
}

/// What of it changes, from this argument on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataField {
    /// The permissions.
    Mode(usize),
    /// User and group.
    Owner(usize),
    /// Two times, in memory.
    Times(usize, TimeUnit),
}

/// How two times lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    /// Seconds alone, as `utime` takes them.
    Seconds,
    /// With microseconds.
    Micros,
    /// With nanoseconds.
    Nanos,
}

/// What the listener has to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObservedCall {
    /// A file opened with write intent.
    Open {
        /// The argument with the directory; nothing where it is the working directory.
        dir: Option<usize>,
        /// The argument with the path.
        path: usize,
        /// Where the flags are.
        flags: OpenFlags,
    },
    /// A program is started.
    Start {
        /// The argument with the directory; nothing where it is the working directory.
        dir: Option<usize>,
        /// The argument with the path.
        path: usize,
        /// The argument with the flags, where there is one.
        flags: Option<usize>,
    },
    /// Names that are made, removed or changed.
    Names(&'static [PathArg]),
    /// Another process.
    Process(ProcessArg, ProcessAct),
    /// The address of a `connect`.
    Connect,
    /// The address of a `bind`.
    Bind,
    /// A System V segment.
    Segment,
}

/// Where the flags of an open are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenFlags {
    /// In this argument.
    Arg(usize),
    /// They are those of `creat`.
    Creat,
    /// In the structure this argument points to.
    How(usize),
}

/// A path argument and what happens to the name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathArg {
    /// The argument with the directory; nothing where it is the working directory.
    pub(crate) dir: Option<usize>,
    /// The argument with the path.
    pub(crate) path: usize,
    /// What happens to it.
    pub(crate) role: NameChange,
}

/// What happens to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameChange {
    /// It must not exist and is made.
    Made,
    /// It must exist and goes away.
    Removed,
    /// It takes over another file, existing or not.
    Replaced,
    /// It must exist and gets a second name elsewhere.
    Linked,
    /// What it leads to is changed in this respect.
    Changed(&'static str, FollowLink),
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowLink {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Unless `AT_SYMLINK_NOFOLLOW` is set in this argument.
    Flag(usize),
}

/// Which argument names a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessArg {
    /// A number in the caller's own numbering; negative is a group.
    Number(usize),
    /// A descriptor of a process.
    Descriptor(usize),
}

/// What is done to the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessAct {
    /// The signal in this argument is sent.
    Signal(usize),
    /// It is attached to.
    Trace,
    /// Its memory is read or written.
    Memory,
    /// A descriptor is taken from it.
    Descriptor,
}
