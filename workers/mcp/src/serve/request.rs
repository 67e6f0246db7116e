//! What a client may ask of agentd as a server: the tools, their arguments, and the limits that the person
//! set. Pure but for the paths that it resolves. Used by `serve`.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) const RUN: &str = "run";
pub(super) const SESSIONS: &str = "sessions";
/// Most bytes of a prompt.
const PROMPT: usize = 4 << 20;
/// Most dollars that a caller may name.
const DOLLARS: f64 = 1e6;
const MICROS: f64 = 1e6;
const USAGE: &str = "--serve --timeout-ms MS [--max-cost-micros N] --project-dir DIR… [-- FLAG…]";

/// The limits of all runs, from the person's flags.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Runs take place in or below these real paths; the first is the default.
    pub(super) dirs: Vec<PathBuf>,
    timeout: Duration,
    max_cost: Option<u64>,
    /// Flags that each run gets as they are.
    flags: Vec<OsString>,
}

/// One call of `run` within the limits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunRequest {
    pub(super) prompt: String,
    pub(super) project: PathBuf,
    pub(super) timeout: Duration,
    /// In millionths of a dollar.
    max_cost: Option<u64>,
}

impl Limits {
    /// Reads the words of `agentd mcp serve`.
    ///
    /// # Errors
    /// The usage.
    pub(super) fn read(words: impl Iterator<Item = OsString>) -> Result<Self, String> {
        Self::parse(words).ok_or_else(|| USAGE.to_owned())
    }

    fn parse(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut dirs, mut timeout, mut max_cost) = (Vec::new(), None, None);
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            let value = words.next()?;
            let number = || value.to_str()?.parse().ok();
            match word.to_str()? {
                "--project-dir" => dirs.push(PathBuf::from(value)),
                "--timeout-ms" => timeout = Some(Duration::from_millis(number()?)),
                "--max-cost-micros" => max_cost = Some(number()?),
                _ => return None,
            }
        }
        let _first = dirs.first()?;
        Some(Self { dirs, timeout: timeout?, max_cost, flags: words.collect() })
    }

    /// The directory of runs that name none.
    pub(super) fn first_dir(&self) -> &Path {
        self.dirs.first().map_or(Path::new("."), PathBuf::as_path)
    }

    /// The real path of a project that a caller names.
    fn project(&self, named: Option<&str>) -> Result<PathBuf, String> {
        let Some(named) = named else { return Ok(self.first_dir().to_owned()) };
        let path = self.first_dir().join(named);
        let real = path.canonicalize().ok().filter(|real| self.allows(real));
        // The same words for all: a caller learns nothing about paths outside.
        let real = real.ok_or_else(|| {
            let dirs: Vec<_> = self.dirs.iter().map(|dir| dir.display().to_string()).collect();
            format!(
                "`project`: {named} is no directory in {}; `agentd mcp serve --project-dir` allows others",
                dirs.join(", ")
            )
        })?;
        if real.is_dir() { Ok(real) } else { Err(format!("`project`: {named} is a file")) }
    }

    fn allows(&self, real: &Path) -> bool {
        self.dirs.iter().any(|dir| real.starts_with(dir))
    }
}

impl RunRequest {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// The argument that is wrong, and why.
    pub(super) fn read(arguments: &JsonObject, limits: &Limits) -> Result<Self, String> {
        known(arguments, &["prompt", "project", "budget", "timeout"])?;
        let prompt = text(arguments, "prompt")?.filter(|prompt| !prompt.trim().is_empty());
        let prompt = prompt.ok_or("`prompt` is missing or blank: give the task as text")?;
        if prompt.len() > PROMPT {
            return Err(format!("`prompt` is longer than {} MiB", PROMPT >> 20));
        }
        let timeout = match positive(arguments, "timeout")? {
            Some(seconds) => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            None => limits.timeout,
        };
        let budget = match positive(arguments, "budget")? {
            Some(dollars) => Some(micros(dollars)?),
            None => None,
        };
        Ok(Self {
            prompt: prompt.to_owned(),
            project: limits.project(text(arguments, "project")?)?,
            timeout: timeout.min(limits.timeout).max(Duration::from_millis(1)),
            max_cost: [budget, limits.max_cost].into_iter().flatten().min(),
        })
    }

    /// The words of `agentd`. The prompt is none of them: other users can read a command line.
    pub(super) fn words(&self, limits: &Limits) -> Vec<OsString> {
        let timeout = format!("--timeout={}", self.timeout.as_secs_f64());
        let words = ["run", "--output-format=json", &timeout].map(OsString::from);
        let cost = self.max_cost.map(|micros| {
            let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
            OsString::from(format!("--max-cost={whole}.{part:06}"))
        });
        let mut project = OsString::from("--project-dir=");
        project.push(&self.project);
        words.into_iter().chain(cost).chain([project]).chain(limits.flags.iter().cloned()).collect()
    }
}

fn micros(dollars: f64) -> Result<u64, String> {
    if dollars > DOLLARS || dollars * MICROS < 1.0 {
        return Err("`budget` is a number of US dollars, from 0.000001 to a million".to_owned());
    }
    let micros = format!("{:.0}", dollars * MICROS);
    micros.parse().map_err(|_| "`budget` is a number of US dollars".to_owned())
}

