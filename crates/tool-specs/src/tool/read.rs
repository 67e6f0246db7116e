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
    /// The file, relative to the project directory or absolute.
    pub path: String,
    /// First line to read, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub offset: Option<u64>,
    /// How many lines to read; 2000 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// First character of each line to show, counted from 1: for the rest of a line that was cut.
    /// The limit is 1 line then, where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub column: Option<u64>,
    /// Which pages of a PDF to show, such as "3" or "1-5"; at most 20. Needed above 10 pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<String>,
    /// Give the plain text without line numbers.
    #[serde(default)]
    pub raw: bool,
}

impl ToolSpec for ReadTool {
    type Input = Input;
    const NAME: &'static str = "read";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str = "Read a text file, an image or a PDF. Each line of a text is shown as its number, a tab and its text; the \
        number and the tab are not part of the file. If lines remain, the last line of the result \
        names the offset to continue with. A PNG, JPEG, GIF or WebP image is shown as such, if the \
        model sees images; so are the pages of a PDF, whose text is shown otherwise.";
    const ALIASES: &'static [Alias] = &[
        Alias { name: "read_file", defaults: r#"{"raw":true}"# },
        Alias { name: "file-read", defaults: r#"{"raw":true}"# },
        Alias::plain("view_file"),
        Alias::plain("view"),
        Alias::plain("open_file"),
    ];
    const LIMITS: &'static str = "A result is cut to tools.max_result_chars. Programs convert a PDF, in a \
        sandbox without any other file.";
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
