//! Kernels that lack something: the rest runs under a filter that answers for them.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Runs the helper again with `rest`, under the kernel that `name` describes.
pub fn under(name: &str, rest: &[&str]) -> ExitCode {
    let (call, errno, condition) = match name {
        "no-landlock" => (libc::SYS_landlock_create_ruleset, libc::ENOSYS, None),
        // It says that it did, and did nothing.
        "lying-landlock" => (libc::SYS_landlock_restrict_self, 0, None),
        "landlock-off" => (libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP, None),
        "no-namespaces" => (libc::SYS_unshare, libc::EPERM, None),
        "no-pid-namespace" => (libc::SYS_clone, libc::EPERM, Some((0, libc::CLONE_NEWPID))),
        "no-mounts" => (libc::SYS_mount, libc::EPERM, None),
        "no-mount-setattr" => (libc::SYS_mount_setattr, libc::ENOSYS, None),
        "no-openat2" => (libc::SYS_openat2, libc::ENOSYS, None),
        // SECCOMP_FILTER_FLAG_NEW_LISTENER
        "no-listener" => (libc::SYS_seccomp, libc::EINVAL, Some((1, 8))),
        "no-seccomp" => (libc::SYS_seccomp, libc::ENOSYS, None),
        "no-pidfd" => (libc::SYS_pidfd_open, libc::ENOSYS, None),
        other => panic!("no such kernel: {other}"),
    };
    let rules = condition.into_iter().map(|(argument, bits)| {
        let bits = u64::try_from(bits).expect("a mask");
        let same = SeccompCmpOp::MaskedEq(bits);
        let condition =
            SeccompCondition::new(argument, SeccompCmpArgLen::Qword, same, bits).expect("valid");
        SeccompRule::new(vec![condition]).expect("one condition")
    });
    let filter = SeccompFilter::new(
        [(call, rules.collect())].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.and_then(TryInto::try_into).expect("a filter of one rule");
    seccompiler::apply_filter(&program).expect("this kernel's own seccomp");
    let error = Command::new(std::env::current_exe().expect("this program")).args(rest).exec();
    panic!("{error}");
}
