//! Skills and instructions, from real files, good and bad.

use super::shelf::Shelf;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn skill(root: &Path, place: &str, name: &str, text: &str) {
    let directory = root.join(place).join(name);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("SKILL.md"), text).unwrap();
}

fn plain(description: &str, body: &str) -> String {
    format!("---\ndescription: {description}\n---\n{body}\n")
}

#[test]
fn a_project_s_skill_comes_before_a_person_s_of_the_same_name() {
    let shelf = Shelf::new();
    let (project, home) = (shelf.project("a"), shelf.home());
    skill(&home, ".claude/skills", "both", &plain("the person's", "person"));
    skill(&home, ".agents/skills", "own", &plain("only the person's", "own"));
    skill(&project, ".claude/skills", "both", &plain("the project's other", "other"));
    skill(&project, ".agents/skills", "both", &plain("the project's", "project"));
    let mut store = shelf.store("a", "s");
    let list = store.call("skill_list", json!({})).text;
    assert_eq!(list, "both (project): the project's\nown (user): only the person's\n");
    let body = store.call("skill_activate", json!({"name": "both"})).text;
    assert!(body.ends_with("\n\nproject\n") && body.contains(".agents/skills/both"), "{body}");
    let elsewhere = shelf.store("b", "s").call("skill_list", json!({})).text;
    assert!(elsewhere.contains("both (user): the person's"), "{elsewhere}");
}

#[test]
fn arguments_stand_where_the_skill_says_or_behind_it() {
    let shelf = Shelf::new();
    let project = shelf.project("a");
    skill(&project, ".agents/skills", "in", &plain("d", "Fix $ARGUMENTS, then $ARGUMENTS."));
    skill(&project, ".agents/skills", "behind", &plain("d", "Fix it."));
    skill(&project, ".agents/skills", "words", &plain("d", "From $ARGUMENTS[0] to $2: !`id`."));
    let mut store = shelf.store("a", "s");
    let mut said = |name: &str, arguments: &str| {
        store.call("skill_activate", json!({"name": name, "arguments": arguments})).text
    };
    assert!(said("in", "a b").ends_with("\nFix a b, then a b.\n"));
    assert!(said("words", "'a b' c").ends_with("\nFrom a b to c: !`id`.\n"));
    let long = "x".repeat(600_000);
    assert!(said("in", &long).contains("\"in\" cannot be used"), "twice is too long");
    assert!(said("behind", "a b").ends_with("\nFix it.\n\nArguments: a b\n"));
    assert!(said("behind", "").ends_with("\nFix it.\n"));
    let none = store.call("skill_activate", json!({"name": "nope"}));
    assert_eq!(none.code.as_deref(), Some("not_found"));
    assert!(none.text.contains("There are: behind, in, words."), "{none:?}");
}

#[test]
fn a_skill_for_people_alone_is_kept_from_the_model_and_one_for_the_model_from_people() {
    let shelf = Shelf::new();
    let project = shelf.project("a");
    let keyed = |key: &str| format!("---\ndescription: d\n{key}\n---\nBody.\n");
    skill(&project, ".claude/skills", "ours", &keyed("disable-model-invocation: true"));
    skill(&project, ".claude/skills", "its", &keyed("user-invocable: false"));
    skill(&project, ".claude/skills", "all", &keyed("user-invocable: true"));
    let mut store = shelf.store("a", "s");
    assert_eq!(store.call("skill_list", json!({})).text, "all (project): d\nits (project): d\n");
    let refused = store.call("skill_activate", json!({"name": "ours"}));
    assert_eq!(refused.code.as_deref(), Some("not_found"));
    let places = prompts::PromptPlaces { project, ..Default::default() };
    let list = prompts::PromptList::read(&places);
    let names: Vec<&str> = list.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["all", "ours"]);
}

#[test]
fn what_is_no_skill_is_named_and_hides_no_other() {
    let shelf = Shelf::new();
    let project = shelf.project("a");
    let place = project.join(".agents/skills");
    skill(&project, ".agents/skills", "good", &plain("fine", "fine"));
    skill(&project, ".agents/skills", "frontless", "no front\n");
    skill(&project, ".agents/skills", "nameless", "---\nname: a/b\ndescription: x\n---\n");
    skill(&project, ".agents/skills", "silent", "---\nname: silent\n---\n");
    fs::create_dir_all(place.join("binary")).unwrap();
    fs::write(place.join("binary/SKILL.md"), b"---\n\xff\xfe\n---\n").unwrap();
    fs::create_dir_all(place.join("fifo")).unwrap();
    mkfifo(&place.join("fifo/SKILL.md"), Mode::S_IRWXU).unwrap();
    fs::create_dir_all(place.join("directory/SKILL.md")).unwrap();
    fs::create_dir_all(place.join("dangling")).unwrap();
    symlink("/nonexistent", place.join("dangling/SKILL.md")).unwrap();
    fs::create_dir_all(place.join("empty")).unwrap();
    fs::write(place.join("a file"), "x").unwrap();
    let mut store = shelf.store("a", "s");
    let list = store.call("skill_list", json!({})).text;
    assert!(list.starts_with("good (project): fine\n"), "{list}");
    for name in ["frontless", "nameless", "silent", "binary", "fifo", "directory", "dangling"] {
        let named = list.lines().any(|line| {
            line.starts_with("[not usable: ") && line.contains(&format!("skills/{name}: "))
        });
        assert!(named, "{name} is not named: {list}");
    }
    assert_eq!(list.lines().count(), 8, "{list}");
    let (told, troubles) = store.foreword();
    assert!(told.contains("- good: fine\n"), "{told}");
    assert_eq!(troubles.len(), 7, "{troubles:?}");
}

