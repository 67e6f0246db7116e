//! Flags that guard a session: its plugins, and rules that deny or ask. The journal keeps them, since a
//! session that a death ended is opened again without them. Used by the session opener.

use crate::records::decode;
use protocol::client::{RequestFailure, SessionRequest, SettingChange};
use protocol::ids::SessionId;
use setup::open_failure::OpenFailure;
use std::path::Path;

const PLUGINS: &str = "plugins.dirs";
/// The keys of these flags.
const KEPT: [&str; 3] = [PLUGINS, "permissions.deny", "permissions.ask"];

/// The request with the flags that earlier runs of the session `of` had.
pub(super) fn with_kept(
    mut opening: SessionRequest,
    sessions: &Path,
    of: &SessionId,
) -> Result<SessionRequest, OpenFailure> {
    let known = journal::is_session_name(&of.0);
    let read = known.then(|| journal::read(&sessions.join(&of.0)).ok()).flatten();
    // The journal's opening names what is wrong with it.
    let Some(entries) = read else { return Ok(opening) };
    let entries: Vec<_> = entries.without_texts().map_while(Result::ok).collect();
    let missing = missing(&decode::changes(&entries), &opening.settings);
    for (key, value) in &missing {
        if key == PLUGINS && !Path::new(value).is_dir() {
            let message = format!(
                "session {of} was opened with the plugin in {value}, whose hooks may guard it, and \
                 there is no such folder now. Put it back, or begin a new session"
            );
            return Err(OpenFailure::new(RequestFailure::Configuration, message));
        }
    }
    opening.settings.extend(missing);
    Ok(opening)
}

/// Recorded flags that these settings do not have.
fn missing(changes: &[SettingChange], settings: &[(String, String)]) -> Vec<(String, String)> {
    let mut missing = Vec::new();
    for flag in changes.iter().filter_map(flag) {
        if KEPT.contains(&flag.0.as_str()) && !settings.contains(&flag) && !missing.contains(&flag)
        {
            missing.push(flag);
        }
    }
    missing
}

/// Flags that the journal does not have yet.
pub(super) fn to_record(
    changes: &[SettingChange],
    settings: &[(String, String)],
) -> Vec<SettingChange> {
    let known: Vec<_> = changes.iter().filter_map(flag).collect();
    let new = settings.iter().filter(|(key, _)| KEPT.contains(&key.as_str()));
    let new = new.filter(|new| !known.contains(new)).cloned();
    new.map(|(key, value)| SettingChange::Flag(key, value)).collect()
}

fn flag(change: &SettingChange) -> Option<(String, String)> {
    match change {
        SettingChange::Flag(key, value) => Some((key.clone(), value.clone())),
        SettingChange::Network(_)
        | SettingChange::Host(_)
        | SettingChange::Mode(_)
        | SettingChange::AddDirectory(_)
        | SettingChange::Model(_)
        | SettingChange::Pin(_)
        | SettingChange::Unpin(_)
        | SettingChange::AppendedSystem(_)
        | SettingChange::CostLimit(_)
        | SettingChange::Name(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_guard_are_recorded_once_and_hold_for_later_runs() {
        let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let deny = set("permissions.deny", "bash:sudo *");
        let settings = [set(PLUGINS, "/p"), set("provider.model", "m"), deny.clone()];
        let recorded = to_record(&[], &settings);
        assert_eq!(recorded.len(), 2, "a model guards nothing: {recorded:?}");
        assert_eq!(to_record(&recorded, &settings), []);
        assert_eq!(missing(&recorded, &[]), [set(PLUGINS, "/p"), deny.clone()]);
        assert_eq!(missing(&recorded, &[set(PLUGINS, "/p")]), [deny]);
        let odd = [SettingChange::Flag("net.mode".to_owned(), "on".to_owned())];
        assert_eq!(missing(&odd, &[]), [], "nothing that gives rights");
    }
}
