//! Refusals that programs shrug off: they are in the audit record, and no result names them. One row for
//! each place, as narrow as the program that writes there. Pure.
//!
//! A pattern covers the whole detail of a refusal. `~` is the home directory, `{number}` decimal
//! digits, `{hex}` hexadecimal digits, `{name}` one path component, `{dir}` any path, `{deed}` the
//! description of the change.

use nix::errno::Errno;
use protocol::confinement::Refusal;

/// A refusal that does not matter, the program that meets it, and the reason.
struct HarmlessRefusal {
    pattern: &'static str,
    /// Where only this answer is harmless.
    errno: Option<Errno>,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for readers, and for the test of the table")
    )]
    who: &'static str,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for readers, and for the test of the table")
    )]
    why: &'static str,
}

const fn row(pattern: &'static str, who: &'static str, why: &'static str) -> HarmlessRefusal {
    HarmlessRefusal { pattern, errno: None, who, why }
}

const HISTORY: &str = "lines that a person typed; a call has no person at its keyboard";
const CACHE: &str = "saves the next run some time, and this one does without";
const OOM: &str = "sets which process the kernel would end first; the order stays as it is";

const HARMLESS_REFUSALS: [HarmlessRefusal; 42] = [
    row("/proc/{number}/coredump_filter for writing", "java", "chooses the content of a core dump"),
    row("/proc/{number}/oom_score_adj for writing", "chromium, postgres, sshd", OOM),
    row("/proc/{number}/oom_adj for writing", "the same, older", OOM),
    row("/proc/{number}/clear_refs for writing", "chromium", "resets a counter of used memory"),
    row("/tmp/hsperfdata_{name}{deed}", "java", "figures for jps and jstat"),
    row("/tmp/hsperfdata_{name}/{number}{deed}", "java", "figures for jps and jstat"),
    row("{dir}/__pycache__, making it", "python, gdb", CACHE),
    row("{dir}/__pycache__/{name}.pyc.{number}{deed}", "python, gdb", CACHE),
    row(
        "AF_NETLINK raw socket, protocol 15",
        "chromium, udev's library",
        "news of devices that come and go",
    ),
    row("[2001:4860:4860::8888]:443", "chromium", "asks whether there is IPv6, and sends nothing"),
    row("/var/cache, making it", "fontconfig", CACHE),
    row("/var/cache/fontconfig, making it", "fontconfig", CACHE),
    row("/var/cache/fontconfig/{hex}-{name}{deed}", "fontconfig", CACHE),
    row("~/.cache/fontconfig{deed}", "fontconfig", CACHE),
    row("~/.cache/fontconfig/{hex}-{name}{deed}", "fontconfig", CACHE),
    row("~/.fontconfig{deed}", "fontconfig", CACHE),
    row("~/.fontconfig/{hex}-{name}{deed}", "fontconfig", CACHE),
    row("/var/cache/man/cat{name}/cat{name}{deed}", "man", CACHE),
    row("~/.viminfo{deed}", "vim", HISTORY),
    row("~/.viminfo.tmp{deed}", "vim", HISTORY),
    row("~/.lesshst{deed}", "less", HISTORY),
    row("~/.lesshsQ{deed}", "less", HISTORY),
    row("~/.local/state/lesshst{deed}", "less", HISTORY),
    row("~/.bash_history{deed}", "bash -i", HISTORY),
    row("~/.bash_history-{number}.tmp{deed}", "bash -i", HISTORY),
    row("~/.zsh_history{deed}", "zsh -i", HISTORY),
    row("~/.python_history{deed}", "python -i", HISTORY),
    row("~/.node_repl_history{deed}", "node -i", HISTORY),
    row("~/.psql_history{deed}", "psql", HISTORY),
    row("~/.sqlite_history{deed}", "sqlite3", HISTORY),
    row("~/.rediscli_history{deed}", "redis-cli", HISTORY),
    row("~/.gdb_history{deed}", "gdb", HISTORY),
    row("~/.mysql_history{deed}", "mysql", HISTORY),
    row("~/.irb_history{deed}", "irb", HISTORY),
    row("~/.php_history{deed}", "php -a", HISTORY),
    row(
        "~/.npm/_update-notifier-last-checked{deed}",
        "npm",
        "the day of its last look for a new npm",
    ),
    row("~/.npm/_logs{deed}", "npm", "a log of the run; what failed is on the standard error"),
    row(
        "~/.npm/_logs/{name}{deed}",
        "npm",
        "a log of the run; what failed is on the standard error",
    ),
    row("~/.cargo/.global-cache{deed}", "cargo", "the days of last use, for its own clearing up"),
    row("/run/redis.pid for writing", "redis-server", "its number, for a service manager"),
    row(
        "signal 0 to pid {number}",
        "shells, postgres",
        "asks whether a process lives, and is answered",
    ),
    HarmlessRefusal {
        pattern: "signal {number} to pid {number}",
        errno: Some(Errno::ESRCH),
        who: "kill",
        why: "in the sandbox the number means no process: it has ended",
    },
];

