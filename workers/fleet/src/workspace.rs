//! A task's workspace: the repository at its base commit, snapshots after each call that may have changed
//! it, and at the end a patch and a branch. All by git, in a repository of its own beside the workspace, so
//! that nothing which the agent writes into the workspace has a say.
//!
//! Files that git ignores are in no snapshot. No file of a snapshot comes through a link: `run` has git in a cage
//! that has the task's directory alone, and what is opened here is opened beneath the workspace, by a way without
//! links.

use crate::error::FleetError;
use crate::run::{Git, GitFile, git_plain};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A snapshot that failed sooner is tried again, so often.
const AGAIN: Duration = Duration::from_secs(30);
const TRIES: usize = 5;

/// A snapshot, as the database keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The base commit.
    pub(crate) base: String,
    /// The tree.
    pub(crate) tree: String,
    /// A file with the objects that the base commit and the earlier snapshots lack. The next snapshot
    /// overwrites it.
    pub(crate) pack: PathBuf,
}

/// Paths by what a snapshot does with them.
#[derive(Debug, Default)]
struct Changes<'a> {
    /// Not in the workspace any more, or not as a file.
    gone: Vec<&'a [u8]>,
    /// Files that can be read, and links.
    taken: Vec<&'a [u8]>,
}

/// A workspace on this host.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    git: Git,
    repo: String,
    base: String,
    /// The tree of the base commit.
    base_tree: String,
    /// The tree of the last snapshot that is stored.
    tree: String,
    /// The tree that the index has, where that is known.
    indexed: Option<String>,
    /// Where the index has submodules.
    submodules: Vec<PathBuf>,
}

