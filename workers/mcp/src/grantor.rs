//! The server that gave tokens, as their refresh needs it.

use rmcp::transport::auth::AuthorizationMetadata;
use serde::{Deserialize, Serialize};

/// What a refresh needs beside the tokens.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Grantor {
    /// The resource that the tokens are for.
    pub(crate) resource: String,
    pub(crate) redirect: String,
    /// The secret of a client that has one.
    pub(crate) client_secret: Option<String>,
    pub(crate) metadata: AuthorizationMetadata,
}
