//! `--worktree NAME`: the session gets a git worktree of its own as its project, on a branch of this name. Git says
//! what there is, `Plan` decides, and git makes the worktree. Nothing is removed.

use crate::cli::{RunFlags, SessionFlags};
use crate::cli_error::CliError;
use crate::context::real_dir;
use crate::own_git::{check_out, run_git};
use protocol::hidden::on_screen;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tool_specs::WORKTREES;

/// Most characters of a name.
const MOST: usize = 60;

/// Git's reason for the lock of a worktree that it makes, and agentd's.
const INITIALIZING: &[u8] = b"initializing";
const MAKING: &str = "agentd makes it";

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
}

/// A working tree of the repository.
#[derive(Debug, Default, PartialEq, Eq)]
struct Worktree {
    path: PathBuf,
    branch: Option<String>,
    is_bare: bool,
    /// It is being made, or its making was interrupted.
    is_unfinished: bool,
}

impl Repository {
    fn around(project: &Path) -> Result<Self, CliError> {
        let place = git(project, &["rev-parse", "--is-inside-work-tree", "--show-prefix"])
            .map_err(|why| no_repository(project, &why))?;
        let mut lines = place.splitn(2, |byte| *byte == b'\n');
        let (inside, prefix) = (lines.next(), lines.next().unwrap_or_default());
        let prefix = path(prefix.strip_suffix(b"\n").unwrap_or(prefix));
        let main = worktrees_of(project)?.into_iter().next();
        let main = main.filter(|main| !main.is_bare && inside == Some(b"true"));
        // Of a submodule, and of a git directory elsewhere, git names a directory without a working tree.
        let main = main.filter(|main| main.path.join(".git").exists());
        let Some(Worktree { path: root, .. }) = main else {
            return Err(CliError::user(format!(
                "git names no main working tree with a `.git` for the repository of {}, which --worktree needs",
                project.display()
            ))
            .hint(
                "in a bare repository, in a submodule and where the git directory lies elsewhere, make the worktree \
                 with `git worktree add PATH` and open it with `agentd -C PATH`",
            ));
        };
        // Without the slash at its end.
        let prefix = prefix.components().collect();
        Ok(Self { project: project.to_owned(), root, prefix })
    }

    /// The directory of the worktree that is the project's.
    fn enter(&self, name: &str) -> Result<PathBuf, CliError> {
        let folder = self.root.join(WORKTREES);
        let place = folder.join(name);
        let _turn = take_turn(&folder)?;
        let plan = self.plan(name, &place)?;
        self.make(plan, name, &place)?;
        let shown = on_screen(&place.display().to_string());
        // A link or another repository in its place would lead elsewhere.
        if !is_real(&place) || !sandbox::is_worktree_of(&place, &self.root) {
            let root = self.root.display();
            return Err(CliError::user(format!("{shown} is no git worktree of {root}")));
        }
        let within: PathBuf = place.components().chain(self.prefix.components()).collect();
        let opens_root = format!("`agentd -C {shown}` opens its root");
        if !within.is_dir() {
            return Err(self.no_directory(name).hint(opens_root));
        }
        // The branch's own links may lead anywhere.
        if !is_real(&within) {
            return Err(CliError::user(format!(
                "{} leads out of its place by a link of the worktree",
                on_screen(&within.display().to_string())
            ))
            .hint(opens_root));
        }
        // A closed standard error is not an error.
        let _ = writeln!(
            io::stderr(),
            "agentd: the session works in the worktree {shown}, {}; `git worktree remove {shown}` removes it",
            plan.in_words(name)
        );
        Ok(within)
    }

    fn plan(&self, name: &str, place: &Path) -> Result<Plan, CliError> {
        let reference = format!("refs/heads/{name}");
        let branch = match git(&self.project, &["show-ref", "--quiet", "--verify", &reference]) {
            Ok(_) => Branch::There,
            Err(_) => Branch::Absent,
        };
        let found = match fs::symlink_metadata(place) {
            Ok(_) => AtPlace::Something,
            Err(_) => AtPlace::Nothing,
        };
        Plan::of(name, place, &worktrees_of(&self.project)?, branch, found)
            .map_err(|refusal| CliError::user(refusal.message).hint(refusal.way_on))
    }

    /// Makes the worktree, unless it is there. It is locked until it has all its files.
    fn make(&self, plan: Plan, name: &str, place: &Path) -> Result<(), CliError> {
        let (Some(words), Some(commit)) = (plan.git_words(name, place), plan.commit(name)) else {
            return Ok(());
        };
        if !self.prefix.as_os_str().is_empty() {
            let mut directory = OsString::from(format!("{commit}:"));
            directory.push(&self.prefix);
            let words = [OsStr::new("cat-file"), OsStr::new("-t"), &directory];
            if run_git(&self.project, &words).ok().as_deref() != Some(b"tree\n") {
                let root = on_screen(&self.root.display().to_string());
                let hint = format!("`agentd -C {root} --worktree {name}` opens its root");
                return Err(self.no_directory(name).hint(hint));
            }
        }
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        run_git(&self.project, &words)?;
        let shown = on_screen(&place.display().to_string());
        check_out(place).map_err(|error| {
            error.hint(format!(
                "{shown} is half made. `git -C {shown} reset --hard && git worktree unlock {shown}` completes it with \
                 all that the repository's settings name, such as the server of a partial clone; \
                 `git worktree remove -f -f {shown}` removes it"
            ))
        })?;
        let words = [OsStr::new("worktree"), OsStr::new("unlock"), place.as_os_str()];
        run_git(&self.project, &words).map(drop)
    }

