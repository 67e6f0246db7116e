//! Lines of a result about refusals of the sandbox.

use crate::text::lines::cut_line;
use nix::errno::Errno;
use protocol::call::REFUSED_LINE;
use protocol::confinement::{Refusal, RefusalKind};
use tool_specs::text::control::visible;

/// Most kinds of refusals that the text names; the record has more.
const REFUSALS: usize = 10;
/// Most characters of a refusal's subject in the text.
const SUBJECT_CHARS: usize = 200;

fn kinds(refusals: &[Refusal]) -> Vec<(&Refusal, u64)> {
    let mut kinds: Vec<(&Refusal, u64)> = Vec::new();
    for refusal in refusals {
        let same = |other: &&mut (&Refusal, u64)| {
            (&other.0.syscall, &other.0.subject, other.0.errno)
                == (&refusal.syscall, &refusal.subject, refusal.errno)
        };
        match kinds.iter_mut().find(same) {
            Some((_, count)) => *count += refusal.count,
            None => kinds.push((refusal, refusal.count)),
        }
    }
    kinds
}

/// The sandbox's refusals, equal ones combined with their count.
pub(super) fn refusal_lines(refusals: &[Refusal], uncounted: u64) -> Vec<String> {
    let kinds = kinds(refusals);
    let mut lines: Vec<String> =
        kinds.iter().take(REFUSALS).map(|(refusal, count)| line(refusal, *count)).collect();
    let more = kinds.len().saturating_sub(REFUSALS) as u64 + uncounted;
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
    let words = subject.to_string();
    let words = cut_line(&words, SUBJECT_CHARS, 0);
    let errno = Errno::from_raw(*errno);
    format!("{REFUSED_LINE}{} {words}: {errno:?}{predicted}{times}]", visible(syscall))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::Subject;

    fn refusal(path: &str, count: u64) -> Refusal {
        Refusal {
            kind: RefusalKind::Refused,
            syscall: "connect".to_owned(),
            subject: Subject::UnixSocket(path.to_owned()),
            errno: Errno::EACCES as i32,
            pid: 1,
            count,
        }
    }

    #[test]
    fn refusals_are_named_once_and_counted() {
        let lines = refusal_lines(
            &[refusal("127.0.0.1:80", 1), refusal("/x\u{1b}", 2), refusal("127.0.0.1:80", 4)],
            0,
        );
        assert_eq!(
            lines,
            [
                "[the sandbox refused connect 127.0.0.1:80: EACCES, 5 times]",
                "[the sandbox refused connect /x\u{241b}: EACCES, 2 times]"
            ]
        );
        let many: Vec<Refusal> = (0..30).map(|i| refusal(&format!("/{i}"), 1)).collect();
        let lines = refusal_lines(&many, 7);
        assert_eq!(lines.len(), REFUSALS + 1);
        assert!(lines[REFUSALS].contains("refused 27 more"));
    }
}
