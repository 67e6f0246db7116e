//! Lines of a result about refusals of the sandbox.

use crate::text::lines::cut_line;
use nix::errno::Errno;
use protocol::call::REFUSED_LINE;
use protocol::confinement::{Refusal, RefusalKind, Subject};
use protocol::hidden;

/// Most kinds of refusals that the text of a failure names; the record has more.
pub(super) const OF_FAILURE: usize = 10;
/// The same of a success that wrote to standard error. They may have nothing to do with it.
pub(super) const OF_SUCCESS: usize = 3;
/// Most characters of a path or name in the text.
const NAME_CHARS: usize = 200;

/// The refusals that a result may name. In a PID namespace a call on a number without a process is
/// recorded if the host has such a process, which no command may learn.
pub(super) fn nameable(refusals: &[Refusal]) -> Vec<&Refusal> {
    let finds_none = |refusal: &Refusal| {
        let is_of_process =
            matches!(refusal.subject, Subject::Signal { .. } | Subject::Process { .. });
        is_of_process && refusal.errno == Errno::ESRCH as i32
    };
    refusals.iter().filter(|refusal| !finds_none(refusal)).collect()
}

/// Equal ones once, where the last of them was.
fn kinds<'a>(refusals: &[&'a Refusal]) -> Vec<(&'a Refusal, u64)> {
    let mut kinds: Vec<(&Refusal, u64)> = Vec::new();
    for refusal in refusals {
        let same = |other: &(&Refusal, u64)| {
            (&other.0.syscall, &other.0.subject, other.0.errno)
                == (&refusal.syscall, &refusal.subject, refusal.errno)
        };
        let before = kinds.iter().position(same).map_or(0, |at| kinds.remove(at).1);
        kinds.push((refusal, before + refusal.count));
    }
    kinds
}

/// The last `most` kinds of refusals, which are nearest to a failure, with their count.
pub(super) fn refusal_lines(refusals: &[&Refusal], uncounted: u64, most: usize) -> Vec<String> {
    let kinds = kinds(refusals);
    let left_out = kinds.len().saturating_sub(most);
    let mut lines: Vec<String> =
        kinds[left_out..].iter().map(|(refusal, count)| line(refusal, *count)).collect();
    let more = left_out as u64 + uncounted;
    if more > 0 {
        lines.push(format!("{REFUSED_LINE}{more} more; see agentd audit show]"));
    }
    lines
}

fn line(refusal: &Refusal, count: u64) -> String {
    let Refusal { kind, syscall, subject, errno, .. } = refusal;
    let times = if count > 1 { format!(", {count} times") } else { String::new() };
    let predicted = match kind {
        RefusalKind::Refused => "",
        // The kernel decided; agentd saw the call on its way there.
        RefusalKind::Predicted => ", predicted",
    };
    let words = subject.clone().cleaned(|name| hidden::visible(&cut_line(name, NAME_CHARS, 0)));
    let errno = Errno::from_raw(*errno);
    format!(
        "{REFUSED_LINE}{} {words}: {errno:?}{predicted}{times}]",
        hidden::line_for_model(syscall)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::PathAct;

    fn refusal(path: &str, count: u64) -> Refusal {
        of(Subject::UnixSocket(path.to_owned()), count)
    }

    fn of(subject: Subject, count: u64) -> Refusal {
        Refusal {
            kind: RefusalKind::Refused,
            syscall: "connect".to_owned(),
            subject,
            errno: Errno::EACCES as i32,
            pid: 1,
            count,
        }
    }

    #[test]
    fn refusals_are_named_once_and_counted() {
        let [first, other, last] =
            [refusal("127.0.0.1:80", 1), refusal("/x\u{1b}", 2), refusal("127.0.0.1:80", 4)];
        assert_eq!(
            refusal_lines(&[&first, &other, &last], 0, OF_FAILURE),
            [
                "[the sandbox refused connect /x\u{241b}: EACCES, 2 times]",
                "[the sandbox refused connect 127.0.0.1:80: EACCES, 5 times]"
            ]
        );
    }

    #[test]
    fn of_many_the_last_are_named() {
        let many: Vec<Refusal> = (0..30).map(|i| refusal(&format!("/{i}"), 1)).collect();
        for (most, more) in [(OF_FAILURE, 27), (OF_SUCCESS, 34)] {
            let lines = refusal_lines(&nameable(&many), 7, most);
            assert_eq!(lines.len(), most + 1);
            assert!(lines[most - 1].contains(" /29:"), "{lines:?}");
            assert!(lines[most].contains(&format!("refused {more} more")), "{lines:?}");
        }
    }

    #[test]
    fn a_number_that_is_a_process_of_the_host_alone_is_not_told() {
        let (subject, errno) = (Subject::Signal { signal: 0, pid: 7 }, Errno::ESRCH as i32);
        let unseen = Refusal { errno, ..of(subject, 1) };
        let seen = Refusal { errno: Errno::EPERM as i32, ..unseen.clone() };
        assert_eq!(nameable(&[unseen, seen.clone()]), [&seen]);
    }

    #[test]
    fn a_long_path_is_cut_and_its_act_is_not() {
        let path = |path: String| of(Subject::Path { path, act: PathAct::Remove }, 1);
        let lines = refusal_lines(&[&path(format!("/{}", "a".repeat(300)))], 0, OF_FAILURE);
        assert!(lines[0].contains("aa [… line cut: 101 more bytes], removing it: "), "{lines:?}");
    }

    #[test]
    fn a_name_can_neither_turn_its_line_nor_begin_another() {
        let lines = refusal_lines(&[&refusal("/\u{202e}a\u{2028}b\u{200b}", 1)], 0, OF_FAILURE);
        let shown = "[the sandbox refused connect /\\u{202e}a\\u{2028}b\\u{200b}: EACCES]";
        assert_eq!(lines, [shown]);
    }
}
