//! A local plugin in Claude Code's form: a folder with skills, sub-agents, slash commands, hooks and MCP
//! servers. It counts as long as a digest over all of its files is the one that the user trusted. Called by `load`
//! and by those who check a plugin again.

use crate::error::ConfigError;
use crate::event_hooks::{self, ConfiguredEventHook, FileHooks};
use crate::mcp::{FileServers, McpServerConfig, PROJECT_SERVERS};
use crate::origin::{Layer, ValueOrigin};
use crate::plugin_servers::plugin_servers;
use crate::source_text::FileSource;
use crate::trust::TrustStore;
use crate::warning::ConfigWarning;
use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const MANIFEST: &str = ".claude-plugin/plugin.json";
const HOOKS: &str = "hooks/hooks.json";
/// The files that the plugin is described in.
const DESCRIBED: [&str; 3] = [MANIFEST, HOOKS, PROJECT_SERVERS];
/// Folders with parts that agentd reads.
const FOLDERS: [&str; 3] = ["commands", "agents", "skills"];
/// Fields of the manifest that only describe the plugin, and the one that is read elsewhere.
const METADATA: [&str; 11] = [
    "name",
    "mcpServers",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "$schema",
    "displayName",
];
/// Most entries and bytes of a folder; stops a wrong folder from holding up the start.
const MOST_ENTRIES: usize = 5_000;
const MOST_BYTES: u64 = 64 << 20;
/// Longest name in bytes.
const LONGEST_NAME: usize = 64;

/// A plugin that a session uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// The first part of the names of its prompts.
    pub name: String,
    /// Its folder, a real path.
    pub root: PathBuf,
    /// SHA-256 over all of its files, in hex.
    pub digest: String,
}

/// A plugin's folder as it is now.
#[derive(Debug)]
pub struct PluginFolder {
    /// The plugin.
    pub plugin: Plugin,
    /// Its files.
    pub files: usize,
    /// Its hooks. Each command has the variable `CLAUDE_PLUGIN_ROOT`.
    pub hooks: Vec<ConfiguredEventHook>,
    /// Its MCP servers, without those that it switches off.
    pub servers: Vec<McpServerConfig>,
    /// Parts without effect.
    pub warnings: Vec<ConfigWarning>,
}

impl PluginFolder {
    /// Reads a folder, whether it is trusted or not.
    ///
    /// # Errors
    /// It is no plugin, or a part of it cannot be read.
    pub fn read(dir: &Path) -> Result<Self, ConfigError> {
        let failed = |why: String| ConfigError::Plugin { dir: dir.to_owned(), why };
        let root = dir.canonicalize().map_err(|error| failed(error.to_string()))?;
        if !root.is_dir() {
            return Err(failed("it is no folder".to_owned()));
        }
        let mut walk = Walk::of(&root);
        walk.folder(&root).map_err(failed)?;
        let manifest = walk.text(MANIFEST).map_err(failed)?;
        let is_plugin = manifest.is_some() || walk.seen.iter().any(|name| name == HOOKS);
        if !is_plugin && !FOLDERS.iter().any(|folder| root.join(folder).is_dir()) {
            return Err(failed(format!(
                "it is no plugin: it has no {MANIFEST}, and none of commands, agents, skills and \
                 {HOOKS}"
            )));
        }
        let file = root.join(MANIFEST).display().to_string();
        let listed = walk.text(PROJECT_SERVERS).map_err(failed)?;
        let listing = root.join(PROJECT_SERVERS).display().to_string();
        let FileServers { servers, off: _, warnings: of_servers } = plugin_servers(
            &root,
            manifest.as_deref().map(|text| (file.as_str(), text)),
            listed.as_deref().map(|text| (listing.as_str(), text)),
        )?;
        let manifest = match &manifest {
            Some(text) => event_hooks::json_of(&file, text)?,
            None => Value::Null,
        };
        let folder_name = root.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = manifest["name"].as_str().map(str::to_owned).or(folder_name);
        let name = name.unwrap_or_default();
        check_name(&name).map_err(failed)?;
        let mut warnings = unused(&manifest, &file);
        warnings.extend(of_servers);
        let hooks = match walk.text(HOOKS).map_err(failed)? {
            None => FileHooks::default(),
            Some(text) => {
                let file = root.join(HOOKS).display().to_string();
                event_hooks::of_claude(FileSource { layer: Layer::User, file: &file, text: &text })?
            }
        };
        warnings.extend(hooks.warnings);
        let with_root = |hook: ConfiguredEventHook| {
            let command = match hook.broken {
                Some(_) => hook.command.clone(),
                None => format!("{}\n{}", assignment(&root), hook.command),
            };
            ConfiguredEventHook { command, ..hook }
        };
        let hooks = hooks.hooks.into_iter().map(with_root).collect();
        let (digest, files) = (walk.digest(), walk.seen.len());
        Ok(Self { plugin: Plugin { name, root, digest }, files, hooks, servers, warnings })
    }