    fn no_directory(&self, name: &str) -> CliError {
        let prefix = on_screen(&self.prefix.display().to_string());
        CliError::user(format!("the branch {name} has no directory {prefix}"))
    }
}

/// No part of it is a link.
fn is_real(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path)
}

fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_owned()).into()
}

fn worktrees_of(project: &Path) -> Result<Vec<Worktree>, CliError> {
    git(project, &["worktree", "list", "--porcelain", "-z"]).map(|list| read_list(&list))
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
            (Some(Worktree { is_unfinished: true, .. }), AtPlace::Something) => Err(Refusal {
                message: format!(
                    "the worktree {shown} is being made, or its making was interrupted"
                ),
                way_on: format!(
                    "`git worktree remove -f -f {shown}` removes an interrupted one, and --worktree makes it again"
                ),
            }),
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

    /// None where nothing is to be made.
    fn git_words(self, name: &str, place: &Path) -> Option<Vec<OsString>> {
        // Git takes a locked one again only with two.
        let again = match self {
            Self::Reuse => return None,
            Self::Add | Self::AddWithBranch => None,
            Self::AddAgain | Self::AddAgainWithBranch => Some(["-f", "-f"]),
        };
        let (place, word) = (place.as_os_str().to_owned(), |word: &str| OsString::from(word));
        let end = match self.is_new() {
            true => vec![word("-b"), word(name), place, word("HEAD")],
            false => vec![place, word(name)],
        };
        let words = ["worktree", "add", "--quiet", "--no-checkout", "--lock", "--reason", MAKING];
        let words = words.into_iter().chain(again.into_iter().flatten());
        Some(words.map(OsString::from).chain(end).collect())
    }

    fn is_new(self) -> bool {
        match self {
            Self::Reuse | Self::Add | Self::AddAgain => false,
            Self::AddWithBranch | Self::AddAgainWithBranch => true,
        }
    }

    /// The commit of a worktree that is to be made.
    fn commit(self, name: &str) -> Option<String> {
        match self {
            Self::Reuse => None,
            Self::Add | Self::AddAgain => Some(format!("refs/heads/{name}")),
            Self::AddWithBranch | Self::AddAgainWithBranch => Some("HEAD".to_owned()),
        }
    }

    fn in_words(self, name: &str) -> String {
        match self.is_new() {
            false => format!("on the branch {name}"),
            true => format!("on the new branch {name}"),
        }
    }
}

/// The working trees in the list that git prints, with zero bytes between the fields.
fn read_list(list: &[u8]) -> Vec<Worktree> {
    let mut all: Vec<Worktree> = Vec::new();
    for field in list.split(|byte| *byte == 0) {
        if let Some(found) = field.strip_prefix(b"worktree ") {
            all.push(Worktree { path: path(found), ..Worktree::default() });
        } else if let Some(last) = all.last_mut() {
            last.is_bare |= field == b"bare";
            let reason = field.strip_prefix(b"locked ");
            last.is_unfinished |=
                reason.is_some_and(|it| it == INITIALIZING || it == MAKING.as_bytes());
            if let Some(branch) = field.strip_prefix(b"branch refs/heads/") {
                last.branch = Some(String::from_utf8_lossy(branch).into_owned());
            }
        }
    }
    all
}

/// Waits for others that make a worktree here, and has them wait until the result is dropped.
fn take_turn(folder: &Path) -> Result<File, CliError> {
    prepare(folder)?;
    let failed = |error: io::Error| {
        CliError::user(format!("{} cannot be locked: {error}", folder.display()))
    };
    let turn = File::open(folder).map_err(failed)?;
    match turn.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let _ = writeln!(
                io::stderr(),
                "agentd: waits for another process that makes a worktree here"
            );
            turn.lock().map_err(failed)?;
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    Ok(turn)
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

fn git(directory: &Path, words: &[&str]) -> Result<Vec<u8>, CliError> {
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    run_git(directory, &words)
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
                    branch refs/heads/x\0\0worktree /p/.worktrees/y\0HEAD 1\0detached\0locked by hand\0\0\
                    worktree /p/.worktrees/u\0branch refs/heads/u\0locked initializing\0\0\
                    worktree /p/.worktrees/v\0branch refs/heads/v\0locked agentd makes it\0\0";
        let all = read_list(list.as_bytes());
        assert_eq!(all.len(), 5, "{all:?}");
        assert!(read_list(b"worktree /b.git\0bare\0\0")[0].is_bare);
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
            ("u", There, Something, "its making was interrupted"),
            ("v", There, Something, "its making was interrupted"),
            ("z", Absent, Something, "is no worktree"),
        ] {
            let refusal = plan(name, branch, found).unwrap_err();
            assert!(refusal.message.contains(why), "{name}: {refusal:?}");
        }
        let words = |plan: Plan| {
            let words = plan.git_words("z", Path::new("/w"))?;
            Some(words.join(OsStr::new(" ")).into_string().unwrap())
        };
        assert_eq!(words(Plan::Reuse), None);
        let add = "worktree add --quiet --no-checkout --lock --reason agentd makes it";
        assert_eq!(words(Plan::Add).unwrap(), format!("{add} /w z"));
        assert_eq!(words(Plan::AddAgainWithBranch).unwrap(), format!("{add} -f -f -b z /w HEAD"));
    }
}
