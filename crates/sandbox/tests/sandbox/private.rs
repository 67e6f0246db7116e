//! The session's private directories: what tier A shows at `/tmp`, `/var/tmp` and the home.

use super::yard::{SECRET, TIERS, Told, Yard};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A session's directories beside a yard, and the person's home with something granted in it.
struct Session {
    yard: Yard,
    /// Where what is shown at `/tmp`, `/var/tmp` and the home is kept.
    kept: [PathBuf; 3],
}

impl Session {
    fn new() -> Self {
        Self::of(Yard::new())
    }

    fn of(yard: Yard) -> Self {
        for file in [".tool-versions", ".cargo/bin/tool", ".cargo/registry/tool"] {
            let file = yard.home.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "#!/bin/sh\necho the person\\'s\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let kept = ["var-tmp", "own-home"].map(|name| yard.root.join(name));
        kept.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        let [var_tmp, home] = kept;
        Self { kept: [yard.temp.clone(), var_tmp, home], yard }
    }

    fn run(&self, tier: &str, script: &str) -> Told {
        self.run_with(tier, &[], script)
    }

    fn run_with(&self, tier: &str, more: &[&str], script: &str) -> Told {
        let home = self.yard.home.to_str().unwrap();
        let pairs: Vec<String> = ["/tmp", "/var/tmp", home]
            .iter()
            .zip(&self.kept)
            .map(|(shown_at, kept_at)| format!("{shown_at}={}", kept_at.display()))
            .collect();
        let pairs = pairs.iter().flat_map(|pair| ["private", pair]);
        let options: Vec<&str> = pairs.chain(more.iter().copied()).collect();
        self.yard.cage(tier, &options, &["sh", "-c", script])
    }
}

#[test]
fn what_is_written_there_is_found_by_the_next_call_and_by_nobody_else() {
    let session = Session::new();
    let home = session.yard.home.display().to_string();
    let name = format!("agentd-test-{}", std::process::id());
    let places =
        [format!("/tmp/{name}"), format!("/var/tmp/{name}"), format!("{home}/.config/new")];
    for place in &places {
        let told = session.run(
            "a",
            &format!("mkdir -p $(dirname {place}) && echo kept > {place} && chmod 755 {place}"),
        );
        told.in_tier("a");
        let told =
            session.run("a", &format!("cat {place}; mv {place} {place}.moved; ls {place}.moved"));
        assert_eq!(told.in_tier("a").printed(), format!("kept\n{place}.moved"));
        assert!(told.all("refusal").is_empty(), "{told:?}");
        assert!(
            !PathBuf::from(place).exists() && !PathBuf::from(format!("{place}.moved")).exists()
        );
    }
    assert!(session.kept[0].join(format!("{name}.moved")).is_file());
    assert!(session.kept[1].join(format!("{name}.moved")).is_file());
    assert!(session.kept[2].join(".config/new.moved").is_file());
    // Tier B has no root of its own: there they are the host's.
    let told = session.run("b", &format!("echo x > /tmp/{name} || echo refused"));
    assert!(told.in_tier("b").printed().contains("refused"));
}

#[test]
fn nothing_of_the_person_is_read_or_changed_but_what_is_granted() {
    for tier in TIERS {
        let session = Session::new();
        let home = session.yard.home.display().to_string();
        let secret = session.yard.secret.display().to_string();
        let told =
            session.run(tier, &format!("cat {home}/.cargo/bin/tool; cat {secret}; ls -a {home}"));
        let printed = told.in_tier(tier).printed();
        assert!(printed.contains("the person"), "the control: {printed}");
        assert!(!printed.contains(SECRET), "{printed}");
        for (change, same) in [
            ("echo x > .cargo/bin/tool", ".cargo/bin/tool"),
            ("rm -f .cargo/bin/tool", ".cargo/bin/tool"),
            ("mv .cargo/bin .cargo/bin2", ".cargo/bin/tool"),
            ("mv .cargo .cargo2; rm -rf .cargo2", ".cargo/bin/tool"),
            ("chmod 777 .cargo/bin/tool", ".cargo/bin/tool"),
            (
                "setfattr -n user.x -v y .cargo/bin/tool || chown 0:1 .cargo/bin/tool",
                ".cargo/bin/tool",
            ),
            ("ln -f .cargo/bin/tool link && echo x > link", ".cargo/bin/tool"),
            ("echo x >> .tool-versions", ".tool-versions"),
            ("mv .tool-versions other; echo x > .tool-versions", ".tool-versions"),
            ("rm -rf .cargo .tool-versions", ".tool-versions"),
        ] {
            let was = std::fs::read(session.yard.home.join(same)).unwrap();
            session.run(tier, &format!("cd {home} && {change}; echo end")).in_tier(tier);
            let file = session.yard.home.join(same);
            assert_eq!(std::fs::read(&file).unwrap(), was, "{tier} {change}");
            // Landlock does not hold modes: tier B says so among its limits.
            if tier == "a" {
                assert_eq!(
                    file.metadata().unwrap().permissions().mode() & 0o777,
                    0o755,
                    "{change}"
                );
            }
        }
        assert!(session.yard.secret.is_file());
        assert!(!session.yard.home.join("link").exists());
    }
}

#[test]
fn programs_start_from_where_the_person_granted_it_and_from_what_is_private() {
    let session = Session::new();
    let home = session.yard.home.display().to_string();
    let told = session.run(
        "a",
        &format!(
            "{home}/.cargo/bin/tool; {home}/.cargo/registry/tool && echo started; \
             mkdir {home}/bin && cp {home}/.cargo/registry/tool {home}/bin/own && {home}/bin/own"
        ),
    );
    let printed = told.in_tier("a").printed();
    assert_eq!(printed.matches("the person's").count(), 2, "{printed}");
    assert!(!printed.contains("started"), "{printed}");
    let refused = told.all("refusal");
    assert!(refused.iter().any(|line| line.contains("registry/tool")), "{told:?}");
}

/// What a command leaves in the way of a mount leads the next call's mounts nowhere.
#[test]
fn a_link_in_the_way_of_a_grant_is_put_aside() {
    let session = Session::new();
    let home = session.yard.home.display().to_string();
    let outside = session.yard.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    // As one that a command made when nothing was granted there yet.
    symlink(&outside, session.kept[2].join(".cargo")).unwrap();
    std::fs::create_dir(session.kept[2].join(".tool-versions")).unwrap();
    let told = session.run("a", &format!("{home}/.cargo/bin/tool; cat {home}/.tool-versions"));
    assert_eq!(told.in_tier("a").printed().matches("the person").count(), 2, "{told:?}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    let aside = |name: &str| {
        let entries = std::fs::read_dir(&session.kept[2]).unwrap().flatten();
        let prefix = format!("{name}.aside-");
        let mut found =
            entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(&prefix));
        found.next().unwrap().path()
    };
    assert!(aside(".cargo").is_symlink());
    assert!(aside(".tool-versions").is_dir());
}