/// How a change of a file or a name is worded.
const ACTIONS: [&str; 6] = [
    " for writing",
    ", making it",
    ", removing it",
    ", as a new name",
    ", linking to it",
    ", its ",
];

/// True for a known refusal whose effect no user or model would notice.
pub(crate) fn is_harmless(refusal: &Refusal, home: Option<&str>) -> bool {
    HARMLESS_REFUSALS.iter().any(|row| {
        let answered = row.errno.is_none_or(|errno| errno as i32 == refusal.errno);
        answered && covers(row.pattern, &refusal.subject.to_string(), home)
    })
}

/// True for a new name in the home, relative to it, that programs create on their own.
pub(crate) fn is_harmless_home_name(name: &str) -> bool {
    let detail = format!("/{name} for writing");
    HARMLESS_REFUSALS
        .iter()
        .filter_map(|row| row.pattern.strip_prefix('~'))
        .any(|below| matches(below, &detail))
}

fn covers(pattern: &str, detail: &str, home: Option<&str>) -> bool {
    match (pattern.strip_prefix('~'), home) {
        (None, _) => matches(pattern, detail),
        (Some(below), Some(home)) if home.starts_with('/') && home.len() > 1 => {
            detail.strip_prefix(home).is_some_and(|rest| matches(below, rest))
        }
        (Some(_), _) => false,
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((literal, after)) = pattern.split_once('{') else { return pattern == text };
    let (Some(rest), Some((class, pattern))) = (text.strip_prefix(literal), after.split_once('}'))
    else {
        return false;
    };
    let fits: fn(char) -> bool = match class {
        "number" => |c| c.is_ascii_digit(),
        "hex" => |c| c.is_ascii_hexdigit(),
        "name" => |c| !"/ ,".contains(c),
        "dir" => |_| true,
        _ => return ACTIONS.iter().any(|deed| rest.starts_with(deed)),
    };
    let ends = rest.char_indices().take_while(|(_, c)| fits(*c)).map(|(at, c)| at + c.len_utf8());
    ends.into_iter().any(|end| matches(pattern, &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::{RefusalKind, Subject};

    fn noise(detail: &str, errno: Errno) -> bool {
        let refusal = Refusal {
            kind: RefusalKind::Predicted,
            syscall: "openat".to_owned(),
            subject: Subject::Text(detail.to_owned()),
            errno: errno as i32,
            pid: 1,
            count: 1,
        };
        is_harmless(&refusal, Some("/home/u"))
    }

    #[test]
    fn each_row_has_its_reason_and_covers_no_other_row() {
        for (at, row) in HARMLESS_REFUSALS.iter().enumerate() {
            assert!(!row.who.is_empty() && row.why.len() > 15, "{}", row.pattern);
            assert!(
                HARMLESS_REFUSALS[..at].iter().all(|other| other.pattern != row.pattern),
                "{}",
                row.pattern
            );
        }
    }

    /// In the format of the record.
    const HARMLESS: [&str; 34] = [
        "/proc/4/coredump_filter for writing",
        "/proc/26/oom_score_adj for writing",
        "/proc/26/oom_adj for writing",
        "/proc/5/clear_refs for writing",
        "/tmp/hsperfdata_nobody, making it",
        "/tmp/hsperfdata_u/17 for writing",
        "/tmp/hsperfdata_u/17, removing it",
        "/usr/share/gdb/python/gdb/__pycache__, making it",
        "/opt/tool/lib/__pycache__/a.cpython-311.pyc.140201 for writing",
        "/opt/tool/lib/__pycache__/a.cpython-311.pyc.140201, removing it",
        "AF_NETLINK raw socket, protocol 15",
        "[2001:4860:4860::8888]:443",
        "/var/cache, making it",
        "/var/cache/fontconfig, making it",
        "/var/cache/fontconfig/4c599c202bc5c08e2d34565a40eac3b2-le64.cache-8 for writing",
        "/var/cache/fontconfig/4c599c202bc5c08e2d34565a40eac3b2-le64.cache-8.TMP-8wpDsj for writing",
        "/home/u/.cache/fontconfig, making it",
        "/home/u/.cache/fontconfig/4c599c20-le64.cache-8.LCK, as a new name",
        "/home/u/.fontconfig, making it",
        "/var/cache/man/cat1/catoBCdF9 for writing",
        "/home/u/.viminfo for writing",
        "/home/u/.viminfo.tmp for writing",
        "/home/u/.lesshst for writing",
        "/home/u/.local/state/lesshst for writing",
        "/home/u/.bash_history for writing",
        "/home/u/.python_history for writing",
        "/home/u/.node_repl_history, its mode",
        "/home/u/.psql_history for writing",
        "/home/u/.sqlite_history for writing",
        "/home/u/.npm/_update-notifier-last-checked for writing",
        "/home/u/.npm/_logs, making it",
        "/home/u/.npm/_logs/2026-11-24T02_13_54_338Z-debug-0.log for writing",
        "/run/redis.pid for writing",
        "signal 0 to pid 4711",
    ];

    /// Each near a row above, or a failure that a person meets every day.
    const MATTERS: [&str; 34] = [
        "/proc/4/coredump_filter2 for writing",
        "/proc/self/mem for writing",
        "/proc/sys/vm/drop_caches for writing",
        "/proc/4/x/oom_score_adj for writing",
        "/tmp/hsperf for writing",
        "/tmp/hsperfdata_u/17/x for writing",
        "/srv/__pycache__/notes.txt for writing",
        "/srv/__pycache__/a.cpython-311.pyc for writing",
        "/srv/__pycache__, removing it",
        "/srv/pycache, making it",
        "/var/cache/fontconfig for writing",
        "/var/cache, removing it",
        "/var/cache/app, making it",
        "/var/cache/fontconfig/notes for writing",
        "/var/cache/man/index.db for writing",
        "/home/u/.cache, making it",
        "/home/u/.cache/app/fontconfig, making it",
        "/home/u2/.viminfo for writing",
        "/home/u/.vimrc for writing",
        "/home/u/sub/.viminfo for writing",
        "/home/u/.bashrc for writing",
        "/home/u/.bash_history2 for writing",
        "/home/u/.npm/_cacache for writing",
        "/home/u/.npm/_logs/a/b for writing",
        "/home/u/.npmrc for writing",
        "/home/u/.gitconfig.lock for writing",
        "/home/u/.cargo/config.toml for writing",
        "/run/postgresql/.s.PGSQL.5432.lock for writing",
        "/etc/hosts for writing",
        "/run/docker.sock",
        "signal 9 to pid 4711",
        "AF_INET stream socket",
        "AF_NETLINK raw socket, protocol 9",
        "[2606:2800::1]:443",
    ];

    #[test]
    fn names_of_the_home_are_known_exactly() {
        for (name, is_known) in
            [(".bash_history", true), (".viminfo", true), (".bashrc", false), (".config/x", false)]
        {
            assert_eq!(is_harmless_home_name(name), is_known, "{name}");
        }
    }

    #[test]
    fn noise_is_known_by_its_exact_place() {
        for detail in HARMLESS {
            assert!(noise(detail, Errno::EACCES), "{detail}");
        }
        for detail in MATTERS {
            assert!(!noise(detail, Errno::EACCES), "{detail}");
        }
        assert!(noise("signal 9 to pid 4711", Errno::ESRCH), "its process has ended");
        let home = "/home/u/.viminfo for writing";
        assert!(!covers("~/.viminfo{deed}", home, None) && !covers("~{deed}", home, Some("/")));
    }
}
