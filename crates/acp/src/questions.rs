//! The session's open questions, as requests to the editor, and its answers. A terminal may answer first. An answer
//! gives no more than the question offers.

use crate::params::Reply;
use crate::updates::{text_content, tool_fields};
use client::question_title;
use protocol::call::Call;
use protocol::hidden::on_screen;
use protocol::ids::CallId;
use protocol::judgement::{
    Ask, AskedQuestion, ChosenAnswer, PermissionMode, PersonAnswer, Picks, Question,
};
use serde_json::{Map, Value, json};

/// If the editor shows forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forms {
    Shown,
    Unknown,
}

/// A request to the editor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EditorRequest {
    pub(crate) id: String,
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

/// What an answer of the editor leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answered {
    /// The session gets it, with the digest of the question.
    Answer(CallId, String, PersonAnswer),
    /// The editor is asked on.
    Next(EditorRequest),
    /// Nothing yet: the question stays open for terminals. The words are for the person.
    Open(String),
    /// Nothing.
    Nothing,
}

/// The questions that are open.
#[derive(Debug)]
pub(crate) struct WaitingQuestions {
    forms: Forms,
    /// The project's path, for titles.
    project: String,
    open: Vec<WaitingQuestion>,
    /// Of the next request, for its id.
    number: u64,
}

#[derive(Debug)]
struct WaitingQuestion {
    question: Question,
    state: QuestionState,
    /// Answers to the first questions of the model.
    given: Vec<ChosenAnswer>,
}

#[derive(Debug, Clone, PartialEq)]
enum QuestionState {
    NotAsked,
    /// This request waits at the editor.
    Asked(String),
    /// The session decides about this answer.
    Answered(PersonAnswer),
    /// It asks again: the answer was lost with a process, and is given again.
    Lost(PersonAnswer),
    /// The editor gave no answer. Terminals may.
    LeftOpen,
}

/// An option of a request.
struct OfferedOption {
    id: String,
    name: String,
    kind: &'static str,
    answer: OptionAnswer,
}

enum OptionAnswer {
    Person(PersonAnswer),
    /// To the present question of the model.
    Label(String),
}

impl WaitingQuestions {
    pub(crate) fn new(forms: Forms, project: String) -> Self {
        Self { forms, project, open: Vec::new(), number: 0 }
    }

    /// A question is open. One that the editor is asked already stays as it is.
    pub(crate) fn add(&mut self, question: &Question) {
        let same = |open: &&mut WaitingQuestion| {
            open.question.call == question.call && open.question.digest == question.digest
        };
        if let Some(open) = self.open.iter_mut().find(same) {
            if let QuestionState::Answered(answer) = &open.state {
                open.state = QuestionState::Lost(answer.clone());
            }
            return;
        }
        self.open.retain(|open| open.question.call != question.call);
        let (question, state, given) = (question.clone(), QuestionState::NotAsked, Vec::new());
        self.open.push(WaitingQuestion { question, state, given });
    }

    /// Requests for the questions that the editor was not asked.
    pub(crate) fn ask(&mut self, call: impl Fn(&CallId) -> Option<Call>) -> Vec<EditorRequest> {
        let mut requests = Vec::new();
        for open in &mut self.open {
            if open.state == QuestionState::NotAsked {
                self.number += 1;
                requests.push(open.ask(self.number, (self.forms, &self.project), &call));
            }
        }
        requests
    }

    /// Answers that were lost.
    pub(crate) fn lost_answers(&mut self) -> Vec<Answered> {
        let mut again = Vec::new();
        for open in &mut self.open {
            if let QuestionState::Lost(answer) = open.state.clone() {
                again.push(open.answered(answer));
            }
        }
        again
    }

    /// The answer did not count. The question is asked again, if it is still open.
    pub(crate) fn rejected(&mut self, id: &CallId) {
        let open = self.open.iter_mut().find(|open| open.question.call == *id);
        if let Some(open) = open {
            open.state = QuestionState::NotAsked;
            open.given.clear();
        }
    }

    /// A question is open no more. Returns the request that waits at the editor for nothing.
    pub(crate) fn remove(&mut self, id: &CallId) -> Option<String> {
        let place = self.open.iter().position(|open| open.question.call == *id)?;
        match self.open.remove(place).state {
            QuestionState::Asked(request) => Some(request),
            QuestionState::NotAsked
            | QuestionState::Answered(_)
            | QuestionState::Lost(_)
            | QuestionState::LeftOpen => None,
        }
    }

