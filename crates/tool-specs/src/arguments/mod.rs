//! From a model's text to a checked call: names of tools and fields, conversion, schema, rights.

pub(crate) mod coerce;
pub(crate) mod command_rights;
pub(crate) mod dialect;
pub(crate) mod facts;
pub(crate) mod interpret;
pub(crate) mod invalid;
pub(crate) mod reshape;
pub(crate) mod schema;
