//! Answers of models, from outside: streams, recordings, images, rules and live exchanges.

#![allow(clippy::unwrap_used)]

mod answer_schema;
#[path = "../../../../tests/support/anthropic.rs"]
mod anthropic;
mod blanks;
#[path = "../../../../tests/fuzz/src/decoders.rs"]
mod decoders;
#[path = "support/image_request.rs"]
mod image_request;
mod images;
mod live;
mod recordings;
mod rules;
#[path = "support/sdk_requests.rs"]
mod sdk_requests;
mod streams;
mod support;
mod updates;