    /// Reads a folder that the user trusts as it is now.
    ///
    /// # Errors
    /// It cannot be read, or it is not trusted: with the way on.
    pub fn trusted(dir: &Path, store: &TrustStore) -> Result<Self, ConfigError> {
        let found = Self::read(dir)?;
        match store.holds(&found.plugin.root, found.plugin.digest.as_bytes()) {
            Ok(true) => Ok(found),
            Ok(false) => Err(ConfigError::PluginUntrusted {
                name: found.plugin.name,
                dir: found.plugin.root,
                digest: found.plugin.digest,
            }),
            Err(error) => Err(ConfigError::Plugin { dir: dir.to_owned(), why: error.to_string() }),
        }
    }
}

/// The variable by which a hook finds its files, for a shell.
fn assignment(root: &Path) -> String {
    let root = root.display().to_string().replace('\'', "'\\''");
    format!("export CLAUDE_PLUGIN_ROOT='{root}'")
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    match !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) {
        true => Ok(()),
        false => Err(format!(
            "its name {name:?} is not made of at most {LONGEST_NAME} letters, digits, - _ ."
        )),
    }
}

fn unused(manifest: &Value, file: &str) -> Vec<ConfigWarning> {
    let fields = manifest.as_object().into_iter().flatten();
    let fields = fields.filter(|(field, _)| !METADATA.contains(&field.as_str()));
    let named = fields.map(|(field, _)| {
        let text = match field.as_str() {
            "commands" | "agents" | "skills" | "hooks" => {
                "has no effect: agentd reads the folder of this name"
            }
            _ => "has no effect: agentd does not read it",
        };
        warning(file, field, text.to_owned())
    });
    named.collect()
}

fn warning(file: &str, key: &str, text: String) -> ConfigWarning {
    let origin = ValueOrigin { layer: Layer::User, file: file.to_owned(), line: 1 };
    ConfigWarning { origin, key: key.to_owned(), text }
}

/// The walk over a folder. Names are hashed with contents, so that no file can pass for another.
struct Walk<'a> {
    root: &'a Path,
    hash: Sha256,
    bytes: u64,
    entries: usize,
    /// Relative paths of the files.
    seen: Vec<String>,
    /// The contents of the files that the plugin is described in, as they were hashed.
    kept: Vec<(String, Vec<u8>)>,
}

impl<'a> Walk<'a> {
    fn of(root: &'a Path) -> Self {
        let (seen, kept) = (Vec::new(), Vec::new());
        Self { root, hash: Sha256::new(), bytes: 0, entries: 0, seen, kept }
    }

