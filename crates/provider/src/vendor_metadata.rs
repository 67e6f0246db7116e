//! Metadata that a vendor wants back with a block: the signature of a call, the phase of a text. A
//! block of the conversation has no field for it. So it is stored in front of its block, like
//! reasoning of the same answer, and joined to it again in a request. For encoders and decoders.

use protocol::provider::Api;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MetadataPlace {
    /// Into the block that follows.
    With,
    /// Behind it, as a piece of its own.
    Behind,
}

/// Its form in the conversation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct VendorMetadata<'a> {
    r#type: &'a str,
    api: &'a str,
    pub place: MetadataPlace,
    /// The vendor's JSON.
    #[serde(borrow)]
    pub fields: &'a RawValue,
}

/// The raw block for `fields`.
pub(crate) fn write(api: Api, place: MetadataPlace, fields: &RawValue) -> String {
    let beside = VendorMetadata { r#type: "beside", api: name(api), place, fields };
    // Strings and JSON that was read always serialise.
    serde_json::to_string(&beside).unwrap_or_default()
}

/// The same, if it is one of this vendor's.
pub(crate) fn read(api: Api, raw: &str) -> Option<VendorMetadata<'_>> {
    let beside: VendorMetadata<'_> = serde_json::from_str(raw).ok()?;
    (beside.r#type == "beside" && beside.api == name(api)).then_some(beside)
}

fn name(api: Api) -> &'static str {
    match api {
        Api::Anthropic => "anthropic",
        Api::Responses => "responses",
        Api::Chat => "chat",
        Api::Gemini => "gemini",
    }
}
