//! Copy-on-write places of the home: what the person has is used, what commands change is the project's.

use super::yard::{Told, Yard};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A project's overlays beside a yard whose home has some tool homes.
struct Project {
    yard: Yard,
    own_home: PathBuf,
    overlays: PathBuf,
}

const FILES: [(&str, &str); 4] = [
    (".cargo/registry/cache/crate", "the person's crate"),
    (".cargo/registry/src/lib.rs", "the person's source"),
    (".cargo/bin/tool", "#!/bin/sh\necho the person\\'s tool\n"),
    (".cargo/credentials.toml", "token-of-the-person"),
];

impl Project {
    fn new() -> Self {
        let yard = Yard::new();
        for (name, text) in FILES {
            let file = yard.home.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let [own_home, overlays] = ["own-home", "overlays"].map(|name| yard.root.join(name));
        std::fs::create_dir(&own_home).unwrap();
        Self { yard, own_home, overlays }
    }

    fn run(&self, script: &str) -> Told {
        self.run_with(&self.overlays, script)
    }

    fn run_with(&self, overlays: &Path, script: &str) -> Told {
        let home = self.yard.home.display();
        let shown = [
            format!("/tmp={}", self.yard.temp.display()),
            format!("{home}={}", self.own_home.display()),
        ];
        let script = format!("cd {home} && {script}");
        let options =
            ["private", &shown[0], "private", &shown[1], "overlays", overlays.to_str().unwrap()];
        self.yard.cage("a", &options, &["sh", "-c", &script])
    }

    /// Sets the kernel's own attributes of overlays in a cage, where the kernel lets it.
    fn mark(&self, marks: &[(&str, &str, &str)]) {
        let attempt = self.yard.inside.display();
        for (path, name, value) in marks {
            let told =
                self.run(&format!("{attempt} try attribute {path} user.overlay.{name} '{value}'"));
            let said = told.in_tier("a").printed();
            assert!(["attribute: done ", "attribute: EPERM"].contains(&said.as_str()), "{told:?}");
        }
    }

    /// What the person has, with what would show a change.
    fn of_the_person(&self) -> Vec<(PathBuf, Vec<u8>, u32, i64)> {
        let mut found = Vec::new();
        let mut waiting = vec![self.yard.home.join(".cargo")];
        while let Some(path) = waiting.pop() {
            let about = path.symlink_metadata().unwrap();
            if about.is_dir() {
                let entries = std::fs::read_dir(&path).unwrap();
                waiting.extend(entries.map(|entry| entry.unwrap().path()));
            }
            let bytes = if about.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            found.push((path, bytes, about.mode(), about.ctime_nsec()));
        }
        found.sort();
        found
    }
}

#[test]
fn what_commands_change_is_found_by_the_next_and_the_person_s_stays() {
    let project = Project::new();
    let before = project.of_the_person();
    let told = project.run(
        "cat .cargo/registry/cache/crate && echo && .cargo/bin/tool && \
         echo new > .cargo/registry/cache/new && echo changed > .cargo/registry/src/lib.rs && \
         rm .cargo/registry/cache/crate && cp .cargo/bin/tool .cargo/bin/own && \
         mkdir -p .npm/_cacache/x && echo y > .m2/repository/y",
    );
    let printed = told.in_tier("a").printed();
    assert_eq!(printed, "the person's crate\nthe person's tool", "{told:?}");
    assert!(told.all("refusal").is_empty(), "{told:?}");
    let told = project.run(
        "ls .cargo/registry/cache .npm/_cacache; cat .cargo/registry/src/lib.rs; .cargo/bin/own; cat .m2/repository/y",
    );
    let printed = told.in_tier("a").printed();
    assert!(!printed.contains("crate\n"), "{printed}");
    for seen in ["new", "x", "changed", "the person's tool", "y"] {
        assert!(printed.lines().any(|line| line == seen), "{seen}: {printed}");
    }
    assert_eq!(project.of_the_person(), before);
}

#[test]
fn another_project_and_the_person_see_nothing_of_it() {
    let project = Project::new();
    let script = "echo poison > .cargo/registry/src/lib.rs && echo x > .cargo/bin/tool; cat .cargo/registry/src/lib.rs";
    assert_eq!(project.run(script).in_tier("a").printed(), "poison", "the control");
    let other = project.yard.root.join("other-overlays");
    let told = project.run_with(&other, "cat .cargo/registry/src/lib.rs; echo; .cargo/bin/tool");
    assert_eq!(told.in_tier("a").printed(), "the person's source\nthe person's tool");
    let mine = project.overlays.display();
    let told =
        project.run_with(&other, &format!("ls {mine}; find / -name upper 2>/dev/null; echo end"));
    assert_eq!(told.in_tier("a").printed(), "end", "{told:?}");
}

/// By all ways that lead to the person's files from an overlay, or out of it.
#[test]
fn nothing_of_the_person_is_changed_or_read_beyond_what_is_granted() {
    let project = Project::new();
    let (before, home) = (project.of_the_person(), project.yard.home.display().to_string());
    let told = project.run("cat .cargo/credentials.toml; cat .cargo/registry/cache/crate");
    let told = format!("{told:?}");
    assert!(told.contains("the person's crate") && !told.contains("token-of-the-person"), "{told}");
    for change in [
        "ln .cargo/registry/src/lib.rs .cargo/registry/link && echo x > .cargo/registry/link",
        "ln .cargo/registry/src/lib.rs link && echo x > link",
        "mv .cargo/registry/src/lib.rs .cargo/bin/ && echo x >> .cargo/bin/lib.rs",
        "mv .cargo/registry/src .cargo/registry/moved; echo x > .cargo/registry/moved/lib.rs",
        "rm -rf .cargo/registry; rm -rf .cargo",
        "echo x > /proc/self/root$PWD/.cargo/registry/src/lib.rs",
        "cd .cargo/registry && echo x > /proc/self/cwd/src/lib.rs",
        "exec 3<> .cargo/registry/src/lib.rs; echo x > /proc/self/fd/3",
        "chmod 4777 .cargo/bin/tool; chown 1:1 .cargo/bin/tool",
        "touch -d 2001-01-01 .cargo/bin/tool",
        "setfattr -n user.x -v y .cargo/registry/src/lib.rs; setfattr -n user.overlay.redirect -v /../.. .cargo/registry/src",
        "mknod .cargo/registry/src/lib.rs c 0 0; rm .cargo/registry/src/lib.rs; mknod .cargo/registry/src/lib.rs c 0 0",
        "mount --bind .cargo/bin .cargo/registry; umount .cargo/registry; umount -l $PWD",
        "truncate -s 0 .cargo/registry/cache/crate; fallocate -l 1M .cargo/registry/cache/crate",
        "chattr +i .cargo/registry/cache/crate",
    ] {
        let told = project.run(&format!(
            "({change}) 2>/dev/null; cd {home}; cat .cargo/credentials.toml; echo end"
        ));
        assert_eq!(told.in_tier("a").printed(), "end", "{change}");
        assert_eq!(project.of_the_person(), before, "{change}");
    }
}

/// What a command writes about the overlay itself means nothing to the next.
#[test]
fn attributes_of_the_kernel_s_own_lead_nowhere() {
    let project = Project::new();
    let own =
        [(".cargo/registry/src", "opaque", "y"), (".cargo/registry/cache/crate", "metacopy", "")];
    project.mark(&own);
    let told = project.run("cat .cargo/registry/src/lib.rs .cargo/registry/cache/crate");
    let printed = told.in_tier("a").printed();
    assert_eq!(printed, "the person's sourcethe person's crate", "{told:?}");
}

/// Nor where the person has nothing at first, so that all there is was made by commands.
#[test]
fn attributes_lead_nowhere_once_the_person_has_something_there() {
    let project = Project::new();
    let at = ".npm/_cacache";
    let made = format!("cd {at} && mkdir moved hides && echo own > moved/own && echo own > file");
    project.run(&made).in_tier("a");
    let names =
        [("moved", "redirect", "/hides"), ("hides", "opaque", "y"), ("file", "metacopy", "")];
    let paths = names.map(|(name, ..)| format!("{at}/{name}"));
    let marks: Vec<_> = paths
        .iter()
        .zip(names)
        .map(|(path, (_, name, value))| (path.as_str(), name, value))
        .collect();
    project.mark(&marks);
    let cache = project.yard.home.join(at);
    std::fs::create_dir_all(cache.join("hides")).unwrap();
    std::fs::write(cache.join("hides/theirs"), "the person's").unwrap();
    let told =
        project.run(&format!("cd {at} && cat moved/own file hides/theirs && rm -r moved file"));
    assert_eq!(told.in_tier("a").printed(), "own\nown\nthe person's", "{told:?}");
    assert_eq!(told.one("exit"), "0", "{told:?}");
}

/// What a command closed is closed for that command alone.
#[test]
fn a_place_that_a_command_closed_is_open_for_the_next() {
    let project = Project::new();
    for place in [".cargo/registry", ".npm/_cacache"] {
        project.run(&format!("echo x > {place}/own && chmod 000 {place}")).in_tier("a");
        assert_eq!(project.run(&format!("cat {place}/own")).in_tier("a").printed(), "x", "{place}");
    }
}

/// Secrets that lie among caches and tools.
#[test]
fn what_holds_keys_among_caches_is_not_read() {
    let project = Project::new();
    for (place, beside, secret) in [
        (".cache/ms-playwright", "chromium-1/chrome", "mcp-chrome-3f2a/Local State"),
        (".opam", "default/bin/ocaml", "plugins/opam-publish/ann.token"),
        (".asdf", "installs/rust/1.80/bin/cargo", "installs/rust/1.80/credentials.toml"),
        (".cache/deno", "deps/x", "location_data/3f2a/local_storage"),
    ] {
        let place = project.yard.home.join(place);
        for (name, text) in [(beside, "usable"), (secret, "token-of-the-person")] {
            let file = place.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
        }
        let place = place.display();
        let script = format!("cat \"{place}/{secret}\"; cat {place}/{beside}");
        for told in [project.run(&script), project.yard.shell("b", &script)] {
            assert_eq!(told.printed(), "usable", "{told:?}");
        }
    }
}

/// A place in which something is taken out is shown as it is.
#[test]
fn what_is_withheld_within_a_place_stays_out_of_it() {
    let project = Project::new();
    let withheld = project.yard.home.join(".cargo/registry/cache");
    let (all, withheld) = (project.overlays.to_str().unwrap(), withheld.to_str().unwrap());
    let home = format!("{}={}", project.yard.home.display(), project.own_home.display());
    let options = ["private", &home, "overlays", all, "withheld", withheld];
    let script = format!(
        "cd {}/.cargo; cat registry/src/lib.rs; echo x > bin/own && echo added; \
         ls registry/cache; echo x > registry/x || echo refused",
        project.yard.home.display()
    );
    let told = project.yard.cage("a", &options, &["sh", "-c", &script]);
    assert_eq!(told.in_tier("a").printed(), "the person's sourceadded\nrefused", "{told:?}");
    let said = told.all("limit").join(" ");
    assert!(said.contains(".cargo/registry is read-only"), "{said}");
}

#[test]
fn the_person_s_own_stays_read_only_where_no_overlay_can_be_made() {
    let project = Project::new();
    let file = project.yard.root.join("file");
    std::fs::write(&file, "").unwrap();
    let told = project.run_with(
        &file.join("overlays"),
        "cat .cargo/registry/src/lib.rs; echo x > .cargo/registry/src/lib.rs || echo refused; mkdir -p .npm/_cacache && echo made",
    );
    assert_eq!(told.in_tier("a").printed(), "the person's sourcerefused\nmade", "{told:?}");
    let said = told.all("limit").into_iter().find(|limit| limit.contains("as an overlay"));
    assert!(said.is_some_and(|said| said.contains(".cargo/")), "{told:?}");
    assert!(!told.all("refusal").is_empty());
}

/// A project within a place that is shown as an overlay is the project: what is changed there is changed.
#[test]
fn a_project_within_an_overlay_is_worked_in() {
    let project = Project::new();
    let within = project.yard.home.join("go/src/work");
    std::fs::create_dir_all(&within).unwrap();
    let home = format!("{}={}", project.yard.home.display(), project.own_home.display());
    let overlays = project.overlays.to_str().unwrap();
    let options = ["project", within.to_str().unwrap(), "private", &home, "overlays", overlays];
    let script = "echo x > file; echo y > ../beside; mv ../work ../moved || echo held; ls ..; \
                  chmod 000 .. ../..";
    for _ in 0..2 {
        let told = project.yard.cage("a", &options, &["sh", "-c", script]);
        let printed = told.in_tier("a").printed();
        assert!(printed.contains("held\nbeside\nwork"), "{told:?}");
    }
    assert!(within.join("file").is_file());
    assert!(!within.with_file_name("beside").exists());
}