    /// The editor answers a request. None if it is no request of this session, or one that was withdrawn.
    pub(crate) fn reply(
        &mut self,
        id: &str,
        reply: Reply,
        call: impl Fn(&CallId) -> Option<Call>,
    ) -> Option<Answered> {
        let forms = self.forms;
        let is_it = |open: &&mut WaitingQuestion| matches!(&open.state, QuestionState::Asked(asked) if asked == id);
        let open = self.open.iter_mut().find(is_it)?;
        open.state = QuestionState::LeftOpen;
        Some(match reply {
            Reply::Selected(option) => {
                let chosen = open.choices().into_iter().find(|choice| choice.id == option);
                match chosen.map(|choice| choice.answer) {
                    Some(OptionAnswer::Person(person)) => open.answered(person),
                    Some(OptionAnswer::Label(label)) => {
                        open.given.push(ChosenAnswer { labels: vec![label], words: String::new() });
                        if open.given.len() == open.question.of_model().len() {
                            let all = std::mem::take(&mut open.given);
                            return Some(open.answered(PersonAnswer::Chosen(all)));
                        }
                        self.number += 1;
                        Answered::Next(open.ask(self.number, (forms, &self.project), &call))
                    }
                    None => Answered::Open(format!(
                        "the editor chose {option:?}, which was not offered; {}",
                        open.way_on()
                    )),
                }
            }
            Reply::Filled(content) => match filled(open.question.of_model(), &content) {
                Some(all) => open.answered(PersonAnswer::Chosen(all)),
                None => {
                    self.number += 1;
                    let mut again = open.ask(self.number, (forms, &self.project), &call);
                    again.params["message"] =
                        "Each question needs an answer: an option, or words of your own.".into();
                    Answered::Next(again)
                }
            },
            Reply::Declined => open.answered(PersonAnswer::Deny(String::new())),
            // A form that is put away is a no; a permission request is cancelled with its turn.
            Reply::Cancelled if open.is_form(forms) => {
                open.answered(PersonAnswer::Deny(String::new()))
            }
            Reply::Cancelled => Answered::Nothing,
            Reply::Failed(why) => {
                Answered::Open(format!("the editor did not answer ({why}); {}", open.way_on()))
            }
        })
    }
}

impl WaitingQuestion {
    /// The session gets an answer.
    fn answered(&mut self, answer: PersonAnswer) -> Answered {
        self.state = QuestionState::Answered(answer.clone());
        let Question { call, digest, .. } = &self.question;
        Answered::Answer(call.clone(), digest.clone(), answer)
    }

    fn is_form(&self, forms: Forms) -> bool {
        forms == Forms::Shown && !self.question.of_model().is_empty()
    }

    fn way_on(&self) -> String {
        format!("answer at a terminal: `agentd attach {}`", self.question.call.session)
    }

    /// The request for it, or for the next of several.
    fn ask(
        &mut self,
        number: u64,
        (forms, project): (Forms, &str),
        call: &impl Fn(&CallId) -> Option<Call>,
    ) -> EditorRequest {
        let id = format!("{}/{number}", self.question.call);
        self.state = QuestionState::Asked(id.clone());
        let session = self.question.call.session.0.as_str();
        if self.is_form(forms) {
            let params = json!({
                "sessionId": session,
                "toolCallId": self.question.call.to_string(),
                "mode": "form",
                "message": "The model asks you.",
                "requestedSchema": schema(self.question.of_model()),
            });
            return EditorRequest { id, method: "elicitation/create", params };
        }
        let options: Vec<Value> = self
            .choices()
            .iter()
            .map(|choice| json!({"optionId": choice.id, "name": choice.name, "kind": choice.kind}))
            .collect();
        let params = json!({
            "sessionId": session,
            "toolCall": self.tool_call(project, call(&self.question.call)),
            "options": options,
        });
        EditorRequest { id, method: "session/request_permission", params }
    }

