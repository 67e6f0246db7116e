//! Checklists: the steps of a longer task, and their progress. Pure.

use serde_json::{Map, Value};

/// Maximum number of lists in a session.
const LISTS: usize = 20;
/// Most steps of a list.
const ITEMS: usize = 100;
/// Most characters of a step, a title or a name.
const CHARS: usize = 300;

/// Why a list could not be made or changed: a stable word, a sentence and a way on.
pub(crate) type Refusal = (&'static str, String, String);

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepStatus {
    Pending,
    InProgress,
    Done,
    Failed,
}

impl StepStatus {
    fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::InProgress, Self::Done, Self::Failed]
            .into_iter()
            .find(|status| status.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Done => "[x]",
            Self::Failed => "[!]",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Checklist {
    group: String,
    title: String,
    items: Vec<(String, StepStatus)>,
}

/// The lists of a session, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checklists {
    lists: Vec<Checklist>,
}

/// A list as it is now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChecklistView {
    /// Its text.
    pub text: String,
    /// In one line.
    pub summary: String,
}

impl Checklists {
    /// Makes a list, or makes it anew.
    pub(crate) fn create(&mut self, input: &Map<String, Value>) -> Result<ChecklistView, Refusal> {
        let (group, title) = (word(input, "group")?, word(input, "title")?);
        let items: Vec<&str> = match input.get("items").and_then(Value::as_array) {
            Some(items) => items.iter().filter_map(Value::as_str).map(str::trim).collect(),
            None => Vec::new(),
        };
        if items.is_empty() || items.len() > ITEMS {
            let text = format!("a checklist has 1 to {ITEMS} items, this one {}", items.len());
            return Err(invalid(text, "Name the steps of the task."));
        }
        for (at, item) in items.iter().enumerate() {
            if item.is_empty() || item.chars().count() > CHARS {
                let text = format!("items[{at}] is empty or longer than {CHARS} characters");
                return Err(invalid(text, "Put a step into a few words."));
            }
            if items[..at].contains(item) {
                let text = format!("items[{at}] occurs twice in the list");
                return Err(invalid(text, "Give each step words of its own."));
            }
        }
        let said = input.get("statuses").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let said = said.iter().filter_map(|word| StepStatus::parse(word.as_str()?));
        let statuses = said.chain(std::iter::repeat(StepStatus::Pending));
        let items = items.into_iter().map(str::to_owned).zip(statuses).collect();
        let list = Checklist { group, title, items };
        let view = list.view();
        let same = self.lists.iter().position(|other| other.group == list.group);
        match same {
            Some(at) => self.lists[at] = list,
            None if self.lists.len() >= LISTS => {
                let text = format!("there are {LISTS} checklists already");
                return Err(invalid(text, "Use the group of one that is over."));
            }
            None => self.lists.push(list),
        }
        Ok(view)
    }

    /// Says how far one step is.
    pub(crate) fn update(&mut self, input: &Map<String, Value>) -> Result<ChecklistView, Refusal> {
        let (group, item) = (word(input, "group")?, word(input, "item")?);
        let status = word(input, "status")?;
        let Some(status) = StepStatus::parse(&status) else {
            let text = format!("{status:?} is no status");
            return Err(invalid(text, "There are pending, in_progress, done and failed."));
        };
        let groups: Vec<String> = self.lists.iter().map(|list| list.group.clone()).collect();
        let Some(list) = self.lists.iter_mut().find(|list| list.group == group) else {
            let hint = match groups.is_empty() {
                true => "Make one with checklist_create.".to_owned(),
                false => format!("There are {}.", groups.join(", ")),
            };
            return Err(("not_found", format!("there is no checklist {group:?}"), hint));
        };
        let by_text = list.items.iter().position(|(text, _)| *text == item);
        let by_number = || item.parse::<usize>().ok()?.checked_sub(1);
        let found = by_text.or_else(by_number).and_then(|at| list.items.get_mut(at));
        let Some((_, now)) = found else {
            let text = format!("the checklist {group:?} has no item {item:?}");
            let hint = format!("Its items:\n{}", list.lines());
            return Err(("not_found", text, hint));
        };
        *now = status;
        Ok(list.view())
    }

    /// The current lists with unfinished steps; none if there are none.
    pub(crate) fn open(&self) -> Option<String> {
        let to_do =
            |status: &StepStatus| matches!(status, StepStatus::Pending | StepStatus::InProgress);
        let open = self.lists.iter().filter(|list| list.items.iter().any(|(_, s)| to_do(s)));
        let texts: Vec<String> = open.map(|list| list.view().text).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }
}

impl Checklist {
    fn lines(&self) -> String {
        let lines = self.items.iter().zip(1..);
        lines.map(|((item, status), n)| format!("{} {n}. {item}\n", status.mark())).collect()
    }

    fn view(&self) -> ChecklistView {
        let count = |wanted| self.items.iter().filter(|(_, status)| *status == wanted).count();
        let mut far = format!("{} of {} done", count(StepStatus::Done), self.items.len());
        if count(StepStatus::Failed) > 0 {
            far.push_str(&format!(", {} failed", count(StepStatus::Failed)));
        }
        let now = self.items.iter().find(|(_, status)| *status == StepStatus::InProgress);
        let now = now.map_or_else(String::new, |(item, _)| format!(", now: {item}"));
        ChecklistView {
            text: format!("{} ({}): {far}\n{}", self.title, self.group, self.lines()),
            summary: format!("{}: {far}{now}", self.title),
        }
    }
}

fn word(input: &Map<String, Value>, field: &str) -> Result<String, Refusal> {
    let text = input.get(field).and_then(Value::as_str).unwrap_or_default().trim();
    if text.is_empty() || text.chars().count() > CHARS || text.contains(char::is_control) {
        let text = format!("{field} must be 1 to {CHARS} characters on one line");
        return Err(invalid(text, "Put it into a few words."));
    }
    Ok(text.to_owned())
}

fn invalid(text: String, hint: &str) -> Refusal {
    ("invalid_arguments", text, hint.to_owned())
}