    fn folder(&mut self, dir: &Path) -> Result<(), String> {
        let failed = |path: &Path, error: &io::Error| format!("{}: {error}", path.display());
        let entries = fs::read_dir(dir).map_err(|error| failed(dir, &error))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(|error| failed(dir, &error))?.path());
        }
        paths.sort();
        for path in paths {
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                return Err(format!("it has more than {MOST_ENTRIES} entries"));
            }
            let meta = fs::symlink_metadata(&path).map_err(|error| failed(&path, &error))?;
            let below = path.strip_prefix(self.root).unwrap_or(&path).to_owned();
            if meta.is_dir() {
                // A checkout changes there with each command of git, and agentd reads nothing of it.
                if below.as_os_str() != ".git" {
                    self.folder(&path)?;
                }
                continue;
            }
            let content = if meta.is_symlink() {
                self.check_link(&path, &below)?;
                let target = fs::read_link(&path).map_err(|error| failed(&path, &error))?;
                target.as_os_str().as_bytes().to_vec()
            } else if meta.is_file() {
                self.bytes += meta.len();
                if self.bytes > MOST_BYTES {
                    return Err(format!("its files have more than {} MiB", MOST_BYTES >> 20));
                }
                fs::read(&path).map_err(|error| failed(&path, &error))?
            } else {
                return Err(format!("{} is neither a file nor a folder", path.display()));
            };
            self.add(&below, &meta, content);
        }
        Ok(())
    }

    /// The digest would not notice a change of a file elsewhere. Behind a link in their place the
    /// plugin's own description and hooks would not be found, and its guards would be gone.
    fn check_link(&self, path: &Path, below: &Path) -> Result<(), String> {
        if let Some(own) = DESCRIBED.iter().find(|own| Path::new(own).starts_with(below)) {
            return Err(format!("{} is a link: {own} must be a file itself", path.display()));
        }
        match path.canonicalize() {
            Ok(real) if real.starts_with(self.root.join(".git")) => {
                let (path, real) = (path.display(), real.display());
                Err(format!("{path} is a link to {real}, which the digest does not cover"))
            }
            Ok(real) if real.starts_with(self.root) => Ok(()),
            Ok(real) => {
                let (path, real) = (path.display(), real.display());
                Err(format!("{path} is a link to {real}, which is outside the folder"))
            }
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn add(&mut self, below: &Path, meta: &fs::Metadata, content: Vec<u8>) {
        let kind = match (meta.is_symlink(), meta.permissions().mode() & 0o111 != 0) {
            (true, _) => b'l',
            (false, true) => b'x',
            (false, false) => b'f',
        };
        self.hash.update(below.as_os_str().as_bytes());
        self.hash.update([0, kind]);
        self.hash.update((content.len() as u64).to_le_bytes());
        self.hash.update(&content);
        let name = below.to_string_lossy().into_owned();
        if DESCRIBED.contains(&name.as_str()) && meta.is_file() {
            self.kept.push((name.clone(), content));
        }
        self.seen.push(name);
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        let Some((_, content)) = self.kept.iter().find(|(known, _)| known == name) else {
            return Ok(None);
        };
        let text = String::from_utf8(content.clone());
        text.map(Some).map_err(|_| format!("{name} is not UTF-8 text"))
    }

    fn digest(&self) -> String {
        HEXLOWER.encode(&self.hash.clone().finalize())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write(MANIFEST, r#"{"name": "mine", "version": "1", "mcpServers": {}, "agents": "x/"}"#);
        write("commands/go.md", "Go.");
        let hook = r#"{"description": "d", "hooks": {"Stop": [{"hooks":
            [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/x.sh"}]}]}}"#;
        write(HOOKS, hook);
        write(PROJECT_SERVERS, r#"{"kettle": {"command": "${CLAUDE_PLUGIN_ROOT}/serve"}}"#);
        dir
    }

    #[test]
    fn a_plugin_has_its_name_its_hooks_and_notes_on_the_rest() {
        let dir = folder();
        let found = PluginFolder::read(dir.path()).unwrap();
        assert_eq!((found.plugin.name.as_str(), found.files), ("mine", 4));
        let command = &found.hooks[0].command;
        let root = dir.path().canonicalize().unwrap();
        let wanted =
            format!("export CLAUDE_PLUGIN_ROOT='{}'\n${{CLAUDE_PLUGIN_ROOT}}/x.sh", root.display());
        assert_eq!(*command, wanted);
        let notes: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("`agents` has no effect"), "{notes:?}");
        let servers: Vec<_> = found.servers.iter().map(McpServerConfig::in_words).collect();
        assert_eq!(servers, [format!("kettle: {}/serve", root.display())]);
        assert_eq!(assignment(Path::new("/a'b")), "export CLAUDE_PLUGIN_ROOT='/a'\\''b'");
    }

    #[test]
    fn each_change_of_a_file_takes_the_trust_back_and_one_below_git_does_not() {
        let dir = folder();
        let store = TrustStore::at(dir.path().parent().unwrap().join("agentd-plugin-trust"));
        let digest = || PluginFolder::read(dir.path()).unwrap().plugin.digest;
        let first = digest();
        fs::create_dir(dir.path().join(".git")).unwrap();
        fs::write(dir.path().join(".git/index"), "x").unwrap();
        assert_eq!(digest(), first);
        let untrusted = PluginFolder::trusted(dir.path(), &store).unwrap_err().to_string();
        assert!(untrusted.contains("agentd init --plugin-dir"), "{untrusted}");
        let file = dir.path().join("commands/go.md");
        let mut known = vec![first];
        let mut changed = |what: &str| {
            let now = digest();
            assert!(!known.contains(&now), "{what}");
            known.push(now);
        };
        fs::write(&file, "Go!").unwrap();
        changed("a content");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        changed("a mode");
        fs::rename(&file, dir.path().join("commands/went.md")).unwrap();
        changed("a name");
        std::os::unix::fs::symlink("went.md", &file).unwrap();
        changed("a link");
    }

    #[test]
    fn a_link_that_hides_hooks_or_leads_where_the_digest_does_not_is_named() {
        let no = |dir: &Path| PluginFolder::read(dir).unwrap_err().to_string();
        let link = std::os::unix::fs::symlink::<&str, PathBuf>;
        let plugin = folder();
        fs::rename(plugin.path().join(HOOKS), plugin.path().join("elsewhere.json")).unwrap();
        link("../elsewhere.json", plugin.path().join(HOOKS)).unwrap();
        assert!(no(plugin.path()).contains("must be a file itself"), "{}", no(plugin.path()));
        let plugin = folder();
        fs::rename(plugin.path().join("hooks"), plugin.path().join("elsewhere")).unwrap();
        link("elsewhere", plugin.path().join("hooks")).unwrap();
        assert!(no(plugin.path()).contains("must be a file itself"), "{}", no(plugin.path()));
        let plugin = folder();
        fs::create_dir(plugin.path().join(".git")).unwrap();
        fs::write(plugin.path().join(".git/go.md"), "Go.").unwrap();
        link("../.git/go.md", plugin.path().join("commands/other.md")).unwrap();
        assert!(no(plugin.path()).contains("the digest does not cover"), "{}", no(plugin.path()));
    }

    #[test]
    fn a_folder_that_is_none_and_a_link_that_leads_out_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let no = |dir: &Path| PluginFolder::read(dir).unwrap_err().to_string();
        assert!(no(dir.path()).contains("it is no plugin"), "{}", no(dir.path()));
        assert!(no(&dir.path().join("none")).contains("No such file"));
        let plugin = folder();
        std::os::unix::fs::symlink("/etc/hostname", plugin.path().join("commands/host.md"))
            .unwrap();
        assert!(no(plugin.path()).contains("outside the folder"), "{}", no(plugin.path()));
        let plugin = folder();
        fs::write(plugin.path().join(MANIFEST), r#"{"name": "a/b"}"#).unwrap();
        assert!(no(plugin.path()).contains("its name"), "{}", no(plugin.path()));
        fs::write(plugin.path().join(MANIFEST), "{").unwrap();
        assert!(no(plugin.path()).contains("plugin.json:1"), "{}", no(plugin.path()));
    }
}
