//! Rules: the text of a rule, its pattern, and the tools and rights that it can name.

pub(crate) mod command_pattern;
pub(crate) mod error;
pub(crate) mod page_pattern;
pub(crate) mod path_pattern;
pub(crate) mod pattern_word;
pub(crate) mod rule_index;
pub(crate) mod rule_list;
pub(crate) mod rule_pattern;
pub(crate) mod rule_target;
pub(crate) mod server_tool_pattern;
pub(crate) mod spelling;
