//! Granted places that lie in one another and in private directories: what the kernel lets a command
//! do there is what the record says of it, and the same in both tiers.

#![allow(clippy::unwrap_used)]

mod yard;

use std::os::unix::fs::PermissionsExt;
use yard::{TIERS, Told, Yard};

/// Granted for reading, for starting programs, the same, and only where it is the project.
const TOOLS: [&str; 5] =
    [".cargo/registry/tool", ".cargo/bin/tool", "go/bin/tool", "go/src/p/tool", "work/tool"];

/// A yard whose home has programs, and the session's directories.
struct Home {
    yard: Yard,
    options: Vec<String>,
}

impl Home {
    fn new() -> Self {
        let yard = Yard::new();
        for tool in TOOLS.map(|tool| yard.home.join(tool)) {
            std::fs::create_dir_all(tool.parent().unwrap()).unwrap();
            std::fs::write(&tool, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let kept = ["var-tmp", "own-home"].map(|name| yard.root.join(name));
        kept.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        let shown = ["/tmp", "/var/tmp", yard.home.to_str().unwrap()];
        let pairs = shown.iter().zip([&yard.temp].into_iter().chain(&kept));
        let options = pairs
            .flat_map(|(at, kept)| ["private".to_owned(), format!("{at}={}", kept.display())])
            .collect();
        Self { yard, options }
    }

    fn run(&self, tier: &str, more: &[&str], script: &str) -> Told {
        let options: Vec<_> =
            self.options.iter().map(String::as_str).chain(more.to_vec()).collect();
        self.yard.cage(tier, &options, &["sh", "-c", script])
    }
}

/// With which errno the record has such a call on this place refused.
fn refused<'a>(told: &'a Told, calls: &[&str], place: &str) -> Option<&'a str> {
    told.all("refusal").into_iter().find_map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let [_, call, errno, at, ..] = words.as_slice() else { return None };
        (calls.contains(call) && at.trim_end_matches(',') == place).then_some(*errno)
    })
}

/// Of a place whether it can be written and started.
type Rights = (&'static str, bool, bool);

/// By the profile, and by where the project lies in the home.
#[test]
fn each_place_in_another_is_as_the_record_says() {
    let table: &[(&str, &str, &[Rights])] = &[
        (
            "command",
            "work",
            &[
                (".cargo/registry/tool", false, false),
                (".cargo/bin/tool", false, true),
                ("go/bin/tool", false, true),
                ("work/tool", true, true),
            ],
        ),
        // The person granted all of it.
        ("command", "", &TOOLS.map(|tool| (tool, true, true))),
        (
            "command",
            ".cargo",
            &[
                (".cargo/registry/tool", true, true),
                (".cargo/bin/tool", true, true),
                ("go/bin/tool", false, true),
            ],
        ),
        (
            "command",
            ".cargo/bin",
            &[(".cargo/registry/tool", false, false), (".cargo/bin/tool", true, true)],
        ),
        ("command", "go/src/p", &[("go/bin/tool", false, true), ("go/src/p/tool", true, true)]),
        ("verify", "work", &[(".cargo/registry/tool", false, false), ("work/tool", false, true)]),
        ("verify", "", &TOOLS.map(|tool| (tool, false, true))),
    ];
    for tier in TIERS {
        for (profile, project, places) in table {
            let home = Home::new();
            let of_home = |name: &str| home.yard.home.join(name).display().to_string();
            let project = of_home(project);
            let script: String = places
                .iter()
                .map(|(place, ..)| of_home(place))
                .map(|at| format!("echo >> {at} && echo wrote {at}; {at} && echo ran {at}; "))
                .collect();
            let options = ["profile", profile, "project", project.trim_end_matches('/')];
            let told = home.run(tier, &options, &script);
            let printed = told.in_tier(tier).printed();
            for (place, writes, runs) in *places {
                let at = of_home(place);
                let case = format!("{tier} {profile} {project}: {at} {told:?}");
                let does = |word: &str| printed.lines().any(|line| line == format!("{word} {at}"));
                assert_eq!((does("wrote"), does("ran")), (*writes, *runs), "{case}");
                let (errno, said) = match tier {
                    "a" => ("30", "Read-only file system"),
                    _ => ("13", "Permission denied"),
                };
                let complaint = format!("cannot create {at}: {said}");
                let complains = told.all("err").iter().any(|line| line.contains(&complaint));
                assert_eq!(complains, !writes, "{case}");
                let opened = refused(&told, &["open", "openat"], &at);
                assert_eq!(opened, (!writes).then_some(errno), "{case}");
                assert_eq!(refused(&told, &["execve"], &at), (!runs).then_some("13"), "{case}");
            }
        }
    }
}
