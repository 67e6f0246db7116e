//! Kernels that lack something: the rest runs under a filter that answers for them.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicI64, Ordering};

/// Runs the helper again with `rest`, under the kernel that `name` describes.
pub fn under(name: &str, rest: &[&str]) -> ExitCode {
    if let Some(version) = name.strip_prefix("abi-") {
        answer_version(version.parse().expect("a version of Landlock"));
        return crate::run(rest);
    }
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

/// What `say_version` answers.
static VERSION: AtomicI64 = AtomicI64::new(0);

/// From here on this process and those it forks find a Landlock of this version. What it does is the
/// same as that of the real one: rights that a set of rules does not name are not handled.
fn answer_version(version: i64) {
    VERSION.store(version, Ordering::Relaxed);
    // LANDLOCK_CREATE_RULESET_VERSION, in the third argument.
    let asked = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 1);
    let rule = SeccompRule::new(vec![asked.expect("valid")]).expect("one condition");
    let filter = SeccompFilter::new(
        [(libc::SYS_landlock_create_ruleset, vec![rule])].into(),
        SeccompAction::Allow,
        SeccompAction::Trap,
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.and_then(TryInto::try_into).expect("a filter of one rule");
    // SAFETY: a zeroed structure is a valid one, and the handler touches nothing but its own context.
    #[allow(unsafe_code)]
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = say_version as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()), 0);
    }
    seccompiler::apply_filter(&program).expect("this kernel's own seccomp");
}

/// Puts the version where the refused system call would have put its answer.
extern "C" fn say_version(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let version = VERSION.load(Ordering::Relaxed);
    // SAFETY: with SA_SIGINFO the third argument is the context of this signal.
    #[allow(unsafe_code)]
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    {
        context.uc_mcontext.gregs[libc::REG_RAX as usize] = version;
    }
    #[cfg(target_arch = "aarch64")]
    {
        context.uc_mcontext.regs[0] = version.cast_unsigned();
    }
}
