//! Where a client runs, for records: its terminal, its pane of tmux, the host that it was reached from over SSH, its
//! process. The kernel names terminal and process; the rest is what the client's environment says, and only claimed.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most characters of a claimed value.
const LONGEST: usize = 48;
/// Most bytes of an environment that are looked at.
const ENVIRONMENT: u64 = 256 * 1024;

/// The place of this process, such as `pts/3, tmux %4, ssh from 192.0.2.7, pid 4711`.
pub(crate) fn of_process(proc: &Path, pid: i32) -> String {
    let proc = proc.join(pid.to_string());
    let tty = std::fs::read_to_string(proc.join("stat")).ok().and_then(|stat| tty_name(&stat));
    let mut environment = Vec::new();
    // An environment that cannot be read says nothing.
    let _ = File::open(proc.join("environ"))
        .and_then(|file| file.take(ENVIRONMENT).read_to_end(&mut environment));
    describe(tty, &environment, pid)
}

fn describe(tty: Option<String>, environment: &[u8], pid: i32) -> String {
    let value = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables
            .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        let text = String::from_utf8_lossy(value);
        text.split_whitespace().next().map(claimed)
    };
    let pane = value("TMUX_PANE").map(|pane| format!("tmux {pane}"));
    let from = value("SSH_CONNECTION").map(|from| format!("ssh from {from}"));
    let parts = tty.into_iter().chain(pane).chain(from).chain([format!("pid {pid}")]);
    parts.collect::<Vec<_>>().join(", ")
}

/// A value of another's environment: short, and without a character that could end it or look like another part.
fn claimed(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%.:-_".contains(c);
    value.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '?' }).collect()
}

/// The controlling terminal, from `/proc/PID/stat`.
fn tty_name(stat: &str) -> Option<String> {
    // The name in parentheses may hold anything, spaces and parentheses too.
    let (_, rest) = stat.rsplit_once(')')?;
    let device: u32 = rest.split_whitespace().nth(4)?.parse::<i32>().ok()?.cast_unsigned();
    // As the kernel encodes a device's number in 32 bits.
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    match (major, minor) {
        (0, 0) => None,
        (136, minor) => Some(format!("pts/{minor}")),
        (4, minor @ 0..64) => Some(format!("tty{minor}")),
        (4, minor) => Some(format!("ttyS{}", minor - 64)),
        (major, minor) => Some(format!("tty {major}:{minor}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_place_is_named_as_an_auditor_finds_it_again() {
        let environment = b"HOME=/h\0TMUX_PANE=%4\0SSH_CONNECTION=192.0.2.7 5022 192.0.2.1 22\0";
        let named = describe(Some("pts/3".to_owned()), environment, 4711);
        assert_eq!(named, "pts/3, tmux %4, ssh from 192.0.2.7, pid 4711");
        assert_eq!(describe(None, b"XTMUX_PANE=%4\0TMUX_PANE=\0", 7), "pid 7");
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(of_process(Path::new("/proc"), own).ends_with(&format!("pid {own}")));
    }

    #[test]
    fn a_claim_is_bounded_and_cannot_look_like_another_part() {
        let long = "9".repeat(5000);
        for claim in ["%1,pid", "\u{202e}%1", "\u{1b}[2J", "a)(b", "\u{e9}\u{200b}", long.as_str()]
        {
            let environment = format!("TMUX_PANE={claim}\0SSH_CONNECTION={claim}\0");
            let named = describe(None, environment.as_bytes(), 7);
            assert_eq!(named.matches(", ").count(), 2, "{named}");
            assert!(named.is_ascii() && named.len() < 140 && named.ends_with(", pid 7"), "{named}");
            assert!(!named.contains(['(', ')', '\u{1b}']), "{named}");
        }
    }

    #[test]
    fn the_terminal_is_named_from_its_device_number() {
        for (device, name) in [
            (0, None),
            (136 << 8 | 3, Some("pts/3")),
            // Device numbers above 255 have their high bits behind the major number.
            ((300 & 0xff) | (136 << 8) | ((300 & !0xff) << 12), Some("pts/300")),
            (4 << 8 | 1, Some("tty1")),
            (4 << 8 | 64, Some("ttyS0")),
            (204 << 8 | 64, Some("tty 204:64")),
        ] {
            let stat = format!("7 (a) S (b) S 1 7 7 {device} 7 0");
            assert_eq!(tty_name(&stat).as_deref(), name);
        }
    }
}