/// A project within a private directory is the person's: what is in the way there stays.
#[test]
fn a_link_in_a_project_within_is_not_renamed() {
    let session = Session::new();
    let project = session.yard.home.join("work");
    std::fs::create_dir_all(session.yard.root.join("outside/state")).unwrap();
    std::fs::create_dir(&project).unwrap();
    let link = project.join("link");
    symlink(session.yard.root.join("outside"), &link).unwrap();
    let (project, withheld) = (project.to_str().unwrap(), link.join("state"));
    let control = session.run_with("a", &["project", project], "echo ran");
    assert_eq!(control.in_tier("a").printed(), "ran");
    // A place that is covered, reached by the link.
    let options = ["project", project, "withheld", withheld.to_str().unwrap()];
    let told = session.run_with("a", &options, "echo ran");
    assert_eq!(told.one("uncaged"), "root", "{told:?}");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_dir(project).unwrap().count(), 1);
}

/// The way to a granted directory within a private one stays where it is: the next call finds it.
#[test]
fn a_project_within_stays_in_its_place() {
    let session = Session::of(Yard::within(Path::new("/tmp")));
    let root = session.yard.root.display();
    let told =
        session.run("a", &format!("mv {root} {root}-moved || echo held; pwd; echo new > new"));
    assert!(told.in_tier("a").printed().contains("held"), "{told:?}");
    assert!(session.yard.project.join("new").is_file());
    let told = session.run("a", &format!("ls {root}"));
    assert_eq!(told.printed(), "home\nproject", "no more of the host's is there");
}

