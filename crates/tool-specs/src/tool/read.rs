//! `read`: a file or a window of its lines, with their numbers; an image for models that see; pages of a PDF.

use crate::arguments::dialect::ArgMeaning::{EndLine, Field, Ignored, Range};
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ReadTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Relative to the project directory, or absolute.
    pub path: String,
    /// First line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub offset: Option<u64>,
    /// Number of lines; default 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// First character of each line, counted from 1: for the rest of a line that was cut. The default limit
    /// is 1 then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub column: Option<u64>,
    /// Pages of a PDF, such as "3" or "1-5", at most 20. Needed above 10 pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<String>,
    /// Leave out the line numbers.
    #[serde(default)]
    pub raw: bool,
}

impl ToolSpec for ReadTool {
    type Input = Input;
    const NAME: &'static str = "read";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str = "Read a text file, a PNG, JPEG, GIF or WebP image, or a PDF. Each line of a text follows its number and a tab, which \
        are not part of the file. If lines remain, the last line of the result names the offset to \
        continue with. Images and pages of a PDF are shown as such if the model sees images; \
        otherwise you get a PDF's text.";
    const ALIASES: &'static [Alias] = &[
        Alias { name: "read_file", defaults: r#"{"raw":true}"# },
        Alias { name: "file-read", defaults: r#"{"raw":true}"# },
        Alias::plain("view_file"),
        Alias::plain("view"),
        Alias::plain("open_file"),
    ];
    const LIMITS: &'static str = "A result is cut to tools.max_result_chars.";
    const EXAMPLE: &'static str = r#"{"path":"src/main.rs","offset":100,"limit":50}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("start_line", Field("offset")),
        ("start_line_one_indexed", Field("offset")),
        ("line_start", Field("offset")),
        ("end_line", EndLine),
        ("end_line_one_indexed_inclusive", EndLine),
        ("line_end", EndLine),
        ("view_range", Range),
        ("line_count", Field("limit")),
        ("lines", Field("limit")),
        ("should_read_entire_file", Ignored),
        ("encoding", Ignored),
        ("mode", Ignored),
        ("indentation", Ignored),
    ];
    const CACHEABLE: bool = true;

    fn facts(input: &Input) -> JudgedFacts {
        // Whether it is a document is seen in the cage; one without such a name needs the argument.
        let is_document = input.pages.is_some() || is_pdf(&input.path);
        let profile = is_document.then_some(Profile::Document);
        JudgedFacts { profile, paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }
}

/// True if a file of this name is read in a document's cage.
fn is_pdf(path: &str) -> bool {
    path.to_ascii_lowercase().ends_with(".pdf")
}
