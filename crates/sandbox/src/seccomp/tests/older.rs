//! Older kernels, simulated by a small filter that refuses newer calls.

use super::child::raw;
use super::{MARK, NEW};
use crate::seccomp::{CompiledFilter, FilterSpec, InstallError, Reporting, install};
use protocol::confinement::{Network, Tier};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

const HOST: TargetArch =
    if cfg!(target_arch = "x86_64") { TargetArch::x86_64 } else { TargetArch::aarch64 };

/// On a thread of its own, whose filter dies with it: `body` under a kernel that does not know
/// this flag of seccomp.
fn without_flag<T: Send>(flag: u64, body: impl FnOnce() -> T + Send) -> T {
    let bit = SeccompCmpOp::MaskedEq(flag);
    let condition = SeccompCondition::new(1, SeccompCmpArgLen::Qword, bit, flag).unwrap();
    let rules = [(libc::SYS_seccomp, vec![SeccompRule::new(vec![condition]).unwrap()])];
    let refused = SeccompAction::Errno(libc::EINVAL as u32);
    let filter = SeccompFilter::new(rules.into(), SeccompAction::Allow, refused, HOST).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            seccompiler::apply_filter(&program).unwrap();
            body()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_kernel_without_listeners_is_told_and_not_glossed_over() {
    let spec = FilterSpec::command(Tier::B, Network::Off, NEW, MARK);
    let (told, silent) = without_flag(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER, move || {
        let told = install(&spec);
        let before = raw(libc::SYS_chroot, [1; 6]);
        // The cage's reaction, which its record reports. Over this thread only.
        let silent =
            CompiledFilter::new(&FilterSpec { reporting: Reporting::Errno, ..spec }).unwrap();
        seccompiler::apply_filter(&silent.program).unwrap();
        (told, [before, raw(libc::SYS_chroot, [1; 6])])
    });
    assert!(matches!(told, Err(InstallError::Listener(_))), "{told:?}");
    assert_eq!(
        told.unwrap_err().to_string(),
        "the kernel gave no notification descriptor for refused system calls"
    );
    // A bad address before, which shows that nothing of the first filter stood.
    assert_eq!(silent, [-i64::from(libc::EFAULT), -i64::from(libc::EPERM)]);
}

#[test]
fn a_kernel_without_killable_waits_still_gives_a_listener() {
    let spec = FilterSpec::command(Tier::B, Network::Off, NEW, MARK);
    let found = without_flag(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, move || install(&spec));
    assert!(matches!(found, Ok(Some(_))), "{found:?}");
}

#[test]
fn a_second_listener_over_the_same_process_is_refused() {
    let spec = FilterSpec::command(Tier::B, Network::Off, NEW, MARK);
    let both = std::thread::scope(|scope| {
        scope.spawn(|| (install(&spec), install(&spec).err())).join().unwrap()
    });
    assert!(matches!(both.0, Ok(Some(_))), "{both:?}");
    let Some(InstallError::Listener(error)) = both.1 else {
        panic!("{both:?}");
    };
    assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
}
