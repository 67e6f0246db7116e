//! `--worktree NAME`: the session gets a git worktree of its own as its project, on a branch of this name. Git says
//! what there is, `Plan` decides, and git makes the worktree. Nothing is removed.

use crate::cli::{RunFlags, SessionFlags};
use crate::cli_error::CliError;
use crate::context::real_dir;
use client::git_output;
use protocol::hidden::on_screen;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tool_specs::WORKTREES;

/// Most characters of a name.
const MOST: usize = 60;

/// The flags of a session with the worktree of this name as the project, which is made where it is not there.
pub(crate) fn entered(
    mut flags: SessionFlags,
    name: Option<&str>,
) -> Result<SessionFlags, CliError> {
    let Some(name) = name else { return Ok(flags) };
    check_name(name)?;
    let named = flags.project.as_deref().unwrap_or(Path::new("."));
    let project = real_dir(named, "the project directory")?;
    let repository = Repository::around(&project)?;
    flags.project = Some(repository.enter(name)?);
    Ok(flags)
}

/// The same for a run.
pub(crate) fn entered_by_run(mut flags: RunFlags) -> Result<RunFlags, CliError> {
    flags.session = entered(flags.session, flags.worktree.as_deref())?;
    Ok(flags)
}

/// A name is the last part of a path and the name of a branch.
fn check_name(name: &str) -> Result<(), CliError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_good = name.chars().all(is_plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.ends_with('.')
        && !name.ends_with(".lock")
        && !name.contains("..")
        && name.len() <= MOST;
    match is_good {
        true => Ok(()),
        false => Err(CliError::user(format!("{name:?} cannot name a worktree and its branch")).hint(format!(
            "use at most {MOST} letters, digits, -, _ and single dots, and begin with a letter or a digit"
        ))),
    }
}

/// A repository as git describes it.
struct Repository {
    /// The directory of the session, real.
    project: PathBuf,
    /// Its main working tree.
    root: PathBuf,
    /// The way from the root of a working tree to the project; empty at the root.
    prefix: PathBuf,
    worktrees: Vec<Worktree>,
}

/// A working tree of the repository.
#[derive(Debug, Default, PartialEq, Eq)]
struct Worktree {
    path: PathBuf,
    branch: Option<String>,
    is_bare: bool,
}

impl Repository {
    fn around(project: &Path) -> Result<Self, CliError> {
        let place = git(project, &["rev-parse", "--is-inside-work-tree", "--show-prefix"])
            .map_err(|why| no_repository(project, &why))?;
        let (inside, prefix) = place.split_once('\n').unwrap_or((&place, ""));
        let worktrees = read_list(&git(project, &["worktree", "list", "--porcelain", "-z"])?);
        let main = worktrees.first().filter(|main| !main.is_bare && inside == "true");
        // Of a submodule git names a directory without a working tree.
        let main = main.filter(|main| main.path.join(".git").exists());
        let Some(main) = main else {
            return Err(CliError::user(format!(
                "the git repository of {} has no main working tree, which --worktree needs",
                project.display()
            ))
            .hint(
                "in a bare repository and in a submodule, make the worktree with `git worktree add PATH` and open \
                 it with `agentd -C PATH`",
            ));
        };
        let (project, root) = (project.to_owned(), main.path.clone());
        Ok(Self { project, root, prefix: prefix.trim_end_matches('\n').into(), worktrees })
    }

