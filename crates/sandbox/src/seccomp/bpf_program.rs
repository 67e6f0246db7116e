//! Compiles rules to a BPF program: a search tree over the call numbers, with the checks of a call
//! in its leaf.
//!
//! seccompiler's own programs compare one number after the other. The kernel runs a new filter once
//! for each possible number, to learn which calls need no filter at all. So a linear program is
//! slow to install: 100 rules took 260 us. The figures of the search tree are in `super`.

use super::exec_marker::ExecMarker;
use super::filter_rule::{ArgMatch, ArgTest, FilterAction, FilterRule};
use super::filter_spec::Reporting;
use super::install_error::InstallError;
use super::syscall_numbers::Arch;
use super::syscall_rules::SyscallRules;
use seccompiler::{BpfProgram, sock_filter};

/// Numbers from here on are x32's on x86_64: another interface to the same calls, which no program
/// needs.
pub(super) const X32: u32 = 0x4000_0000;

/// Compiles the rules.
///
/// # Errors
/// [`InstallError::TooLong`] if a jump does not reach.
pub(super) fn compile(policy: &SyscallRules) -> Result<BpfProgram, InstallError> {
    let mut program = vec![
        load(ARCH),
        sock_filter { code: JEQ, jt: 1, jf: 0, k: policy.arch.audit() },
        ret(libc::SECCOMP_RET_KILL_PROCESS),
        load(NR),
    ];
    program.extend(tree(&segments(policy)?)?);
    Ok(program)
}

/// A range of call numbers from `start` up to the next range, and the code that ends with its
/// answer.
struct NumberRange {
    start: u32,
    code: BpfProgram,
}

/// All call numbers, cut where the answer changes.
fn segments(policy: &SyscallRules) -> Result<Vec<NumberRange>, InstallError> {
    let mut all = vec![NumberRange { start: 0, code: vec![ret(libc::SECCOMP_RET_ALLOW)] }];
    for (nr, rules) in &policy.calls {
        cut(&mut all, *nr, leaf(rules, policy)?);
        cut(&mut all, nr + 1, vec![ret(libc::SECCOMP_RET_ALLOW)]);
    }
    match policy.arch {
        Arch::X86_64 => cut(&mut all, X32, vec![ret(errno(libc::ENOSYS))]),
        Arch::Aarch64 => {}
    }
    Ok(all)
}

/// Begins a range, unless the previous one has the same answer.
fn cut(all: &mut Vec<NumberRange>, start: u32, code: BpfProgram) {
    if all.last().is_some_and(|last| last.start == start) {
        all.pop();
    }
    if all.last().is_none_or(|last| last.code != code) {
        all.push(NumberRange { start, code });
    }
}

/// Halves the ranges until one is left. The accumulator holds the call number all the way.
fn tree(segments: &[NumberRange]) -> Result<BpfProgram, InstallError> {
    if let [only] = segments {
        return Ok(only.code.clone());
    }
    let (low, high) = segments.split_at(segments.len() / 2);
    let k = high[0].start;
    let (low, high) = (tree(low)?, tree(high)?);
    let mut program = Vec::with_capacity(low.len() + high.len() + 2);
    if let Ok(jt) = u8::try_from(low.len()) {
        program.push(sock_filter { code: JGE, jt, jf: 0, k });
    } else {
        let far = u32::try_from(low.len()).map_err(|_| InstallError::TooLong)?;
        program.push(sock_filter { code: JGE, jt: 0, jf: 1, k });
        program.push(sock_filter { code: JA, jt: 0, jf: 0, k: far });
    }
    program.extend(low);
    program.extend(high);
    Ok(program)
}

/// The rules of one call in turn. A call that matches none is allowed.
fn leaf(rules: &[&FilterRule], policy: &SyscallRules) -> Result<BpfProgram, InstallError> {
    let mut program = Vec::new();
    for rule in rules {
        let mut code = vec![ret(action(rule.then, policy.reporting))];
        for test in rule.when.iter().rev() {
            code = [check(test, policy.marker, code.len())?, code].concat();
        }
        program.extend(code);
        if rule.when.is_empty() {
            return Ok(program);
        }
    }
    program.push(ret(libc::SECCOMP_RET_ALLOW));
    Ok(program)
}

/// Falls through if the test holds; else jumps over the `rest` of the rule.
fn check(
    test: &ArgTest,
    marker: Option<ExecMarker>,
    rest: usize,
) -> Result<BpfProgram, InstallError> {
    let low = u32::try_from(ARGS + 8 * test.arg).map_err(|_| InstallError::TooLong)?;
    let mut program = vec![load(low)];
    if test.mask != u32::MAX {
        program.push(sock_filter { code: AND, jt: 0, jf: 0, k: test.mask });
    }
    let (values, found, missed) = match test.is {
        ArgMatch::In(values) => (values, 0, rest),
        ArgMatch::NotIn(values) => (values, rest, 0),
        ArgMatch::Unmarked => {
            return marker.map_or(Ok(Vec::new()), |marker| check_marker(low, marker, rest));
        }
    };
    for (at, &k) in values.iter().enumerate() {
        let left = values.len() - 1 - at;
        let jt = u8::try_from(left + found).map_err(|_| InstallError::TooLong)?;
        let jf =
            u8::try_from(if left == 0 { missed } else { 0 }).map_err(|_| InstallError::TooLong)?;
        program.push(sock_filter { code: JEQ, jt, jf, k });
    }
    Ok(program)
}

/// The same for the marker, whose halves are compared one after the other.
fn check_marker(low: u32, marker: ExecMarker, rest: usize) -> Result<BpfProgram, InstallError> {
    let [first, second] = marker.halves();
    let jt = u8::try_from(rest).map_err(|_| InstallError::TooLong)?;
    Ok(vec![
        load(low),
        sock_filter { code: JEQ, jt: 0, jf: 2, k: first },
        load(low + 4),
        sock_filter { code: JEQ, jt, jf: 0, k: second },
    ])
}

/// The kernel's return value for an action.
pub(super) fn action(then: FilterAction, reporting: Reporting) -> u32 {
    match (then, reporting) {
        (FilterAction::Fallback(code), _)
        | (FilterAction::Refuse(code) | FilterAction::RefuseOthers(_, code), Reporting::Errno) => {
            errno(code)
        }
        (FilterAction::Refuse(_) | FilterAction::RefuseOthers(..), Reporting::Notify)
        | (
            FilterAction::RefuseOutside(..) | FilterAction::Observe(_) | FilterAction::Emulate(_),
            _,
        ) => libc::SECCOMP_RET_USER_NOTIF,
    }
}

fn errno(code: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | (code.unsigned_abs() & libc::SECCOMP_RET_DATA)
}

fn load(at: u32) -> sock_filter {
    sock_filter { code: LD, jt: 0, jf: 0, k: at }
}

fn ret(k: u32) -> sock_filter {
    sock_filter { code: RET, jt: 0, jf: 0, k }
}

// Offsets in `struct seccomp_data`; both machines store the low half of an argument first.
const NR: u32 = 0;
const ARCH: u32 = 4;
const ARGS: usize = 16;

// Instructions: load a word, AND with a constant, jump, jump if equal, jump if greater or equal,
// return.
pub(super) const LD: u16 = 0x20;
pub(super) const AND: u16 = 0x54;
pub(super) const JA: u16 = 0x05;
pub(super) const JEQ: u16 = 0x15;
pub(super) const JGE: u16 = 0x35;
pub(super) const RET: u16 = 0x06;
