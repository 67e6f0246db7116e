//! Links on the way to what a policy grants: where a command could have led them, nothing is granted.

use super::yard::{SECRET, TIERS, Told, Yard};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const KEY: &str = "a-key-of-the-person";
const OWN: &str = "of-the-person";

/// Links of the home: two lead into `into`, one to another place of the home, one out of it.
fn laid(into: &Path) -> Yard {
    let yard = Yard::new();
    let into =
        if into == Path::new("project") { yard.project.clone() } else { yard.root.join(into) };
    let home = |name: &str| yard.home.join(name);
    for folder in [home(".ssh"), home("tools/pyenv"), yard.root.join("opt"), into.join("nvm")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    for (file, text) in [
        (home(".ssh/id"), KEY),
        (home("tools/pyenv/x"), OWN),
        (yard.root.join("opt/x"), OWN),
        (into.join("nvm/x"), "in-own"),
        (into.join("versions"), "node"),
    ] {
        std::fs::write(file, text).unwrap();
    }
    for (to, link) in [
        (into.join("nvm"), ".nvm"),
        (into.join("versions"), ".tool-versions"),
        (home("tools/pyenv"), ".pyenv"),
        (yard.root.join("opt"), ".rbenv"),
    ] {
        symlink(to, home(link)).unwrap();
    }
    yard
}

fn run(yard: &Yard, tier: &str, options: &[&str], script: &str) -> Told {
    let script = format!("cd {}; {script}; true", yard.home.display());
    yard.cage(tier, options, &["sh", "-c", &script])
}

const READ: &str = "cat .nvm/x .tool-versions .pyenv/x .rbenv/x .ssh/id .secret .nvm/id; echo end";

#[test]
fn a_link_that_a_command_laid_anew_opens_nothing() {
    for tier in TIERS {
        for place in ["project", "added", "caches", "overlays"] {
            let yard = laid(Path::new(place));
            let at = if place == "project" { yard.project.clone() } else { yard.root.join(place) };
            let options: &[&str] =
                if place == "project" { &[] } else { &[place, at.to_str().unwrap()] };
            // The control: what the links lead to is read, by the links that no command can write too.
            let told = run(&yard, tier, options, READ);
            let said = told.in_tier(tier).printed();
            assert_eq!(said.matches(OWN).count(), 2, "{tier} {place}: {told:?}");
            // What keeps overlays is in no command's root.
            let shown = if place == "overlays" { 0 } else { 1 };
            assert_eq!(said.matches("in-own").count(), shown, "{tier} {place}: {told:?}");
            assert!(!said.contains(KEY) && !said.contains(SECRET), "{tier} {place}: {said}");
            let anew = format!(
                "cd {at}; rm -r nvm versions; ln -s {home}/.ssh nvm; ln -s {home}/.secret versions",
                at = at.display(),
                home = yard.home.display()
            );
            match place {
                // As a command can by a mount that is its own.
                "overlays" => drop(std::process::Command::new("sh").args(["-c", &anew]).status()),
                _ => drop(run(&yard, tier, options, &anew)),
            }
            assert!(at.join("nvm").is_symlink(), "{tier} {place}: the command laid it anew");
            let told = run(&yard, tier, options, READ);
            let said = told.in_tier(tier).printed();
            assert!(!said.contains(KEY) && !said.contains(SECRET), "{tier} {place}: {said}");
            assert_eq!(said.matches(OWN).count(), 2, "{tier} {place}: {told:?}");
            let all = told.all("left_out").join("\n");
            for name in [".nvm", ".tool-versions"] {
                let left_out = format!("{} is left out", yard.home.join(name).display());
                assert!(all.contains(&left_out), "{tier} {place}: {all}");
            }
        }
    }
}

#[test]
fn a_link_to_all_that_there_is_is_left_out_and_the_call_runs() {
    for tier in TIERS {
        for (inner, to) in [("project", "/"), ("project", "home"), ("opt", "/"), ("opt", "home")] {
            let yard = laid(Path::new(inner));
            let at = if inner == "project" { yard.project.clone() } else { yard.root.join(inner) };
            std::fs::remove_dir_all(at.join("nvm")).unwrap();
            let to = if to == "home" { yard.home.clone() } else { PathBuf::from(to) };
            symlink(&to, at.join("nvm")).unwrap();
            let told = run(&yard, tier, &[], READ);
            let said = told.in_tier(tier).printed();
            assert!(said.ends_with("end"), "{tier} {inner} {to:?}: {told:?}");
            assert!(!said.contains(KEY) && !said.contains(SECRET), "{tier} {inner}: {said}");
            assert!(said.contains(OWN), "{tier} {inner}: {told:?}");
            assert!(told.all("left_out").join("\n").contains(".nvm"), "{tier} {inner}: {told:?}");
        }
    }
}

/// A command that can write around the project can put a link in its place.
#[test]
fn a_project_that_a_command_replaced_by_a_link_is_granted_no_more() {
    for tier in TIERS {
        let yard = laid(Path::new("project"));
        let around = yard.root.join("around");
        let project = around.join("project");
        std::fs::create_dir_all(&project).unwrap();
        let [around, inner] = [&around, &project].map(|path| path.to_str().unwrap());
        let script = format!("ls {inner}/id; cat {inner}/id; echo end");
        let options = ["project", inner, "added", around];
        let told = run(&yard, tier, &options, &script);
        assert!(told.in_tier(tier).printed().ends_with("end"), "{tier}: {told:?}");
        std::fs::remove_dir(&project).unwrap();
        symlink(yard.home.join(".ssh"), &project).unwrap();
        let out = yard.runner(tier, &options, &["sh", "-c", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned()
            + &String::from_utf8_lossy(&out.stderr);
        assert!(
            !said.contains(KEY) && said.contains("a link leads from the project directory"),
            "{tier}: {said}"
        );
    }
}