/// A read-only mount holds files and no FIFO, and Landlock grants writing to the home around it: the
/// record says so, and predicts nothing that does not happen.
#[test]
fn what_a_granted_place_of_the_home_does_not_hold_is_said() {
    let session = Session::new();
    let fifo = session.yard.home.join(".cargo/registry/fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let home = session.yard.home.display();
    let told = session.run(
        "a",
        &format!("cd {home}/.cargo/registry; timeout 5 sh -c 'echo x <> fifo >&0' && echo through; echo x > tool"),
    );
    assert_eq!(told.in_tier("a").printed(), "through", "{told:?}");
    let told = format!("{told:?}");
    assert!(told.contains("In directories of the home"), "{told}");
    assert!(told.contains("registry/tool for writing"), "the positive control: {told}");
    assert!(!told.contains("registry/fifo for writing"), "{told}");
}

/// Where the home is the project, what lies in it is the project's.
#[test]
fn nothing_is_read_only_in_a_home_that_was_granted() {
    let session = Session::new();
    let home = session.yard.home.display().to_string();
    let script = format!(
        "cd {home} && echo new > .cargo/registry/new && echo new >> .cargo/bin/tool && echo did"
    );
    let pair = format!("{home}={}", session.kept[2].display());
    let options = ["project", &home, "private", &pair];
    let told = session.yard.cage("a", &options, &["sh", "-c", &script]);
    assert_eq!(told.in_tier("a").printed(), "did", "{told:?}");
    assert!(!format!("{told:?}").contains("FIFOs can be written to"), "{told:?}");
}

/// What a cleaner of `/tmp` took away somebody else may have made again.
#[test]
fn a_private_directory_of_somebody_else_is_not_used() {
    let mut session = Session::new();
    assert_eq!(session.run("a", "echo ran").in_tier("a").printed(), "ran");
    session.kept[2] = if nix::unistd::geteuid().is_root() {
        let other = session.yard.root.join("other");
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::chown(&other, Some(65534), Some(65534)).unwrap();
        other
    } else {
        PathBuf::from("/usr/share")
    };
    let told = session.run("a", "echo ran");
    assert_eq!(told.all("out"), [""; 0], "{told:?}");
    assert!(format!("{told:?}").contains("belongs to another user"), "{told:?}");
}

/// A command that closes what lies on the way to its project closes it for itself alone.
#[test]
fn a_home_that_a_command_closed_keeps_no_later_call_from_its_project() {
    let session = Session::new();
    let project = session.yard.home.join("deep/work");
    std::fs::create_dir_all(&project).unwrap();
    let options = ["project", project.to_str().unwrap()];
    let home = session.yard.home.display();
    let close = format!("chmod 000 {home}/deep {home}; cat {home}/x || echo closed");
    let told = session.run_with("a", &options, &close);
    assert!(told.in_tier("a").printed().contains("closed"), "{told:?}");
    let told = session.run_with("a", &options, "pwd; echo x > file && echo written");
    let printed = told.in_tier("a").printed();
    assert_eq!(printed, format!("{}\nwritten", project.display()), "{told:?}");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_ne!(mode(&session.yard.home), 0, "the person's stays as it was");
}
