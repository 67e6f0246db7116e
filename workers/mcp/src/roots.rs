//! The root that a server is told, and the refusal of sampling: both are of the older revision, and deprecated in
//! the newer one. Used by the client.
#![expect(deprecated, reason = "servers of 2025-11-25 ask for them")]

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ErrorCode, ErrorData, ListRootsResult, Root,
    RootsCapabilities,
};
use std::path::Path;

/// The answer to `roots/list`.
pub(crate) type Roots = ListRootsResult;
/// The parameters of `sampling/createMessage`, and its result.
pub(crate) type SampleRequest = CreateMessageRequestParams;
pub(crate) type Sample = CreateMessageResult;

/// Why a server does not get the use of the model.
pub(crate) const NO_SAMPLING: &str = "agentd does not lend its model to servers (sampling)";

/// The project directory; none for a server that is not given it.
pub(crate) fn of(project: Option<&Path>) -> Roots {
    let root = project.and_then(|project| {
        let address = reqwest::Url::from_file_path(project).ok()?;
        let name = project.file_name().map(|name| name.to_string_lossy().into_owned());
        let root = Root::new(address.as_str());
        Some(name.map_or(root.clone(), |name| root.with_name(name)))
    });
    ListRootsResult::new(root.into_iter().collect())
}

/// Declared to servers that are told a root.
pub(crate) fn capability(roots: &Roots) -> Option<RootsCapabilities> {
    (!roots.roots.is_empty()).then(RootsCapabilities::default)
}

/// The answer to a server that asks for the use of the model; the log has it too.
pub(crate) fn no_sampling() -> ErrorData {
    tracing::warn!("the server asks for the use of the model: {NO_SAMPLING}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, NO_SAMPLING, None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_root_is_the_project_as_an_address() {
        let roots = |project| serde_json::to_value(of(project)).unwrap();
        let wanted =
            serde_json::json!({"roots": [{"uri": "file:///p/my%20dir", "name": "my dir"}]});
        assert_eq!(roots(Some(Path::new("/p/my dir"))), wanted);
        assert_eq!(roots(None), serde_json::json!({"roots": []}));
    }
}