impl Workspace {
    /// Fetches the repository and checks the reference out, below this directory. `base` is the commit of
    /// an earlier host, if there was one.
    pub(crate) async fn prepare(
        place: &Path,
        repo: &str,
        reference: &str,
        base: Option<&str>,
    ) -> Result<Self, FleetError> {
        if place.exists() {
            std::fs::remove_dir_all(place).map_err(FleetError::file(place))?;
        }
        std::fs::create_dir_all(place).map_err(FleetError::file(place))?;
        let git = Git {
            dir: place.join("repository"),
            tree: place.join("workspace"),
            index: place.join("index"),
        };
        let init = ["init", "--quiet", "--bare", "--template="].map(OsStr::new);
        git_plain(&[&init[..], &[git.dir.as_os_str()]].concat(), place).await?;
        run_no_filters(&git)?;
        let wanted = base.unwrap_or(reference);
        let fetch = ["fetch", "--quiet", "--no-recurse-submodules"];
        let fetch = |more: &[&'static str]| [&fetch[..], more].concat();
        let one = [&fetch(&["--no-tags", "--"])[..], &[repo, wanted]].concat();
        if git.run_with_remote(&one).await.is_err() {
            // Some servers give out no commit by its name, and know full references only.
            let all = ["+refs/heads/*:refs/base/*", "+refs/tags/*:refs/tags/*"];
            let all = [&fetch(&["--"])[..], &[repo], &all].concat();
            git.run_with_remote(&all).await?;
            git.run(&["update-ref", "FETCH_HEAD", &resolve(&git, wanted).await?], b"").await?;
        }
        let [base, base_tree] = commit_and_tree(&git, "FETCH_HEAD").await?;
        let branch = git.dir.join("refs/heads/base");
        std::fs::write(&branch, format!("{base}\n")).map_err(FleetError::file(&branch))?;
        // A repository of its own for the agent: with history, and without this one's objects to write to.
        let from = git.dir.as_os_str();
        let words = ["-c", "core.splitIndex=false", "clone", "--quiet", "--no-hardlinks"];
        let words = words.into_iter().chain(["--origin", "origin", "--branch", "base", "--"]);
        let words = words.map(OsStr::new);
        let words: Vec<&OsStr> = words.chain([from, git.tree.as_os_str()]).collect();
        git_plain(&words, place).await?;
        let config = git.tree.join(".git/config");
        std::fs::read_to_string(&config)
            .and_then(|text| std::fs::write(&config, with_origin(&text, repo)))
            .map_err(FleetError::file(&config))?;
        // It knows the files that were written just now: the first snapshot reads none of them again.
        let index = git.tree.join(".git/index");
        std::fs::copy(&index, &git.index).map_err(FleetError::file(&index))?;
        let submodules = match git.tree.join(".gitmodules").symlink_metadata().is_ok() {
            true => submodules(&git).await?,
            false => Vec::new(),
        };
        let (tree, indexed) = (base_tree.clone(), Some(base_tree.clone()));
        Ok(Self { git, repo: repo.to_owned(), base, base_tree, tree, indexed, submodules })
    }

    /// Where the agent works.
    pub(crate) fn tree(&self) -> &Path {
        &self.git.tree
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// A workspace that this host has had all the time. `tree` is that of the newest snapshot in the
    /// database; the base commit's if there is none.
    pub(crate) async fn reopen(
        place: &Path,
        repo: &str,
        tree: Option<String>,
    ) -> Result<Self, FleetError> {
        let git = Git {
            dir: place.join("repository"),
            tree: place.join("workspace"),
            index: place.join("index"),
        };
        // A git that was killed leaves it.
        let _ = std::fs::remove_file(git.index.with_extension("lock"));
        let [base, base_tree] = commit_and_tree(&git, "refs/heads/base").await?;
        let tree = tree.unwrap_or_else(|| base_tree.clone());
        let submodules = submodules(&git).await?;
        Ok(Self { git, repo: repo.to_owned(), base, base_tree, tree, indexed: None, submodules })
    }

    /// Takes a snapshot. None if nothing changed since the last one that was [`Workspace::stored`].
    ///
    /// Git never looks into a repository inside the workspace, since it would run what that one's settings
    /// name. Such repositories are in no snapshot, and neither are files that cannot be read.
    pub(crate) async fn snapshot(&mut self) -> Result<Option<Snapshot>, FleetError> {
        let began = Instant::now();
        let mut indexed = self.index().await;
        for _ in 1..TRIES {
            // Files can change while git works.
            if indexed.is_err() && began.elapsed() < AGAIN {
                indexed = self.index().await;
            }
        }
        let tree = indexed?;
        if tree == self.tree {
            return Ok(None);
        }
        let objects = format!("{tree}\n^{}\n^{}\n", self.tree, self.base);
        let pack = self.git.index.with_file_name("pack");
        let words = ["pack-objects", "--revs", "--stdout", "--quiet", "--thin"];
        self.git.run_with_file(&words, objects.as_bytes(), GitFile::Output(&pack)).await?;
        Ok(Some(Snapshot { base: self.base.clone(), tree, pack }))
    }

    /// Brings the index to the state of the files, and returns its tree.
    async fn index(&mut self) -> Result<String, FleetError> {
        self.give_up_submodules().await?;
        let words = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"];
        let words = [&words[..], &["--ignore-submodules=dirty"]].concat();
        let status = self.git.run(&words, b"").await?;
        let Changes { gone, taken } = self.changes(&status);
        let tree = match self.indexed.take() {
            Some(tree) if gone.is_empty() && taken.is_empty() => tree,
            _ => {
                // The times of files are a moment behind the clock.
                let begun = SystemTime::now() - Duration::from_secs(1);
                let update = ["update-index", "-z", "--stdin"];
                // Removed paths leave the index first: a file can be in the place of a directory, and a
                // directory in that of a file.
                if !gone.is_empty() {
                    let words = [&update[..1], &["--force-remove"], &update[1..]].concat();
                    self.git.run(&words, &gone.join(&0)).await?;
                }
                if !taken.is_empty() {
                    let words = [&update[..1], &["--add", "--remove"], &update[1..]].concat();
                    self.git.run(&words, &taken.join(&0)).await?;
                }
                let tree = line(self.git.run(&["write-tree"], b"").await?);
                // Git compares seconds, and reads files that are younger than the index: those that were
                // written while it read are among them.
                let index = std::fs::File::options().append(true).open(&self.git.index);
                index
                    .and_then(|index| index.set_modified(begun))
                    .map_err(FleetError::file(&self.git.index))?;
                tree
            }
        };
        self.indexed = Some(tree.clone());
        Ok(tree)
    }

    /// The database has this snapshot: the next one builds on it.
    pub(crate) fn stored(&mut self, tree: String) {
        self.tree = tree;
    }

    /// Takes submodules out of the index that have plain files in their place: git would not see those.
    async fn give_up_submodules(&mut self) -> Result<(), FleetError> {
        let is_plain = |path: &PathBuf| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let Ok(dir) = self.open_beneath(path.as_os_str().as_bytes(), flags) else {
                return false;
            };
            let is_repository = statat(&dir, ".git", rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok();
            let mut entries = Dir::read_from(&dir).into_iter().flatten().flatten();
            !is_repository
                && entries.any(|entry| ![&b"."[..], b".."].contains(&entry.file_name().to_bytes()))
        };
        let (plain, others): (Vec<_>, Vec<_>) = self.submodules.iter().cloned().partition(is_plain);
        if plain.is_empty() {
            return Ok(());
        }
        self.indexed = None;
        let gone: Vec<&[u8]> = plain.iter().map(|path| path.as_os_str().as_bytes()).collect();
        self.git.run(&["update-index", "--force-remove", "-z", "--stdin"], &gone.join(&0)).await?;
        self.submodules = others;
        Ok(())
    }

    /// What the index lacks, by the lines of git-status(1): a letter for the index against the base commit, one
    /// for the files against the index, a space, and the path.
    fn changes<'a>(&self, status: &'a [u8]) -> Changes<'a> {
        let mut changes = Changes::default();
        for line in status.split(|byte| *byte == 0) {
            match line {
                [_, b' ', b' ', ..] => {}
                [_, b'D', b' ', path @ ..] => changes.gone.push(path),
                [_, _, b' ', path @ ..] if self.is_taken(path) => changes.taken.push(path),
                _ => {}
            }
        }
        changes
    }

