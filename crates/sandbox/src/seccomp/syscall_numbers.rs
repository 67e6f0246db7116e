//! System call numbers by name on both machines. Rules and records use names only.

/// A machine that the filter is written for.
// A build makes filters for its own machine only; tests make both.
#[cfg_attr(not(test), allow(dead_code))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Arch {
    /// The machine this program was built for.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const HOST: Self = Self::X86_64;
    /// The machine this program was built for.
    #[cfg(target_arch = "aarch64")]
    pub(crate) const HOST: Self = Self::Aarch64;

    /// The kernel's constant for it in `seccomp_data.arch`.
    pub(super) const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::Aarch64 => 0xC000_00B7,
        }
    }
}

/// The number of `call` on `arch`; `None` if that machine has no such call.
pub(super) fn number(arch: Arch, call: &str) -> Option<u32> {
    let row = NUMBERS.binary_search_by(|row| row.0.cmp(call)).ok()?;
    let (_, x86_64, aarch64) = NUMBERS[row];
    let number = match arch {
        Arch::X86_64 => x86_64,
        Arch::Aarch64 => aarch64,
    };
    (number != NONE).then_some(number)
}

/// The machine has no such call.
const NONE: u32 = u32::MAX;

/// Name, number on x86_64, number on aarch64; sorted by name.
#[rustfmt::skip]
pub(super) const NUMBERS: &[(&str, u32, u32)] = &[
    ("acct", 163, 89),
    ("add_key", 248, 217),
    ("adjtimex", 159, 171),
    ("bind", 49, 200),
    ("bpf", 321, 280),
    ("chmod", 90, NONE),
    ("chown", 92, NONE),
    ("chroot", 161, 51),
    ("clock_adjtime", 305, 266),
    ("clock_settime", 227, 112),
    ("clone", 56, 220),
    ("clone3", 435, 435),
    ("connect", 42, 203),
    ("creat", 85, NONE),
    ("delete_module", 176, 106),
    ("execve", 59, 221),
    ("execveat", 322, 281),
    ("fanotify_init", 300, 262),
    ("fchmod", 91, 52),
    ("fchmodat", 268, 53),
    ("fchmodat2", 452, 452),
    ("fchown", 93, 55),
    ("fchownat", 260, 54),
    ("file_setattr", 469, 469),
    ("finit_module", 313, 273),
    ("fremovexattr", 199, 16),
    ("fsconfig", 431, 431),
    ("fsetxattr", 190, 7),
    ("fsmount", 432, 432),
    ("fsopen", 430, 430),
    ("fspick", 433, 433),
    ("futimesat", 261, NONE),
    ("init_module", 175, 105),
    ("io_uring_enter", 426, 426),
    ("io_uring_register", 427, 427),
    ("io_uring_setup", 425, 425),
    ("ioctl", 16, 29),
    ("ioperm", 173, NONE),
    ("iopl", 172, NONE),
    ("ioprio_set", 251, 30),
    ("kexec_file_load", 320, 294),
    ("kexec_load", 246, 104),
    ("keyctl", 250, 219),
    ("kill", 62, 129),
    ("lchown", 94, NONE),
    ("link", 86, NONE),
    ("linkat", 265, 37),
    ("lremovexattr", 198, 15),
    ("lsetxattr", 189, 6),
    ("memfd_secret", 447, 447),
    ("migrate_pages", 256, 238),
    ("mkdir", 83, NONE),
    ("mkdirat", 258, 34),
    ("mknod", 133, NONE),
    ("mknodat", 259, 33),
    ("modify_ldt", 154, NONE),
    ("mount", 165, 40),
    ("mount_setattr", 442, 442),
    ("move_mount", 429, 429),
    ("move_pages", 279, 239),
    ("open", 2, NONE),
    ("open_by_handle_at", 304, 265),
    ("open_tree", 428, 428),
    ("open_tree_attr", 467, 467),
    ("openat", 257, 56),
    ("openat2", 437, 437),
    ("perf_event_open", 298, 241),
    ("personality", 135, 92),
    ("pidfd_getfd", 438, 438),
    ("pidfd_send_signal", 424, 424),
    ("pivot_root", 155, 41),
    ("prlimit64", 302, 261),
    ("process_vm_readv", 310, 270),
    ("process_vm_writev", 311, 271),
    ("ptrace", 101, 117),
    ("quotactl", 179, 60),
    ("quotactl_fd", 443, 443),
    ("reboot", 169, 142),
    ("removexattr", 197, 14),
    ("removexattrat", 466, 466),
    ("rename", 82, NONE),
    ("renameat", 264, 38),
    ("renameat2", 316, 276),
    ("request_key", 249, 218),
    ("rmdir", 84, NONE),
    ("rt_sigqueueinfo", 129, 138),
    ("rt_tgsigqueueinfo", 297, 240),
    ("sched_setaffinity", 203, 122),
    ("sched_setattr", 314, 274),
    ("sched_setparam", 142, 118),
    ("sched_setscheduler", 144, 119),
    ("setdomainname", 171, 162),
    ("sethostname", 170, 161),
    ("setns", 308, 268),
    ("setpriority", 141, 140),
    ("settimeofday", 164, 170),
    ("setxattr", 188, 5),
    ("setxattrat", 463, 463),
    ("shmget", 29, 194),
    ("socket", 41, 198),
    ("socketpair", 53, 199),
    ("swapoff", 168, 225),
    ("swapon", 167, 224),
    ("symlink", 88, NONE),
    ("symlinkat", 266, 36),
    ("syslog", 103, 116),
    ("tgkill", 234, 131),
    ("tkill", 200, 130),
    ("truncate", 76, 45),
    ("umount2", 166, 39),
    ("unlink", 87, NONE),
    ("unlinkat", 263, 35),
    ("unshare", 272, 97),
    ("userfaultfd", 323, 282),
    ("utime", 132, NONE),
    ("utimensat", 280, 88),
    ("utimes", 235, NONE),
    ("vhangup", 153, 58),
];
