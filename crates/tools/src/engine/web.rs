//! The interface between the web tools and the engine with network access. The engine is linked
//! into `agentd-web` only.

use crate::cancel::Cancel;
use crate::engine::error::EngineError;
use url::Url;

/// Accesses the network. Methods that do use nothing but their arguments.
pub trait WebEngine {
    /// The text of a page.
    ///
    /// # Errors
    /// `unreachable`, `private_address`, `redirected`, `http_error`, `unsupported_content`,
    /// `timed_out`, `interrupted`.
    fn page(&self, url: &Url, cancel: &Cancel) -> Result<WebPage, EngineError>;

    /// Search results, the best first.
    ///
    /// # Errors
    /// As for a page.
    fn search(
        &self,
        query: &str,
        limit: usize,
        cancel: &Cancel,
    ) -> Result<Vec<SearchHit>, EngineError>;

    /// Leaves the network for good, in all threads of this process: before hostile bytes are decoded.
    ///
    /// # Errors
    /// Where this process still has the network.
    fn leave_network(&self) -> Result<(), EngineError>;
}

/// A page as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPage {
    /// Where it was found in the end.
    pub url: String,
    /// Its title; empty where it has none.
    pub title: String,
    /// The text.
    pub text: String,
    /// True if the end was not read, because the page exceeds the limit.
    pub cut: bool,
    /// The bytes of a page that is an image; it has no text.
    pub image: Option<Vec<u8>>,
}

/// One thing that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// Its title.
    pub title: String,
    /// Where it is.
    pub url: String,
    /// The excerpt.
    pub snippet: String,
}
