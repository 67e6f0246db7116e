//! A task's workspace: the repository at its base commit, snapshots after each call that may have changed
//! it, and at the end a patch and a branch. All by git, in a repository of its own beside the workspace, so
//! that nothing which the agent writes into the workspace has a say.
//!
//! Files that git ignores are in no snapshot.

use crate::error::FleetError;
use crate::run::{Git, GitFile, git_plain};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

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

/// A workspace on this host.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    git: Git,
    repo: String,
    base: String,
    /// The last tree that was taken or restored.
    tree: String,
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
        git_plain(
            &[OsStr::new("init"), OsStr::new("--quiet"), OsStr::new("--bare"), git.dir.as_os_str()],
            place,
        )
        .await?;
        let wanted = base.unwrap_or(reference);
        if git.run(&["fetch", "--quiet", "--no-tags", "--", repo, wanted], b"").await.is_err() {
            // Not every server gives out a commit by its name, nor knows what is no full reference.
            git.run(
                &[
                    "fetch",
                    "--quiet",
                    "--",
                    repo,
                    "+refs/heads/*:refs/base/*",
                    "+refs/tags/*:refs/tags/*",
                ],
                b"",
            )
            .await?;
            git.run(&["update-ref", "FETCH_HEAD", &resolve(&git, wanted).await?], b"").await?;
        }
        let base =
            line(git.run(&["rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"], b"").await?);
        git.run(&["update-ref", "refs/heads/base", &base], b"").await?;
        // A repository of its own for the agent: with history, and without this one's objects to write to.
        let from = git.dir.as_os_str();
        let words =
            ["clone", "--quiet", "--no-hardlinks", "--branch", "base", "--"].map(OsStr::new);
        let words: Vec<&OsStr> = words.into_iter().chain([from, git.tree.as_os_str()]).collect();
        git_plain(&words, place).await?;
        let origin = ["remote", "set-url", "origin", repo].map(OsStr::new);
        git_plain(&origin, &git.tree).await?;
        let tree = line(git.run(&["rev-parse", &format!("{base}^{{tree}}")], b"").await?);
        git.run(&["read-tree", &tree], b"").await?;
        Ok(Self { git, repo: repo.to_owned(), base, tree })
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
        let base = line(git.run(&["rev-parse", "refs/heads/base"], b"").await?);
        let tree = match tree {
            Some(tree) => tree,
            None => line(git.run(&["rev-parse", &format!("{base}^{{tree}}")], b"").await?),
        };
        Ok(Self { git, repo: repo.to_owned(), base, tree })
    }

    /// Takes a snapshot. None if nothing changed since the last one that was [`Workspace::stored`].
    ///
    /// Git never looks into a repository inside the workspace, since it would run what that one's settings
    /// name. Such repositories are in no snapshot, and neither are files that cannot be read.
    pub(crate) async fn snapshot(&mut self) -> Result<Option<Snapshot>, FleetError> {
        let changed =
            ["diff-files", "--name-only", "-z", "--ignore-submodules=all", "--no-ext-diff"];
        let others = ["ls-files", "--others", "--exclude-standard", "-z"];
        let mut paths = self.git.run(&changed, b"").await?;
        paths.extend(self.git.run(&others, b"").await?);
        let paths: Vec<&[u8]> = paths.split(|byte| *byte == 0).collect();
        let paths: Vec<u8> =
            paths.into_iter().filter(|path| self.is_taken(path)).collect::<Vec<_>>().join(&0);
        if !paths.is_empty() {
            self.git.run(&["update-index", "--add", "--remove", "-z", "--stdin"], &paths).await?;
        }
        let tree = line(self.git.run(&["write-tree"], b"").await?);
        if tree == self.tree {
            return Ok(None);
        }
        let objects = format!("{tree}\n^{}\n^{}\n", self.tree, self.base);
        let pack = self.git.index.with_file_name("pack");
        let words = ["pack-objects", "--revs", "--stdout", "--quiet", "--thin"];
        self.git.run_with_file(&words, objects.as_bytes(), GitFile::Output(&pack)).await?;
        Ok(Some(Snapshot { base: self.base.clone(), tree, pack }))
    }

    /// The database has this snapshot: the next one builds on it.
    pub(crate) fn stored(&mut self, tree: String) {
        self.tree = tree;
    }

    /// True for a file that is gone or can be read, and for a link.
    fn is_taken(&self, path: &[u8]) -> bool {
        if path.is_empty() || path.ends_with(b"/") {
            return false;
        }
        let path = self.git.tree.join(std::ffi::OsStr::from_bytes(path));
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => std::fs::File::open(&path).is_ok(),
            Ok(found) => found.is_symlink(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
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
        Ok(())
    }

    /// The changes since the base commit.
    pub(crate) async fn patch(&self) -> Result<Vec<u8>, FleetError> {
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
        let base_tree =
            line(self.git.run(&["rev-parse", &format!("{}^{{tree}}", self.base)], b"").await?);
        if base_tree == self.tree {
            return Ok(None);
        }
        let commit = self
            .git
            .run(&["commit-tree", &self.tree, "-p", &self.base], message.as_bytes())
            .await?;
        let commit = line(commit);
        let refspec = format!("+{commit}:refs/heads/{branch}");
        self.git.run(&["push", "--quiet", "--no-verify", "--", &self.repo, &refspec], b"").await?;
        Ok(Some(commit))
    }
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    async fn repository(at: &Path) {
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

    #[tokio::test(flavor = "current_thread")]
    async fn another_host_restores_what_snapshots_hold() {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        repository(&repo).await;
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

    /// A worker that ended had taken a snapshot, and the database never got it.
    #[tokio::test(flavor = "current_thread")]
    async fn a_workspace_that_is_opened_again_takes_what_the_database_lacks() {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        repository(&repo).await;
        let (place, name) = (dir.path().join("w"), repo.to_str().unwrap());
        let mut before = Workspace::prepare(&place, name, "main", None).await.unwrap();
        fs::write(before.tree().join("b"), "two\n").unwrap();
        let taken = before.snapshot().await.unwrap().unwrap();
        let mut lacks = Workspace::reopen(&place, name, None).await.unwrap();
        assert_eq!(lacks.snapshot().await.unwrap().map(|it| it.tree), Some(taken.tree.clone()));
        let mut has = Workspace::reopen(&place, name, Some(taken.tree)).await.unwrap();
        assert_eq!(has.snapshot().await.unwrap(), None);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_reference_that_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        repository(&repo).await;
        let place = dir.path().join("w");
        let error =
            Workspace::prepare(&place, repo.to_str().unwrap(), "nope", None).await.unwrap_err();
        assert!(error.to_string().contains("\"nope\""), "{error}");
    }
}
