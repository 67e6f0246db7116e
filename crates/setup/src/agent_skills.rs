//! The texts of skills that an agent is given at its start. Pure. Used where a sub-agent's session is
//! specified.

use prompts::{FoundSkills, SkillCallers};

/// Most skills of one agent.
const MOST: usize = 20;
/// Most bytes of their texts together: they go with each request for the session.
const MOST_BYTES: usize = 256 << 10;
/// Most names in an error.
const NAMED: usize = 20;

/// The texts, each once.
///
/// # Errors
/// The skill that cannot be given, and why.
pub(crate) fn texts(found: &FoundSkills, names: &[String]) -> Result<String, String> {
    let mut given: Vec<&str> = Vec::new();
    let mut all = String::new();
    for name in names.iter().map(|name| name.trim()) {
        if given.contains(&name) {
            continue;
        }
        let shown = protocol::hidden::line(name, 64);
        if given.len() == MOST {
            return Err(format!(
                "{shown:?} is one skill more than the {MOST} that an agent may have"
            ));
        }
        let skill = found.skills.get(name).ok_or_else(|| missing(found, name, &shown))?;
        if skill.callers == SkillCallers::Person {
            return Err(format!("{shown:?} is for you alone, by `disable-model-invocation`"));
        }
        let body = match &skill.plugin_root {
            Some(root) => prompts::put_plugin_root(&skill.body, root),
            None => skill.body.clone(),
        };
        let (place, text) = (skill.directory.display(), body.trim());
        all.push_str(&format!("\n\n# Skill {name}\n\nIts files are in {place}.\n\n{text}"));
        if all.len() > MOST_BYTES {
            let most = MOST_BYTES >> 10;
            return Err(format!("with {shown:?} its skills are longer than {most} KiB together"));
        }
        given.push(name);
    }
    Ok(all)
}

fn missing(found: &FoundSkills, name: &str, shown: &str) -> String {
    let of_name = |trouble: &&String| !name.is_empty() && trouble.contains(&format!("/{name}: "));
    if let Some(trouble) = found.troubles.iter().find(of_name) {
        return format!("the skill {shown:?} cannot be used: {trouble}");
    }
    let known: Vec<_> = found.skills.keys().map(String::as_str).take(NAMED).collect();
    let more = match found.skills.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there is no skill {shown:?}; there are: {}{more}", known.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    /// A project with these skills, each a name and a text.
    fn project(skills: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in skills {
            let place = dir.path().join(".claude/skills").join(name);
            fs::create_dir_all(&place).unwrap();
            let front = format!("---\nname: {name}\ndescription: Does it.\n---\n");
            fs::write(place.join("SKILL.md"), format!("{front}{text}\n")).unwrap();
        }
        dir
    }

    fn texts_of(dir: &tempfile::TempDir, names: &[&str]) -> Result<String, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        texts(&prompts::find_skills(dir.path(), None, &[]), &names)
    }

    #[test]
    fn each_skill_is_given_once_and_within_bounds() {
        let long = "x".repeat(200 << 10);
        let dir = project(&[("one", "First."), ("long", &long), ("longer", &long)]);
        let given = texts_of(&dir, &["one", " one ", "one"]).unwrap();
        assert_eq!((given.matches("# Skill one").count(), given.matches("First.").count()), (1, 1));
        assert!(texts_of(&dir, &["long"]).is_ok());
        let why = texts_of(&dir, &["long", "longer"]).unwrap_err();
        assert!(why.contains("\"longer\"") && why.contains("256 KiB"), "{why}");
        let names: Vec<String> = (0..=MOST).map(|number| format!("s{number}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
        let dir = project(&many);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(texts_of(&dir, &names[..MOST]).is_ok());
        assert!(texts_of(&dir, &names).unwrap_err().contains("\"s20\" is one skill more"));
    }

    #[test]
    fn a_skill_that_cannot_be_used_is_named_with_its_reason() {
        let dir = project(&[("one", "First.")]);
        let bad = dir.path().join(".claude/skills/bad");
        fs::create_dir_all(&bad).unwrap();
        fs::write(bad.join("SKILL.md"), "no front matter").unwrap();
        let why = texts_of(&dir, &["bad"]).unwrap_err();
        assert!(why.contains("cannot be used") && why.contains("does not begin with"), "{why}");
        assert!(texts_of(&dir, &["none"]).unwrap_err().contains("there are: one"));
        // Neither a directory nor a file of a project's skill leads out of it.
        let outside = project(&[("far", "Outside.")]);
        let far = outside.path().join(".claude/skills/far");
        std::os::unix::fs::symlink(&far, dir.path().join(".claude/skills/far")).unwrap();
        let near = dir.path().join(".claude/skills/near");
        fs::create_dir_all(&near).unwrap();
        std::os::unix::fs::symlink(far.join("SKILL.md"), near.join("SKILL.md")).unwrap();
        for name in ["far", "near"] {
            let why = texts_of(&dir, &[name]).unwrap_err();
            assert!(why.contains("outside of the project"), "{why}");
        }
        assert!(texts_of(&outside, &["far"]).is_ok());
    }
}