    /// What the person must see to decide.
    fn tool_call(&self, project: &str, call: Option<Call>) -> Value {
        let question = &self.question;
        let mut fields = match call {
            Some(call) => tool_fields(&call),
            None => {
                json!({"toolCallId": question.call.to_string(), "kind": "other", "content": []})
            }
        };
        let mut words: Vec<String> = Vec::new();
        let present = self.present();
        let title = match present {
            Some(asked) => on_screen(&asked.text),
            None => question_title(question, project),
        };
        fields["title"] = title.into();
        if let Some(asked) = present {
            let option = |option: &protocol::judgement::AskedOption| {
                format!("{}: {}", option.label, option.description)
            };
            words.extend(asked.options.iter().map(option));
            if asked.picks == Picks::Several {
                words.push(format!(
                    "Several may be chosen, which this editor cannot show: choose one, or {}",
                    self.way_on()
                ));
            }
        } else {
            words.extend(
                [&question.preview, &question.reason]
                    .into_iter()
                    .map(|text: &String| on_screen(text)),
            );
            words.push(format!("Sandbox: {}", on_screen(&question.confinement)));
        }
        if let Ask::Form { lines } = &question.ask {
            words.push(format!(
                "It wants a form filled in:\n{}\nTo fill it in, {}",
                lines.join("\n"),
                self.way_on()
            ));
        }
        let words = words.into_iter().filter(|text| !text.trim().is_empty());
        let text = text_content(&words.collect::<Vec<_>>().join("\n\n"));
        if let Some(content) = fields.get_mut("content").and_then(Value::as_array_mut) {
            content.push(text);
        }
        fields["_meta"] = json!({"agentd": {
            "sandbox": question.confinement,
            "reason": question.reason,
            "widens": question.widens.iter().map(client::describe_widening).collect::<Vec<_>>(),
            "deadline_ms": question.deadline,
        }});
        fields
    }

    /// The question of the model that is to be answered.
    fn present(&self) -> Option<&AskedQuestion> {
        self.question.of_model().get(self.given.len())
    }

    fn choices(&self) -> Vec<OfferedOption> {
        let choice = |id: &str, name: &str, kind, answer| OfferedOption {
            id: id.to_owned(),
            name: name.to_owned(),
            kind,
            answer: OptionAnswer::Person(answer),
        };
        let no = |name| choice("no", name, "reject_once", PersonAnswer::Deny(String::new()));
        let once = |name| choice("once", name, "allow_once", PersonAnswer::Once);
        match &self.question.ask {
            Ask::Call { rules, modes: _ } => {
                let mut choices = vec![once("Yes, this once")];
                if let Some(rule) = rules.first() {
                    let shown = on_screen(rule);
                    choices.push(choice(
                        "session",
                        &format!("Yes, and {shown} until the session ends"),
                        "allow_always",
                        PersonAnswer::Session(rule.clone()),
                    ));
                    choices.push(choice(
                        "project",
                        &format!("Yes, and {shown} in this project from now on"),
                        "allow_always",
                        PersonAnswer::Always(rule.clone()),
                    ));
                }
                choices.push(no("No"));
                choices
            }
            Ask::Plan { modes } => {
                let of = |mode: &PermissionMode| {
                    let name = mode.name();
                    let answer = PersonAnswer::Mode(*mode);
                    choice(
                        &format!("mode-{name}"),
                        &format!("Yes, in the mode {name}"),
                        "allow_once",
                        answer,
                    )
                };
                modes.iter().map(of).chain([no("No, plan on")]).collect()
            }
            Ask::Visit => vec![once("Go on: the page was visited"), no("No")],
            Ask::Form { .. } => vec![no("No: the server gets no answer")],
            Ask::Choose { .. } => {
                let options = self.present().map_or(&[][..], |asked| &asked.options);
                let of =
                    |(place, option): (usize, &protocol::judgement::AskedOption)| OfferedOption {
                        id: format!("option-{}", place + 1),
                        name: option.label.clone(),
                        kind: "allow_once",
                        answer: OptionAnswer::Label(option.label.clone()),
                    };
                options
                    .iter()
                    .enumerate()
                    .map(of)
                    .chain([no("No answer: the model decides")])
                    .collect()
            }
        }
    }
}