    /// The directory of the worktree that is the project's.
    fn enter(&self, name: &str) -> Result<PathBuf, CliError> {
        let folder = self.root.join(WORKTREES);
        let place = folder.join(name);
        let reference = format!("refs/heads/{name}");
        let branch = match git(&self.project, &["show-ref", "--quiet", "--verify", &reference]) {
            Ok(_) => Branch::There,
            Err(_) => Branch::Absent,
        };
        let found = match fs::symlink_metadata(&place) {
            Ok(_) => AtPlace::Something,
            Err(_) => AtPlace::Nothing,
        };
        let plan = Plan::of(name, &place, &self.worktrees, branch, found)
            .map_err(|refusal| CliError::user(refusal.message).hint(refusal.way_on))?;
        if let Some(words) = plan.git_words(name, &place) {
            prepare(&folder)?;
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            run_git(&self.project, &words)?;
        }
        // A link or another repository in its place would lead elsewhere.
        let is_real = place.canonicalize().is_ok_and(|real| real == place);
        if !is_real || !sandbox::is_worktree_of(&place, &self.root) {
            return Err(CliError::user(format!(
                "{} is no git worktree of {}",
                place.display(),
                self.root.display()
            )));
        }
        let shown = on_screen(&place.display().to_string());
        // A closed standard error is not an error.
        let _ = writeln!(
            io::stderr(),
            "agentd: the session works in the worktree {shown}, {}; `git worktree remove {shown}` removes it",
            plan.in_words(name)
        );
        let within = place.join(&self.prefix);
        match within.is_dir() {
            true => Ok(within),
            false => Err(CliError::user(format!(
                "the branch {name} has no directory {}",
                self.prefix.display()
            ))
            .hint(format!("`agentd -C {}` opens its root", place.display()))),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Branch {
    There,
    Absent,
}

/// What is in the place of the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtPlace {
    Something,
    Nothing,
}

/// How the worktree comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// It is there.
    Reuse,
    /// On a branch that is there.
    Add,
    /// The same, where git still knows a worktree that was deleted.
    AddAgain,
    /// On a new branch, at the commit of the project.
    AddWithBranch,
    /// The same, where git still knows a worktree that was deleted.
    AddAgainWithBranch,
}

/// Why there can be no such worktree.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    message: String,
    way_on: String,
}

impl Plan {
    fn of(
        name: &str,
        place: &Path,
        worktrees: &[Worktree],
        branch: Branch,
        found: AtPlace,
    ) -> Result<Self, Refusal> {
        let shown = place.display();
        let elsewhere =
            worktrees.iter().find(|it| it.branch.as_deref() == Some(name) && it.path != place);
        if let Some(other) = elsewhere {
            let path = other.path.display();
            return Err(Refusal {
                message: format!("the branch {name} is checked out in {path}"),
                way_on: format!("`agentd -C {path}` works there; or give another name"),
            });
        }
        let known = worktrees.iter().find(|it| it.path == place);
        match (known, found) {
            (Some(known), AtPlace::Something) => match &known.branch {
                Some(own) if own == name => Ok(Self::Reuse),
                other => Err(Refusal {
                    message: match other {
                        Some(other) => format!("the worktree {shown} is on the branch {other}"),
                        None => format!("the worktree {shown} is on no branch"),
                    },
                    way_on: format!(
                        "`agentd -C {shown}` works there as it is; or give another name"
                    ),
                }),
            },
            (None, AtPlace::Something) => Err(Refusal {
                message: format!("{shown} is there and is no worktree of this repository"),
                way_on: "move it away, or give another name".to_owned(),
            }),
            (known, AtPlace::Nothing) => Ok(match (known.is_some(), branch) {
                (false, Branch::There) => Self::Add,
                (true, Branch::There) => Self::AddAgain,
                (false, Branch::Absent) => Self::AddWithBranch,
                (true, Branch::Absent) => Self::AddAgainWithBranch,
            }),
        }
    }

    fn git_words(self, name: &str, place: &Path) -> Option<Vec<String>> {
        let (again, is_new) = match self {
            Self::Reuse => return None,
            Self::Add => (None, false),
            Self::AddAgain => (Some("-f"), false),
            Self::AddWithBranch => (None, true),
            Self::AddAgainWithBranch => (Some("-f"), true),
        };
        let place = place.to_string_lossy();
        let end = if is_new { vec!["-b", name, &*place, "HEAD"] } else { vec![&*place, name] };
        let words = ["worktree", "add", "--quiet"].into_iter().chain(again).chain(end);
        Some(words.map(str::to_owned).collect())
    }

    fn in_words(self, name: &str) -> String {
        match self {
            Self::Reuse | Self::Add | Self::AddAgain => format!("on the branch {name}"),
            Self::AddWithBranch | Self::AddAgainWithBranch => format!("on the new branch {name}"),
        }
    }
}