#[test]
fn of_many_skills_some_are_told_first_all_listed_and_those_not_looked_at_counted() {
    let shelf = Shelf::new();
    let project = shelf.project("a");
    let add = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            skill(&project, ".agents/skills", &format!("s{number:03}"), &plain("fits", "body"));
        }
    };
    add(0..40);
    let mut store = shelf.store("a", "s");
    let (told, _) = store.foreword();
    assert!(told.ends_with("- s039: fits\n"), "all of forty: {told}");
    add(40..200);
    let (told, troubles) = store.foreword();
    assert!(told.ends_with("- s039: fits\n- … and 160 more; see skill_list\n"), "{told}");
    assert_eq!(troubles, Vec::<String>::new());
    let list = store.call("skill_list", json!({})).text;
    assert!(list.ends_with("s199 (project): fits\n") && list.lines().count() == 200, "{list}");
    let beyond = json!({"name": "s150"});
    assert!(!store.call("skill_activate", beyond).is_error, "told first or not");
    add(200..203);
    let list = store.call("skill_list", json!({})).text;
    let left = "skills: 3 of its entries were not read]\n";
    assert!(list.ends_with(left) && !list.contains("s200"), "{list}");
    let (_, troubles) = store.foreword();
    assert!(troubles.len() == 1 && troubles[0].contains("3 of its entries"), "{troubles:?}");
}

#[test]
fn a_project_s_instructions_come_first_and_one_file_of_them() {
    let shelf = Shelf::new();
    let project = shelf.project("a");
    assert_eq!(shelf.store("a", "s").foreword(), (String::new(), Vec::new()));
    fs::write(project.join("CLAUDE.md"), "Use spaces.\n").unwrap();
    let (told, _) = shelf.store("a", "s").foreword();
    assert!(told.contains("from its CLAUDE.md") && told.ends_with("Use spaces.\n"), "{told}");
    fs::write(project.join("AGENTS.md"), "Use tabs.\n").unwrap();
    let (told, _) = shelf.store("a", "s").foreword();
    assert!(told.contains("Use tabs.") && !told.contains("spaces"), "{told}");
    fs::write(project.join("AGENTS.md"), "é".repeat(40_000)).unwrap();
    let (told, _) = shelf.store("a", "s").foreword();
    assert!(
        told.contains("é\n[… 14464 bytes more are left out …]"),
        "{}",
        &told[told.len() - 90..]
    );
    fs::remove_file(project.join("AGENTS.md")).unwrap();
    mkfifo(&project.join("AGENTS.md"), Mode::S_IRWXU).unwrap();
    let (told, troubles) = shelf.store("a", "s").foreword();
    assert!(told.contains("Use spaces."), "the other one holds: {told}");
    assert_eq!(troubles, ["AGENTS.md of the project is not followed: it is no regular file"]);
}

#[test]
fn a_link_is_followed_to_such_a_text_only() {
    let shelf = Shelf::new();
    let project = shelf.project("a");
    fs::write(project.join(".env"), "---\ndescription: x\n---\nKEY=hidden\n").unwrap();
    fs::write(project.join("CLAUDE.md"), "Use spaces.\n").unwrap();
    symlink("CLAUDE.md", project.join("AGENTS.md")).unwrap();
    let (told, troubles) = shelf.store("a", "s").foreword();
    assert!(told.contains("from its AGENTS.md") && told.ends_with("Use spaces.\n"), "{told}");
    assert!(troubles.is_empty(), "{troubles:?}");
    // What it leads to may be what nobody may read.
    fs::remove_file(project.join("AGENTS.md")).unwrap();
    symlink(".env", project.join("AGENTS.md")).unwrap();
    let skill = project.join(".agents/skills/peek");
    fs::create_dir_all(&skill).unwrap();
    symlink("../../../.env", skill.join("SKILL.md")).unwrap();
    let mut store = shelf.store("a", "s");
    let (told, troubles) = store.foreword();
    assert!(!told.contains("hidden") && told.contains("from its CLAUDE.md"), "{told}");
    assert_eq!(troubles.len(), 2, "{troubles:?}");
    assert!(troubles[0].contains("AGENTS.md") && troubles[0].contains(".env"), "{troubles:?}");
    let activated = store.call("skill_activate", json!({"name": "peek"})).text;
    assert!(activated.contains("[not_found]") && !activated.contains("hidden"), "{activated}");
}