/// The form of the model's questions: for each its options, and words of one's own.
fn schema(questions: &[AskedQuestion]) -> Value {
    let mut properties = Map::new();
    for (number, asked) in (1..).zip(questions) {
        let title = if asked.header.is_empty() {
            format!("Question {number}")
        } else {
            asked.header.clone()
        };
        let options: Vec<Value> = asked
            .options
            .iter()
            .map(|option| json!({"const": option.label, "title": option.label, "description": option.description}))
            .collect();
        let words = json!({"type": "string", "title": title, "description": asked.text});
        let (choice, own) = match (options.is_empty(), asked.picks) {
            (true, _) => (None, words),
            (false, Picks::One) => {
                let mut choice = words;
                choice["oneOf"] = options.into();
                (
                    Some(choice),
                    json!({"type": "string", "title": format!("{title}, in your own words")}),
                )
            }
            (false, Picks::Several) => {
                let choice = json!({
                    "type": "array", "title": title, "description": asked.text, "items": {"anyOf": options},
                });
                (
                    Some(choice),
                    json!({"type": "string", "title": format!("{title}, in your own words")}),
                )
            }
        };
        properties.extend(choice.map(|choice| (format!("q{number}"), choice)));
        properties.insert(format!("q{number}_words"), own);
    }
    json!({"type": "object", "properties": properties})
}

