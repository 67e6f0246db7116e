//! `grep`: lines of files by a regular expression, on ripgrep's own engine.

use super::ls::here;
use crate::arguments::dialect::ArgMeaning::{Field, FileType, Ignored, Literal, Opposite, Unmet};
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules, MatchedBy, RuleDepth};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct GrepTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Regular expression of Rust's regex crate, matched line by line, or over several lines if it has a
    /// line break.
    pub pattern: String,
    /// The file or directory to search.
    #[serde(default = "here")]
    pub path: String,
    /// Only files that match this .gitignore pattern, such as `*.rs`; `!*.md` leaves files out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Ignore case.
    #[serde(default)]
    pub case_insensitive: bool,
    /// Lines before and after each match.
    #[serde(default)]
    #[schemars(range(max = 20))]
    pub context: u32,
    /// The pattern is one of file names, and text is searched only if no name fits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("unlisted" = true))]
    pub names_first: bool,
}

impl ToolSpec for GrepTool {
    type Input = Input;
    const NAME: &'static str = "grep";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str = "Search file contents with a regular expression. Matches are shown as path:line:text, \
        context lines as path-line-text. Ignored and binary files are not searched.";
    const ALIASES: &'static [Alias] = &[
        // Elsewhere it takes a pattern of file names.
        Alias { name: "search_files", defaults: r#"{"names_first":true}"# },
        Alias::plain("file-search"),
        Alias::plain("search"),
        Alias::plain("search_file_content"),
        Alias::plain("grep_search"),
        Alias::plain("grep_files"),
        Alias::plain("ripgrep"),
        Alias::plain("rg"),
    ];
    const LIMITS: &'static str = "At most 200 matches.";

    const EXAMPLE: &'static str = r#"{"pattern":"fn \\w+_test","path":"src","include":"*.rs"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("query", Field("pattern")),
        ("regex", Field("pattern")),
        ("search_pattern", Field("pattern")),
        ("glob", Field("include")),
        ("include_pattern", Field("include")),
        ("file_pattern", Field("include")),
        ("glob_pattern", Field("include")),
        ("type", FileType),
        ("file_type", FileType),
        ("-i", Field("case_insensitive")),
        ("ignore_case", Field("case_insensitive")),
        ("case_sensitive", Opposite("case_insensitive")),
        ("-A", Field("context")),
        ("-B", Field("context")),
        ("-C", Field("context")),
        ("after", Field("context")),
        ("before", Field("context")),
        ("context_lines", Field("context")),
        ("-n", Ignored),
        ("line_numbers", Ignored),
        ("-o", Ignored),
        ("-r", Ignored),
        ("output_mode", Ignored),
        ("head_limit", Ignored),
        ("limit", Ignored),
        ("max_results", Ignored),
        ("total_max_matches", Ignored),
        ("max_matches_per_file", Ignored),
        ("names_only", Ignored),
        ("recursive", Ignored),
        ("offset", Ignored),
        ("fixed_strings", Literal),
        ("-F", Literal),
        (
            "multiline",
            Unmet(
                "multiline was ignored: a pattern matches line by line unless it contains a \
                line break.",
            ),
        ),
        ("exclude_pattern", Unmet("exclude_pattern was ignored; use include with `!PATTERN`.")),
        ("no_ignore", Unmet("no_ignore was ignored: to search ignored files, give their path.")),
    ];
    const MATCHED_BY: MatchedBy = MatchedBy::Path(RuleDepth::Below);
    // Unreadable files may not be searched, but the directory above them may.
    const INHERITS: &'static [InheritedRules] =
        &[InheritedRules::of("read", Inherit::DenyAndAskNamed)];
    const CACHEABLE: bool = true;

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }
}
