//! The names that a command finds in `/etc/hosts` where its network is an allow-list: hosts of the list lead to
//! the addresses at which the proxy listens for programs that take none. For `launch`; `mounts` mounts it.

use protocol::hosts::LoopbackRedirect;
use std::path::Path;

/// Where programs read it.
pub(crate) const HOSTS_PATH: &str = "/etc/hosts";
/// The machine's own is shorter; more than this is not read.
const LONGEST: u64 = 1 << 20;

/// Its text; `None` where there are no redirects, or the machine's is no plain file that a mount could lie on.
pub(crate) fn text_with(redirects: &[LoopbackRedirect]) -> Option<String> {
    let found = Path::new(HOSTS_PATH).symlink_metadata().ok()?;
    if redirects.is_empty() || !found.is_file() || found.len() > LONGEST {
        return None;
    }
    Some(text(&std::fs::read_to_string(HOSTS_PATH).ok()?, redirects))
}

/// The redirects, and the machine's lines without the names that they have.
fn text(machine: &str, redirects: &[LoopbackRedirect]) -> String {
    let mut text = String::new();
    for LoopbackRedirect { name, address, .. } in redirects {
        text.push_str(&format!("{address}\t{name}\n"));
    }
    let is_redirected = |name: &&str| {
        let name = name.trim_end_matches('.');
        redirects.iter().any(|redirect| redirect.name.eq_ignore_ascii_case(name))
    };
    for line in machine.lines() {
        let entry = line.split('#').next().unwrap_or_default();
        let names: Vec<&str> = entry.split_whitespace().collect();
        if !names.iter().any(is_redirected) {
            text.push_str(&format!("{line}\n"));
            continue;
        }
        let left: Vec<&str> = names.into_iter().filter(|name| !is_redirected(name)).collect();
        // An address alone names nothing.
        if left.len() > 1 {
            text.push_str(&format!("{}\n", left.join("\t")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::hosts::redirects;

    #[test]
    fn a_redirected_name_leads_to_the_proxy_alone() {
        let rules = ["a.org", "b.org:22"].map(|rule| rule.parse().unwrap());
        let machine =
            "127.0.0.1 localhost\n10.0.0.9 A.org. # a mirror\n10.0.0.8 c.org b.org\n# b.org\n";
        assert_eq!(
            text(machine, &redirects(&rules, 0)),
            "127.80.0.1\ta.org\n127.80.0.2\tb.org\n127.0.0.1 localhost\n10.0.0.8\tc.org\n# b.org\n"
        );
    }
}