/// The answers of a form; none if a question has neither a known option nor words.
fn filled(questions: &[AskedQuestion], content: &Map<String, Value>) -> Option<Vec<ChosenAnswer>> {
    let answer = |(number, asked): (usize, &AskedQuestion)| {
        let words =
            content.get(&format!("q{number}_words")).and_then(Value::as_str).unwrap_or_default();
        let named = match content.get(&format!("q{number}")) {
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
                Vec::new()
            }
        };
        let is_known = |label: &&str| asked.options.iter().any(|option| option.label == **label);
        let mut labels: Vec<String> =
            named.into_iter().filter(is_known).map(str::to_owned).collect();
        labels.dedup();
        if asked.picks == Picks::One {
            labels.truncate(1);
        }
        let answer = ChosenAnswer { labels, words: words.trim().to_owned() };
        (answer != ChosenAnswer::default()).then_some(answer)
    };
    (1..).zip(questions).map(answer).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::ids::SessionId;
    use protocol::judgement::AskedOption;

    fn question(ask: Ask) -> Question {
        Question {
            call: CallId { session: SessionId("s".to_owned()), number: 3 },
            tool: "bash".to_owned(),
            input: r#"{"command":"make"}"#.to_owned(),
            preview: "make".to_owned(),
            confinement: "full".to_owned(),
            reason: "no rule".to_owned(),
            widens: Vec::new(),
            ask,
            deadline: 0,
            digest: "d".to_owned(),
        }
    }

    fn asked(text: &str, picks: Picks) -> AskedQuestion {
        let option =
            |label: &str| AskedOption { label: label.to_owned(), description: String::new() };
        let options = vec![option("red"), option("blue")];
        AskedQuestion { header: String::new(), text: text.to_owned(), picks, options }
    }

    fn opened(forms: Forms, ask: Ask) -> (WaitingQuestions, EditorRequest) {
        let mut open = WaitingQuestions::new(forms, "/p".to_owned());
        open.add(&question(ask));
        let mut requests = open.ask(|_| None);
        assert_eq!(requests.len(), 1);
        assert!(open.ask(|_| None).is_empty(), "it is asked once");
        (open, requests.remove(0))
    }

    fn selected(open: &mut WaitingQuestions, id: &str, option: &str) -> Option<Answered> {
        open.reply(id, Reply::Selected(option.to_owned()), |_| None)
    }

    #[test]
    fn an_answer_gives_what_its_option_says_and_no_more() {
        let rules = vec!["bash:make".to_owned(), "bash:*".to_owned()];
        let call = || Ask::Call { rules: rules.clone(), modes: Vec::new() };
        for (option, answer) in [
            ("once", PersonAnswer::Once),
            ("session", PersonAnswer::Session("bash:make".to_owned())),
            ("project", PersonAnswer::Always("bash:make".to_owned())),
            ("no", PersonAnswer::Deny(String::new())),
        ] {
            let (mut open, request) = opened(Forms::Unknown, call());
            let id = question(call()).call;
            let wanted = Answered::Answer(id, "d".to_owned(), answer);
            assert_eq!(selected(&mut open, &request.id, option), Some(wanted));
            assert!(selected(&mut open, &request.id, "once").is_none(), "only the first counts");
        }
        let (mut open, request) =
            opened(Forms::Unknown, Ask::Call { rules: Vec::new(), modes: Vec::new() });
        assert_eq!(request.params["options"].as_array().unwrap().len(), 2);
        // An option that was not offered opens nothing.
        assert!(matches!(selected(&mut open, &request.id, "session"), Some(Answered::Open(_))));
    }

    #[test]
    fn a_question_that_comes_again_is_not_asked_twice_and_a_changed_one_is_asked_anew() {
        let call = || Ask::Call { rules: Vec::new(), modes: Vec::new() };
        let (mut open, request) = opened(Forms::Unknown, call());
        open.add(&question(call()));
        assert!(open.ask(|_| None).is_empty());
        open.add(&Question { digest: "e".to_owned(), ..question(call()) });
        let again = open.ask(|_| None).remove(0);
        assert_ne!(again.id, request.id);
        assert!(selected(&mut open, &request.id, "once").is_none(), "it was about another call");
        assert_eq!(open.remove(&question(call()).call), Some(again.id));
    }

    #[test]
    fn a_rejected_answer_is_asked_for_again() {
        let call = || Ask::Call { rules: Vec::new(), modes: Vec::new() };
        let (mut open, request) = opened(Forms::Unknown, call());
        selected(&mut open, &request.id, "once");
        assert!(open.ask(|_| None).is_empty());
        open.rejected(&question(call()).call);
        assert_eq!(open.ask(|_| None).len(), 1);
    }

    /// The session asks again what was answered: the answer died with a process.
    #[test]
    fn a_lost_answer_is_given_again() {
        let call = || Ask::Call { rules: Vec::new(), modes: Vec::new() };
        let (mut open, request) = opened(Forms::Unknown, call());
        let given = selected(&mut open, &request.id, "once").unwrap();
        assert!(open.lost_answers().is_empty());
        open.add(&question(call()));
        assert_eq!(open.lost_answers(), [given]);
        assert!(open.lost_answers().is_empty() && open.ask(|_| None).is_empty());
    }

    #[test]
    fn questions_of_the_model_are_a_form_where_there_are_forms_and_else_one_by_one() {
        let ask = || Ask::Choose {
            questions: vec![asked("Which?", Picks::One), asked("And?", Picks::Several)],
        };
        let (mut open, request) = opened(Forms::Shown, ask());
        assert_eq!(request.method, "elicitation/create");
        let fill = |open: &mut WaitingQuestions, id: &str, content: Value| {
            open.reply(id, Reply::Filled(content.as_object().unwrap().clone()), |_| None)
        };
        // The second question has no answer: a label that was not offered is none.
        let half = fill(&mut open, &request.id, json!({"q1": "red", "q2": ["green"]}));
        let Some(Answered::Next(again)) = half else { panic!("{half:?}") };
        let all = fill(
            &mut open,
            &again.id,
            json!({"q1": "red", "q1_words": "dark", "q2": ["red", "blue"]}),
        );
        let Some(Answered::Answer(_, _, PersonAnswer::Chosen(chosen))) = all else {
            panic!("{all:?}")
        };
        assert_eq!((chosen[0].words.as_str(), chosen[1].labels.len()), ("dark", 2));

        let (mut open, request) = opened(Forms::Unknown, ask());
        assert_eq!(request.params["toolCall"]["title"], "Which?");
        let Some(Answered::Next(next)) = selected(&mut open, &request.id, "option-2") else {
            panic!()
        };
        assert_eq!(next.params["toolCall"]["title"], "And?");
        let Some(Answered::Answer(_, _, PersonAnswer::Chosen(chosen))) =
            selected(&mut open, &next.id, "option-1")
        else {
            panic!()
        };
        assert_eq!((chosen[0].labels[0].as_str(), chosen[1].labels[0].as_str()), ("blue", "red"));
    }

    #[test]
    fn an_editor_that_cannot_ask_leaves_the_question_open() {
        let (mut open, request) = opened(Forms::Unknown, Ask::Visit);
        let reply = open.reply(&request.id, Reply::Failed("no such method".to_owned()), |_| None);
        assert!(matches!(reply, Some(Answered::Open(words)) if words.contains("agentd attach s")));
        assert!(open.ask(|_| None).is_empty(), "the editor is left alone with it");
        assert!(open.remove(&question(Ask::Visit).call).is_none(), "no request waits there");
    }
}
