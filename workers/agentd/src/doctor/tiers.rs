//! Findings about tiers: a setting that forces tier B, access rights that the kernel's Landlock
//! lacks, and the host setting that prevents tier A. For `doctor` only.

use super::DoctorFinding;
use crate::context::{CliContext, TrustFlag};
use crate::help;
use crate::help::markdown::{PageBlock, parse, plain};
use config::ValueOrigin;
use protocol::confinement::Tier;
use sandbox::HostProbe;
use std::path::Path;

/// Kernel settings that keep unprivileged users out of namespaces: the file, its blocking value,
/// and the remedy.
const SWITCHES: &[(&str, &str, &str)] = &[
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "kernel.unprivileged_userns_clone is 0: `sysctl kernel.unprivileged_userns_clone=1` as root lets \
         users make namespaces",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "user.max_user_namespaces is 0: `sysctl user.max_user_namespaces=10000` as root lets users make \
         namespaces",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns is 1: an AppArmor profile for agentd-tool that has \
         `userns,`, or that setting at 0, lets it make namespaces",
    ),
];

/// Who asked for a lower tier than this host allows, as the configuration has it here.
pub(super) fn forced(host: &HostProbe) -> Option<ValueOrigin> {
    let context = CliContext::of_process().ok()?;
    let here = std::fs::canonicalize(".").unwrap_or_else(|_| Path::new("/").to_owned());
    // An invalid configuration has a finding of its own.
    let config = context.load(&here, &[], TrustFlag::NotGiven).ok()?;
    let lower = config.sandbox.highest_tier < host.tier;
    let row = config.rows.into_iter().find(|row| row.key == "sandbox.tier");
    row.filter(|_| lower).map(|row| row.origin)
}

/// The finding of a forced tier B.
pub(super) fn lowered(host: &HostProbe, by: &ValueOrigin) -> DoctorFinding {
    let text = format!(
        "tier B: Landlock and seccomp; Landlock ABI {}; forced by {by}, this machine allows tier A",
        host.landlock_abi
    );
    DoctorFinding::note("cage", text)
        .hint(format!("remove that setting to use namespaces too. {}", missing_in_b()))
}

/// The losses in tier B, as one sentence: the last column of the table in `agentd help sandbox`.
pub(super) fn missing_in_b() -> String {
    let blocks = help::find("sandbox").map(|topic| parse(topic.text)).unwrap_or_default();
    let mut missing = Vec::new();
    for block in blocks {
        if let PageBlock::Table(table) = block {
            let cells = table.rows.iter().filter_map(|row| row.get(3)).map(|cell| plain(cell));
            missing.extend(cells.filter(|cell| !cell.is_empty()));
        }
    }
    format!("Tier B lacks: {} (`agentd help sandbox`).", missing.join("; "))
}

/// Access rights that this kernel's Landlock does not enforce, if a cage can be made at all.
pub(super) fn dropped(host: &HostProbe) -> Option<DoctorFinding> {
    let told = host.tier != Tier::C && !host.dropped.is_empty();
    told.then(|| {
        let text = format!("this kernel's Landlock lacks: {}", host.dropped.join(", "));
        DoctorFinding::note("dropped", text)
            .hint("a newer kernel has them; each call's record names the consequences")
    })
}

/// The remedy for a missing tier A: the setting that prevents it, if it is known.
pub(super) fn way_to_a() -> String {
    switched_off(|file| std::fs::read_to_string(file).ok()).map_or_else(
        || {
            "this kernel's settings allow namespaces, so a container or a service manager \
             forbids them: allow unshare and mount there; until then calls run in tier B"
                .to_owned()
        },
        |way| format!("{way}; until then calls run in tier B"),
    )
}

fn switched_off(read: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let found =
        SWITCHES.iter().find(|(file, off, _)| read(file).is_some_and(|value| value.trim() == *off));
    found.map(|(_, _, way)| *way)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_losses_of_tier_b_are_those_of_the_help_page() {
        let missing = missing_in_b();
        for words in ["a writable home", "servers on 127.0.0.1", "private shared memory"] {
            assert!(missing.contains(words), "{missing}");
        }
    }

    #[test]
    fn the_setting_that_keeps_namespaces_away_is_named() {
        for (file, off, _) in SWITCHES {
            let name = file.rsplit('/').next().unwrap();
            let only = |value: &'static str| {
                move |asked: &str| (asked == *file).then(|| format!("{value}\n"))
            };
            assert!(switched_off(only(off)).unwrap().contains(name), "{file}");
            let on = if *off == "0" { "1" } else { "0" };
            assert_eq!(switched_off(only(on)), None, "{file}");
        }
        assert_eq!(switched_off(|_| None), None, "a kernel that has none of them");
    }
}