/// Refuses arguments of a tool that takes none.
///
/// # Errors
/// The name of an argument.
pub(super) fn no_arguments(arguments: &JsonObject) -> Result<(), String> {
    known(arguments, &[])
}

fn known(arguments: &JsonObject, names: &[&str]) -> Result<(), String> {
    match arguments.keys().find(|key| !names.contains(&key.as_str())) {
        Some(key) if names.is_empty() => Err(format!("there is no argument `{key}`, nor another")),
        Some(key) => Err(format!("there is no argument `{key}`; there are {}", names.join(", "))),
        None => Ok(()),
    }
}

fn text<'a>(arguments: &'a JsonObject, name: &str) -> Result<Option<&'a str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` is not a text")),
    }
}

fn positive(arguments: &JsonObject, name: &str) -> Result<Option<f64>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(number) if number > 0.0 => Ok(Some(number)),
            Some(_) | None => Err(format!("`{name}` is not a number above 0")),
        },
    }
}

/// The tools as the client lists them.
pub(super) fn tools(limits: &Limits) -> Vec<Tool> {
    let dirs: Vec<_> = limits.dirs.iter().map(|dir| dir.display().to_string()).collect();
    let project = format!(
        "A directory in {}. A relative path begins in the first of them, which is the default.",
        dirs.join(", ")
    );
    let most = match limits.max_cost.map(|micros| micros / 10_000) {
        Some(cents) => format!(" At most {}.{:02}.", cents / 100, cents % 100),
        None => String::new(),
    };
    let run = json!({
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "The task. The agent sees this text and the project."},
            "project": {"type": "string", "description": project},
            "budget": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": format!("Most US dollars that the run may cost.{most}"),
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": format!("Most seconds that the run may take, {} by default and at most.",
                    limits.timeout.as_secs_f64()),
            },
        },
        "required": ["prompt"],
        "additionalProperties": false,
    });
    let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
    vec![
        Tool::new(
            RUN,
            "Give a coding agent one task in a project and wait for its answer. Its commands run in a sandbox. \
             Calls that need an approval are refused.",
            schema(&run),
        )
        .with_annotations(ToolAnnotations::new().read_only(false).open_world(true)),
        Tool::new(SESSIONS, "List the newest agent sessions of these projects.", schema(&none))
            .with_annotations(ToolAnnotations::new().read_only(true).open_world(false)),
    ]
}

fn schema(value: &Value) -> Arc<JsonObject> {
    value.as_object().cloned().map(Arc::new).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn limits(dir: &Path) -> Limits {
        let words = ["--timeout-ms", "60000", "--max-cost-micros", "2500000", "--project-dir"];
        let flags = ["--", "--permission-mode=plan"].map(OsString::from);
        let words = words.map(OsString::from).into_iter().chain([dir.into()]).chain(flags);
        Limits::read(words).unwrap()
    }

    fn read(limits: &Limits, arguments: Value) -> Result<Vec<String>, String> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let words = RunRequest::read(&arguments, limits)?.words(limits);
        Ok(words.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    #[test]
    fn a_run_gets_the_smaller_of_the_callers_and_the_persons_limits() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let limits = limits(&dir);
        let project = format!("--project-dir={}", dir.display());
        for (arguments, timeout, cost) in [
            (json!({"prompt": "x"}), "60", "2.500000"),
            (json!({"prompt": "x", "timeout": 1.5, "budget": 0.25}), "1.5", "0.250000"),
            (json!({"prompt": "x", "timeout": 1e300, "budget": 9}), "60", "2.500000"),
        ] {
            let words = read(&limits, arguments).unwrap();
            let (timeout, cost) = (format!("--timeout={timeout}"), format!("--max-cost={cost}"));
            let head = ["run", "--output-format=json", &timeout, &cost, &project];
            assert_eq!(words, [&head[..], &["--permission-mode=plan"]].concat());
        }
    }

    #[test]
    fn a_wrong_argument_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let limits = limits(&dir.path().canonicalize().unwrap());
        for (arguments, why) in [
            (json!({}), "`prompt` is missing"),
            (json!({"prompt": " "}), "`prompt` is missing or blank"),
            (json!({"prompt": 1}), "`prompt` is not a text"),
            (json!({"prompt": "x", "budget": 0}), "`budget` is not a number above 0"),
            (json!({"prompt": "x", "budget": 1e9}), "`budget` is a number of US dollars"),
            (json!({"prompt": "x", "timeout": "9"}), "`timeout` is not a number above 0"),
            (json!({"prompt": "x", "permission_mode": "auto"}), "no argument `permission_mode`"),
            (json!({"prompt": "x", "project": "absent"}), "`project`: absent is no directory in"),
        ] {
            let refused = read(&limits, arguments).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_project_outside_is_refused_also_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for dir in ["in/below", "in-not", "out"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        std::fs::write(root.join("in/file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("out"), root.join("in/link")).unwrap();
        let limits = limits(&root.join("in"));
        let refused = |name: &str| limits.project(Some(name)).unwrap_err();
        for outside in ["..", "../out", "../in-not", "link", "/", "below/../.."] {
            assert!(refused(outside).contains("is no directory in"), "{outside}");
        }
        assert!(refused("file").contains("is a file"));
        assert_eq!(limits.project(Some("below")), Ok(root.join("in/below")), "the control");
        assert_eq!(limits.project(None), Ok(root.join("in")));
    }
}