    /// True for a file that is gone or can be read, and for a link.
    fn is_taken(&self, path: &[u8]) -> bool {
        if path.is_empty() || path.ends_with(b"/") {
            return false;
        }
        let found = self.open_beneath(path, OFlags::PATH | OFlags::NOFOLLOW);
        match found.and_then(fstat).map(|found| FileType::from_raw_mode(found.st_mode)) {
            Ok(FileType::Symlink) | Err(Errno::NOENT) => true,
            // It may be a FIFO by now.
            Ok(FileType::RegularFile) => self
                .open_beneath(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK)
                .is_ok(),
            Ok(_) | Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => false,
            // A filter around agentd does not know the call: git decides in its cage.
            Err(_) => true,
        }
    }

    /// Opens a path of the workspace. A link on the way is an error, also one that just came there.
    fn open_beneath(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let tree = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tree = openat2(CWD, &self.git.tree, tree, Mode::empty(), ResolveFlags::empty())?;
        openat2(tree, path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
    }

    /// Adds the objects of a snapshot, in the order in which they were taken.
    pub(crate) async fn add_pack(&self, pack: &Path) -> Result<(), FleetError> {
        self.git
            .run_with_file(&["index-pack", "--stdin", "--fix-thin"], b"", GitFile::Input(pack))
            .await
    }

    /// Brings the workspace to this tree, of which the objects are here.
    pub(crate) async fn restore(&mut self, tree: &str) -> Result<(), FleetError> {
        self.git.run(&["read-tree", "--reset", "-u", tree], b"").await?;
        tree.clone_into(&mut self.tree);
        self.indexed = Some(tree.to_owned());
        Ok(())
    }

    /// The changes since the base commit.
    pub(crate) async fn patch(&self) -> Result<Vec<u8>, FleetError> {
        if self.tree == self.base_tree {
            return Ok(Vec::new());
        }
        self.git
            .run(
                &[
                    "diff",
                    "--binary",
                    "--no-color",
                    "--no-ext-diff",
                    "--no-textconv",
                    &self.base,
                    &self.tree,
                ],
                b"",
            )
            .await
    }

    /// Makes a commit of the changes and pushes it to this branch of the repository. None if nothing changed.
    pub(crate) async fn push(
        &self,
        branch: &str,
        message: &str,
    ) -> Result<Option<String>, FleetError> {
        if self.tree == self.base_tree {
            return Ok(None);
        }
        let commit = self
            .git
            .run(&["commit-tree", &self.tree, "-p", &self.base], message.as_bytes())
            .await?;
        let commit = line(commit);
        let refspec = format!("+{commit}:refs/heads/{branch}");
        let push = ["push", "--quiet", "--no-verify", "--no-recurse-submodules"];
        let push = [&push[..], &["--", &self.repo, &refspec]].concat();
        self.git.run_with_remote(&push).await?;
        Ok(Some(commit))
    }
}

/// Lets the files be in snapshots as they are. The agent writes `.gitattributes`, which name filters: git would
/// run those of this user, outside of the sandbox and in a directory of the agent's files.
fn run_no_filters(git: &Git) -> Result<(), FleetError> {
    let dir = git.dir.join("info");
    let file = dir.join("attributes");
    std::fs::create_dir_all(&dir)
        .and_then(|()| std::fs::write(&file, "* -filter -working-tree-encoding\n"))
        .map_err(FleetError::file(&file))
}

/// The configuration of a clone with this address of `origin`.
fn with_origin(config: &str, url: &str) -> String {
    let url = url.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let (mut text, mut is_origin) = (String::new(), false);
    for line in config.lines() {
        if line.starts_with('[') {
            is_origin = line == r#"[remote "origin"]"#;
        }
        match is_origin && line.trim_start().starts_with("url = ") {
            true => text.push_str(&format!("\turl = \"{url}\"\n")),
            false => text.extend([line, "\n"]),
        }
    }
    text
}

/// Where the index has submodules.
async fn submodules(git: &Git) -> Result<Vec<PathBuf>, FleetError> {
    let listed = git.run(&["ls-files", "--stage", "-z"], b"").await?;
    let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
    let paths = entries.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
    Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
}

/// The commit of this name, and its tree.
async fn commit_and_tree(git: &Git, name: &str) -> Result<[String; 2], FleetError> {
    let [commit, tree] = ["commit", "tree"].map(|kind| format!("{name}^{{{kind}}}"));
    let found = git.run(&["rev-parse", &commit, &tree], b"").await?;
    let found = String::from_utf8_lossy(&found);
    let mut lines = found.lines().map(str::to_owned);
    Ok(std::array::from_fn(|_| lines.next().unwrap_or_default()))
}

async fn resolve(git: &Git, wanted: &str) -> Result<String, FleetError> {
    for name in [format!("refs/base/{wanted}"), format!("refs/tags/{wanted}"), wanted.to_owned()] {
        let commit = format!("{name}^{{commit}}");
        if let Ok(found) = git.run(&["rev-parse", "--verify", "--quiet", &commit], b"").await {
            return Ok(line(found));
        }
    }
    Err(FleetError::Host(format!("the repository has no branch, tag or commit {wanted:?}")))
}

fn line(output: Vec<u8>) -> String {
    String::from_utf8_lossy(&output).trim().to_owned()
}

/// Where tasks of this host have their workspaces.
pub(crate) fn place_of(work: &Path, session: &str) -> PathBuf {
    work.join(session)
}

/// True if other machines may write to the disk of this directory.
pub(crate) fn is_shared_disk(dir: &Path) -> bool {
    // The numbers of statfs(2): NFS, SMB, CIFS, Ceph, FUSE, Lustre, GPFS, AFS, 9p, OCFS2, GFS2.
    const SHARED: [i64; 12] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x00c3_6400,
        0x6573_5546,
        0x0bd0_0bd0,
        0x4750_4653,
        0x5346_414f,
        0x0102_1997,
        0x7461_636f,
        0x0116_1970,
    ];
    // What cannot be asked is taken for shared.
    rustix::fs::statfs(dir).map_or(true, |found| SHARED.contains(&found.f_type))
}

