//! Granted places that lie in one another and in private directories: what the kernel lets a command
//! do there is what the record says of it, and the same in both tiers.

use super::yard::{TIERS, Told, Yard};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

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

/// What is granted by its own name is mounted above the cover of what was taken out, for reading alone.
#[test]
fn a_granted_place_in_one_that_was_taken_out_of_the_project_is_read_only() {
    let home = Home::new();
    let (project, key) = (home.yard.home.clone(), home.yard.home.join(".cargo"));
    let options = ["project", project.to_str().unwrap(), "key", key.to_str().unwrap()];
    let [granted, other] =
        [TOOLS[0], TOOLS[2]].map(|tool| project.join(tool).display().to_string());
    let script = format!("echo >> {other} && echo control; echo >> {granted} && echo wrote");
    let told = home.run("a", &options, &script);
    assert_eq!(told.in_tier("a").printed(), "control", "{told:?}");
    assert_eq!(refused(&told, &["open", "openat"], &granted), Some("30"), "{told:?}");
    assert_eq!(refused(&told, &["open", "openat"], &other), None, "{told:?}");
}

/// A granted place is a mount point where something else lies around it, and else a directory like any.
#[test]
fn renaming_a_granted_place_fails_as_the_record_says() {
    let busy = ("Device or resource busy", "16");
    let read_only = ("Read-only file system", "30");
    for (project, (said, errno)) in [("work", busy), ("", read_only)] {
        let home = Home::new();
        let project = home.yard.home.join(project);
        let options = ["profile", "verify", "project", project.to_str().unwrap()];
        let at = home.yard.home.join(".cargo/registry").display().to_string();
        let told = home.run("a", &options, &format!("mv -T {at} {at}.moved"));
        assert!(told.all("err").iter().any(|line| line.contains(said)), "{told:?}");
        let calls = ["rename", "renameat", "renameat2"];
        assert_eq!(refused(&told, &calls, &at), Some(errno), "{told:?}");
    }
}

/// A FIFO there, held open at this end; what a command writes to it can be read.
fn pipe(at: &Path) -> File {
    nix::unistd::mkfifo(at, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(at).unwrap()
}

/// What the pipe holds.
fn held(mut pipe: &File) -> String {
    let mut bytes = [0; 64];
    let got = pipe.read(&mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..got]).into_owned()
}

/// A read-only mount holds files, and Landlock gives the rights of the private directory around it.
#[test]
fn pipes_and_sockets_in_a_private_directory_are_open_and_that_is_said() {
    for tier in TIERS {
        let home = Home::new();
        let place = home.yard.home.join(".cargo/registry");
        let at = |name: &str| place.join(name).display().to_string();
        let (pipe, _socket) =
            (pipe(&place.join("pipe")), UnixListener::bind(place.join("socket")).unwrap());
        let [file, fifo, socket] = ["tool", "pipe", "socket"].map(at);
        let script = format!(
            "echo on >> {file}; echo on >> {fifo}; echo on >> {socket}; {} try unix {socket}",
            home.yard.inside.display()
        );
        let told = home.run(tier, &[], &script);
        let is_a = told.in_tier(tier).one("tier") == "A";
        let refused = |at: &str| refused(&told, &["open", "openat"], at);
        let says = told.all("limit").iter().any(|limit| limit.contains("FIFOs can be written to"));
        assert_eq!(held(&pipe), if is_a { "on\n" } else { "" }, "{told:?}");
        assert_eq!(told.printed().contains("unix: done"), is_a, "{told:?}");
        assert_eq!(says, is_a, "{told:?}");
        assert_eq!(refused(&file), Some(if is_a { "30" } else { "13" }), "the control: {told:?}");
        let expected = if is_a { [None; 2] } else { [Some("13"); 2] };
        assert_eq!([refused(&fifo), refused(&socket)], expected, "{told:?}");
    }
}

#[test]
fn a_pipe_elsewhere_is_held_by_landlock() {
    for tier in TIERS {
        let yard = Yard::new();
        let pipe = pipe(&yard.home.join("pipe"));
        let fifo = yard.home.join("pipe").display().to_string();
        let options = ["rustup-home", &fifo];
        let script = format!("echo on >> {fifo}; test -p {fifo} && echo there");
        let told = yard.cage(tier, &options, &["sh", "-c", &script]);
        assert_eq!(told.in_tier(tier).printed(), "there", "{told:?}");
        assert_eq!(held(&pipe), "");
        assert_eq!(refused(&told, &["open", "openat"], &fifo), Some("13"), "{told:?}");
        assert!(
            !told.all("limit").iter().any(|limit| limit.contains("FIFOs can be written to")),
            "{told:?}"
        );
    }
}
