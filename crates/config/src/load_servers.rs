//! Collects the MCP servers of all files: our own, those of a project's `.mcp.json`, and those of plugins, which
//! come last. Called by `load` and `load_hooks`.

use crate::config::{Config, ConfigRow};
use crate::error::ConfigError;
use crate::file_text::read_text;
use crate::mcp::{FileServers, HANDED_SERVERS, PROJECT_SERVERS, TABLE, THEIR_TABLE, of_claude};
use crate::origin::{Layer, ValueOrigin};
use crate::project::FileTrust;
use crate::project_trust::project_trust;
use crate::source_text::FileSource;
use crate::sources::Sources;
use crate::warning::ConfigWarning;
use protocol::judgement::Rule;

/// Most servers.
const MOST_SERVERS: usize = 32;

/// The servers found so far; of two with one name, the first.
#[derive(Debug, Default)]
pub(crate) struct CollectedServers(FileServers);

impl CollectedServers {
    /// Adds those of one file.
    pub(crate) fn add(&mut self, file: FileServers, trust: FileTrust) {
        let FileServers { servers, off, warnings } = file;
        self.0.warnings.extend(warnings);
        for server in servers {
            let known = self.0.servers.iter().find(|known| known.name == server.name);
            let why = match (known, trust) {
                (_, FileTrust::Untrusted) => {
                    "does not run, since you have not said that you trust this file as it is now. \
                     Read it; then run `agentd init --trust`, or give --trust-project for one run"
                        .to_owned()
                }
                _ if self.0.off.contains(&server.name) => {
                    "does not run: an earlier file switches a server of this name off".to_owned()
                }
                (Some(known), FileTrust::Trusted) => format!(
                    "does not run: {}:{} has a server of this name",
                    known.by.file, known.by.line
                ),
                (None, FileTrust::Trusted) if self.0.servers.len() == MOST_SERVERS => {
                    format!("does not run: there are {MOST_SERVERS} before it, which is the most")
                }
                (None, FileTrust::Trusted) => {
                    self.0.servers.push(server);
                    continue;
                }
            };
            let Rule { text, file, line, .. } = server.by;
            let origin = ValueOrigin { layer: server.layer, file, line };
            self.0.warnings.push(ConfigWarning { origin, key: text, text: why });
        }
        if trust == FileTrust::Trusted {
            self.0.off.extend(off);
        }
    }

    /// Adds those that an editor or a program handed over for this session.
    pub(crate) fn add_handed(&mut self, flags: &[(String, String)]) -> Result<(), ConfigError> {
        for (_, text) in flags.iter().filter(|(key, _)| key == HANDED_SERVERS) {
            let source = FileSource { layer: Layer::Flag, file: "the editor's list", text };
            self.add(of_claude(source)?, FileTrust::Trusted);
        }
        Ok(())
    }

    /// Adds those of the project's file of Claude Code.
    pub(crate) fn add_project(&mut self, sources: &Sources) -> Result<(), ConfigError> {
        let path = sources.project.join(PROJECT_SERVERS);
        let Some((file, text)) = read_text(&path)? else { return Ok(()) };
        let trust = project_trust(&sources.trust, &path, text.as_bytes(), &mut self.0.warnings);
        let source = FileSource { layer: Layer::Project, file: &file, text: &text };
        match (of_claude(source), trust) {
            (Ok(found), trust) => self.add(found, trust),
            (Err(error), FileTrust::Trusted) => return Err(error),
            // The file of a project that is not trusted may hold anything.
            (Err(error), FileTrust::Untrusted) => {
                let text = format!("cannot be read, so that no server of it runs: {error}");
                self.0.warnings.push(source.warning("", THEIR_TABLE.to_owned(), text));
            }
        }
        Ok(())
    }

    /// Puts them into the configuration.
    pub(crate) fn put_into(self, config: &mut Config) {
        let FileServers { servers, warnings, off: _ } = self.0;
        config.rows.extend(servers.iter().map(|server| ConfigRow {
            key: TABLE,
            value: server.in_words(),
            origin: ValueOrigin {
                layer: server.layer,
                file: server.by.file.clone(),
                line: server.by.line,
            },
        }));
        config.servers = servers;
        config.warnings.extend(warnings);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn claude(text: &str) -> Result<FileServers, ConfigError> {
        of_claude(FileSource { layer: Layer::Project, file: ".mcp.json", text })
    }

    #[test]
    fn the_first_of_a_name_counts_and_no_untrusted_one() {
        let one =
            |text| claude(&format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"{text}\"}}}}}}"));
        let mut all = CollectedServers::default();
        let off = claude("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"enabled\": false}}}");
        all.add(off.unwrap(), FileTrust::Untrusted);
        all.add(one("nobody").unwrap(), FileTrust::Untrusted);
        let off = claude("{\"mcpServers\": {\"b\": {\"command\": \"x\", \"enabled\": false}}}");
        all.add(off.unwrap(), FileTrust::Trusted);
        let on = claude("{\"mcpServers\": {\"b\": {\"command\": \"x\"}}}");
        all.add(on.unwrap(), FileTrust::Trusted);
        all.add(one("first").unwrap(), FileTrust::Trusted);
        all.add(one("second").unwrap(), FileTrust::Trusted);
        assert_eq!(all.0.servers.len(), 1);
        assert_eq!(all.0.servers[0].place.words(), ["first"]);
        let told: Vec<_> = all.0.warnings.iter().map(|warning| warning.text.as_str()).collect();
        for (told, words) in
            told.iter().zip(["init --trust", "switches", "has a server of this name"])
        {
            assert!(told.contains(words), "{told}");
        }
        assert_eq!(told.len(), 3);
    }
}