/// The working trees in the list that git prints, with zero bytes between the fields.
fn read_list(list: &str) -> Vec<Worktree> {
    let mut all: Vec<Worktree> = Vec::new();
    for field in list.split('\0') {
        if let Some(path) = field.strip_prefix("worktree ") {
            all.push(Worktree { path: path.into(), ..Worktree::default() });
        } else if let Some(last) = all.last_mut() {
            last.is_bare |= field == "bare";
            if let Some(branch) = field.strip_prefix("branch refs/heads/") {
                last.branch = Some(branch.to_owned());
            }
        }
    }
    all
}

/// Makes the directory of the worktrees, which git ignores in the main working tree.
fn prepare(folder: &Path) -> Result<(), CliError> {
    let failed = |path: &Path, error: &io::Error| {
        CliError::user(format!("{} cannot be made: {error}", path.display()))
    };
    if folder.is_symlink() {
        return Err(CliError::user(format!(
            "{} is a link; replace it by a directory",
            folder.display()
        )));
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let ignores = folder.join(".gitignore");
    let mut options = fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o644).open(&ignores) {
        Ok(mut file) => file.write_all(b"*\n").map_err(|error| failed(&ignores, &error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(&ignores, &error)),
    }
}

fn no_repository(project: &Path, why: &CliError) -> CliError {
    CliError::user(format!(
        "--worktree needs a git repository, and {} is in none that git can use: {}",
        project.display(),
        why.message()
    ))
    .hint("`git init` makes one; without --worktree the session works in the directory itself")
}

fn git(directory: &Path, words: &[&str]) -> Result<String, CliError> {
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    run_git(directory, &words)
}

/// Runs git without the programs that the repository's settings name, but its filters.
fn run_git(directory: &Path, words: &[&OsStr]) -> Result<String, CliError> {
    let settings = tool_specs::git_words();
    let settings = settings.iter().skip(1).map(OsStr::new);
    let words: Vec<&OsStr> = settings.chain(words.iter().copied()).collect();
    git_output(directory, &words).map_err(|error| {
        CliError::user(if error.kind() == io::ErrorKind::NotFound {
            "git is not installed, or not in PATH".to_owned()
        } else {
            on_screen(&error.to_string())
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path_and_a_branch() {
        for good in ["fix", "fix-2", "v2.1", "a_b", "7"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "x".repeat(61);
        for bad in [
            "", "../x", "-x", ".x", "a/b", "a b", "a..b", "x.lock", "x.", "a~1", "ö", "a\nb", &long,
        ] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn each_state_of_place_and_branch_has_its_plan() {
        let list = "worktree /p\0HEAD 1\0branch refs/heads/main\0\0worktree /p/.worktrees/x\0HEAD 1\0\
                    branch refs/heads/x\0\0worktree /p/.worktrees/y\0HEAD 1\0detached\0\0";
        let all = read_list(list);
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(read_list("worktree /b.git\0bare\0\0")[0].is_bare);
        let plan = |name: &str, branch, found| {
            Plan::of(name, &Path::new("/p/.worktrees").join(name), &all, branch, found)
        };
        use {AtPlace::*, Branch::*};
        assert_eq!(plan("x", There, Something), Ok(Plan::Reuse));
        assert_eq!(plan("x", There, Nothing), Ok(Plan::AddAgain));
        assert_eq!(plan("z", There, Nothing), Ok(Plan::Add));
        assert_eq!(plan("z", Absent, Nothing), Ok(Plan::AddWithBranch));
        assert_eq!(plan("y", Absent, Nothing), Ok(Plan::AddAgainWithBranch));
        for (name, branch, found, why) in [
            ("main", There, Nothing, "checked out in /p"),
            ("y", There, Something, "is on no branch"),
            ("z", Absent, Something, "is no worktree"),
        ] {
            let refusal = plan(name, branch, found).unwrap_err();
            assert!(refusal.message.contains(why), "{name}: {refusal:?}");
        }
        let words = |plan: Plan| plan.git_words("z", Path::new("/w")).map(|words| words.join(" "));
        assert_eq!(words(Plan::Reuse), None);
        assert_eq!(words(Plan::Add).unwrap(), "worktree add --quiet /w z");
        assert_eq!(
            words(Plan::AddAgainWithBranch).unwrap(),
            "worktree add --quiet -f -b z /w HEAD"
        );
    }
}