#[cfg(test)]
#[path = "workspace_link_tests.rs"]
mod link_tests;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    pub(super) async fn repository(at: &Path) {
        let sh = |words: &'static [&'static str]| async move {
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            git_plain(&words, at).await.unwrap();
        };
        fs::create_dir_all(at).unwrap();
        sh(&["init", "--quiet", "-b", "main"]).await;
        fs::write(at.join("a"), "one\n").unwrap();
        fs::write(at.join(".gitignore"), "ignored\n").unwrap();
        sh(&["add", "."]).await;
        sh(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "first"])
            .await;
    }

    /// A directory with a repository.
    pub(super) async fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        repository(&repo).await;
        (dir, repo)
    }

    /// Commits everything in the index of this repository.
    async fn commit(repo: &Path) {
        let words = "-c user.name=t -c user.email=t@t commit --quiet -m more";
        let words: Vec<&OsStr> = words.split(' ').map(OsStr::new).collect();
        git_plain(&words, repo).await.unwrap();
    }

    /// The files of a tree.
    async fn files(of: &Workspace, tree: &str) -> Vec<String> {
        let listed = of.git.run(&["ls-tree", "-r", "--name-only", tree], b"").await.unwrap();
        String::from_utf8(listed).unwrap().lines().map(str::to_owned).collect()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_workspace_has_the_address_of_its_repository() {
        let (dir, repo) = place().await;
        let name = repo.to_str().unwrap();
        let here = Workspace::prepare(&dir.path().join("here"), name, "main", None).await.unwrap();
        let config = here.tree().join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        let odd = "ssh://a@h/it's \"odd\" #1; \\ x";
        for url in [name, odd] {
            fs::write(&config, with_origin(&text, url)).unwrap();
            let words = ["config", "--get-all", "remote.origin.url"].map(OsStr::new);
            assert_eq!(line(git_plain(&words, here.tree()).await.unwrap()), url);
        }
        let other = "[remote \"origin\"]\n\turl = a\n[remote \"b\"]\n\turl = c\n";
        assert_eq!(with_origin(other, "d"), other.replace("= a", "= \"d\""));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn another_host_restores_what_snapshots_hold() {
        let (dir, repo) = place().await;
        let name = repo.to_str().unwrap();
        let mut here =
            Workspace::prepare(&dir.path().join("here"), name, "main", None).await.unwrap();
        assert_eq!(here.snapshot().await.unwrap(), None);
        fs::write(here.tree().join("b"), "two\n").unwrap();
        fs::write(here.tree().join("ignored"), "no\n").unwrap();
        let first = here.snapshot().await.unwrap().unwrap();
        let kept = dir.path().join("first");
        fs::copy(&first.pack, &kept).unwrap();
        // One that was not stored is taken again.
        assert_eq!(here.snapshot().await.unwrap().unwrap().tree, first.tree);
        here.stored(first.tree);
        // A repository inside, whose settings name a program, is not looked into.
        let inner = here.tree().join("inner");
        repository(&inner).await;
        let settings = fs::read_to_string(inner.join(".git/config")).unwrap();
        let evil = "[filter \"evil\"]\n clean = touch ../../../evil\n[core]\n fsmonitor = touch ../../../evil\n";
        fs::write(inner.join(".git/config"), format!("{settings}{evil}")).unwrap();
        fs::write(inner.join(".gitattributes"), "* filter=evil\n").unwrap();
        fs::write(inner.join("a"), "changed\n").unwrap();
        git_plain(&["init", "--quiet", "empty"].map(OsStr::new), here.tree()).await.unwrap();
        fs::remove_file(here.tree().join("a")).unwrap();
        // A driver that the workspace names runs nothing.
        fs::write(here.tree().join(".gitattributes"), "b filter=evil diff=evil\n").unwrap();
        let config = fs::read_to_string(here.tree().join(".git/config")).unwrap();
        let evil =
            "[filter \"evil\"]\n clean = touch ../../evil\n[core]\n fsmonitor = touch ../../evil\n";
        fs::write(here.tree().join(".git/config"), format!("{config}{evil}")).unwrap();
        fs::write(here.tree().join("b"), "three\n").unwrap();
        let second = here.snapshot().await.unwrap().unwrap();
        here.stored(second.tree.clone());
        let mut there =
            Workspace::prepare(&dir.path().join("there"), name, "main", Some(here.base()))
                .await
                .unwrap();
        there.add_pack(&kept).await.unwrap();
        there.add_pack(&second.pack).await.unwrap();
        there.restore(&second.tree).await.unwrap();
        assert_eq!(fs::read_to_string(there.tree().join("b")).unwrap(), "three\n");
        assert!(!there.tree().join("a").exists() && !there.tree().join("ignored").exists());
        assert!(!dir.path().join("evil").exists());
        let (patch, same) = (here.patch().await.unwrap(), there.patch().await.unwrap());
        assert!(String::from_utf8_lossy(&patch).contains("+three"));
        assert_eq!(patch, same);
        assert_eq!(there.snapshot().await.unwrap(), None);
        there.push("agentd/7/2", "task 7").await.unwrap().unwrap();
        let log =
            git_plain(&["log", "--format=%s", "agentd/7/2"].map(OsStr::new), &repo).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&log), "task 7\nfirst\n");
    }

    /// Files become directories and links between two snapshots.
    #[tokio::test(flavor = "current_thread")]
    async fn files_directories_and_links_take_each_other_s_place() {
        let (dir, repo) = place().await;
        let names = ["file", "empty", "nested", "left/x", "linked/x", "ignored-now/x", "stays"];
        for name in names {
            fs::create_dir_all(repo.join(name).parent().unwrap()).unwrap();
            fs::write(repo.join(name), "old\n").unwrap();
        }
        git_plain(&["add", "."].map(OsStr::new), &repo).await.unwrap();
        commit(&repo).await;
        let name = repo.to_str().unwrap();
        let mut here =
            Workspace::prepare(&dir.path().join("here"), name, "main", None).await.unwrap();
        let at = |name: &str| here.tree().join(name);
        for name in ["file", "empty", "nested"] {
            fs::remove_file(at(name)).unwrap();
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("file/y"), "new\n").unwrap();
        fs::create_dir(at("nested/deeper")).unwrap();
        for name in ["left", "ignored-now"] {
            fs::remove_dir_all(at(name)).unwrap();
            fs::write(at(name), "new\n").unwrap();
        }
        fs::write(at(".gitignore"), "ignored\nignored-now\n").unwrap();
        // Behind the link is a file of the same name.
        fs::rename(at("linked"), dir.path().join("outside")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside"), at("linked")).unwrap();
        let taken = here.snapshot().await.unwrap().unwrap();
        let listed = files(&here, &taken.tree).await;
        assert_eq!(listed, [".gitignore", "a", "file/y", "left", "linked", "stays"]);
        here.stored(taken.tree.clone());
        assert_eq!(here.snapshot().await.unwrap(), None);
        let mut there =
            Workspace::prepare(&dir.path().join("there"), name, "main", None).await.unwrap();
        there.add_pack(&taken.pack).await.unwrap();
        there.restore(&taken.tree).await.unwrap();
        assert_eq!(fs::read_to_string(there.tree().join("file/y")).unwrap(), "new\n");
        assert!(there.tree().join("linked").is_symlink());
        assert_eq!(there.snapshot().await.unwrap(), None);
    }

    /// A change in the second in which the workspace was made, of as many bytes.
    #[tokio::test(flavor = "current_thread")]
    async fn a_change_at_once_is_in_the_snapshot() {
        let (dir, repo) = place().await;
        let name = repo.to_str().unwrap();
        for round in 0..20 {
            let place = dir.path().join(format!("here{round}"));
            let mut here = Workspace::prepare(&place, name, "main", None).await.unwrap();
            fs::write(here.tree().join("a"), "two\n").unwrap();
            assert!(here.snapshot().await.unwrap().is_some(), "round {round}");
        }
    }

    /// Neither filters of this user nor encodings that `.gitattributes` choose have an effect.
    #[tokio::test(flavor = "current_thread")]
    async fn files_are_in_snapshots_as_they_are() {
        let (dir, repo) = place().await;
        let name = repo.to_str().unwrap();
        let mut here = Workspace::prepare(&dir.path().join("w"), name, "main", None).await.unwrap();
        here.git.run(&["config", "filter.own.clean", "touch ran; cat"], b"").await.unwrap();
        let lines = "*.x filter=own\n*.rc working-tree-encoding=UTF-16\n";
        fs::write(here.tree().join(".gitattributes"), lines).unwrap();
        for name in ["a.x", "a.rc"] {
            fs::write(here.tree().join(name), "as it is\n").unwrap();
        }
        let taken = here.snapshot().await.unwrap().unwrap();
        for name in ["a.x", "a.rc"] {
            let file = format!("{}:{name}", taken.tree);
            let found = here.git.run(&["cat-file", "blob", &file], b"").await.unwrap();
            assert_eq!(found, b"as it is\n", "{name}");
        }
        assert!(!here.tree().join("ran").exists());
        // The control: without the rule git would run it, if not in its cage.
        fs::remove_file(here.git.dir.join("info/attributes")).unwrap();
        fs::write(here.tree().join("b.x"), "as it is\n").unwrap();
        let places = ["--git-dir", "../repository", "--work-tree", ".", "add", "b.x"];
        git_plain(&places.map(OsStr::new), here.tree()).await.unwrap();
        assert!(here.tree().join("ran").exists());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_submodule_is_taken_for_the_files_that_replace_it() {
        let (dir, repo) = place().await;
        fs::write(repo.join(".gitmodules"), "").unwrap();
        git_plain(&["add", "."].map(OsStr::new), &repo).await.unwrap();
        for name in ["kept", "files", "file", "gone"] {
            let entry = format!("160000,{},{name}", "1".repeat(40));
            let words = ["update-index", "--add", "--cacheinfo", &entry].map(OsStr::new);
            git_plain(&words, &repo).await.unwrap();
        }
        commit(&repo).await;
        let (place, name) = (dir.path().join("w"), repo.to_str().unwrap());
        let mut here = Workspace::prepare(&place, name, "main", None).await.unwrap();
        assert_eq!(here.snapshot().await.unwrap(), None);
        fs::write(here.tree().join("files/x"), "new\n").unwrap();
        for name in ["file", "gone"] {
            fs::remove_dir(here.tree().join(name)).unwrap();
        }
        fs::write(here.tree().join("file"), "new\n").unwrap();
        let taken = here.snapshot().await.unwrap().unwrap();
        let listed = files(&here, &taken.tree).await;
        assert_eq!(listed, [".gitignore", ".gitmodules", "a", "file", "files/x", "kept"]);
    }

    /// The file is written again after git read it, in the same second, and the index in a later one.
    #[tokio::test]
    async fn a_change_while_git_reads_is_in_the_next_snapshot() {
        let (dir, repo) = place().await;
        let (place, name) = (dir.path().join("w"), repo.to_str().unwrap());
        let mut here = Workspace::prepare(&place, name, "main", None).await.unwrap();
        let (first, large) = (here.tree().join("a"), here.tree().join("large"));
        fs::File::create(large).unwrap().set_len(200 << 20).unwrap();
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        // The times of files are a moment behind the clock.
        let left = Duration::from_millis(1050) - Duration::from_nanos(now().subsec_nanos().into());
        tokio::time::sleep(left).await;
        fs::write(&first, "111\n").unwrap();
        let again = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(600)).await;
            fs::write(first, "222\n").unwrap();
        });
        let taken = here.snapshot().await.unwrap().unwrap();
        again.await.unwrap();
        here.stored(taken.tree);
        let next = here.snapshot().await.unwrap().map(|it| it.tree).unwrap_or(here.tree.clone());
        let found = here.git.run(&["cat-file", "blob", &format!("{next}:a")], b"").await.unwrap();
        assert_eq!(found, b"222\n");
    }

    /// A worker that ended had taken a snapshot, and the database never got it.
    #[tokio::test(flavor = "current_thread")]
    async fn a_workspace_that_is_opened_again_takes_what_the_database_lacks() {
        let (dir, repo) = place().await;
        let (place, name) = (dir.path().join("w"), repo.to_str().unwrap());
        let mut before = Workspace::prepare(&place, name, "main", None).await.unwrap();
        fs::write(before.tree().join("b"), "two\n").unwrap();
        let taken = before.snapshot().await.unwrap().unwrap();
        // Its git was killed.
        fs::write(place.join("index.lock"), "").unwrap();
        let mut lacks = Workspace::reopen(&place, name, None).await.unwrap();
        assert_eq!(lacks.snapshot().await.unwrap().map(|it| it.tree), Some(taken.tree.clone()));
        let mut has = Workspace::reopen(&place, name, Some(taken.tree)).await.unwrap();
        assert_eq!(has.snapshot().await.unwrap(), None);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_reference_that_is_missing_is_named() {
        let (dir, repo) = place().await;
        let place = dir.path().join("w");
        let error =
            Workspace::prepare(&place, repo.to_str().unwrap(), "nope", None).await.unwrap_err();
        assert!(error.to_string().contains("\"nope\""), "{error}");
    }
}
