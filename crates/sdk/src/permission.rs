//! Open questions as requests to the program's permission callback. A terminal may answer first. A yes gives this call
//! or, where the program asks for it, the narrowest rule that the question offers for the session.

use crate::lines::{AfterDeny, KeptPermission, PermissionReply};
use crate::names::tool;
use protocol::hidden::on_screen;
use protocol::ids::CallId;
use protocol::judgement::{Ask, AskedQuestion, ChosenAnswer, PersonAnswer, Question};
use serde_json::{Value, json};
use std::path::PathBuf;

/// If the program has a permission callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionCallback {
    /// It answers.
    Answers,
    /// Nobody is asked.
    Absent,
}

/// The questions that the program was asked.
#[derive(Debug)]
pub(crate) struct AskedProgram {
    project: PathBuf,
    open: Vec<ProgramQuestion>,
    /// Of the next request, for its id.
    number: u64,
}

#[derive(Debug)]
struct ProgramQuestion {
    question: Question,
    /// The arguments as the program got them.
    input: Value,
    state: QuestionState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum QuestionState {
    NotAsked,
    /// The request waits at the program.
    Asked(String),
    /// The session decides about this answer.
    Answered(PersonAnswer),
    /// It asks again: the answer was lost with a process, and is given again.
    Lost(PersonAnswer),
}

/// What an answer of the program gives the session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgramAnswer {
    pub(crate) call: CallId,
    pub(crate) digest: String,
    pub(crate) answer: PersonAnswer,
}

impl AskedProgram {
    pub(crate) fn new(project: PathBuf) -> Self {
        Self { project, open: Vec::new(), number: 0 }
    }

    /// A question is open. One that the program is asked already stays as it is.
    pub(crate) fn add(&mut self, question: &Question) {
        let same = |open: &&mut ProgramQuestion| {
            open.question.call == question.call && open.question.digest == question.digest
        };
        if let Some(open) = self.open.iter_mut().find(same) {
            if let QuestionState::Answered(answer) = &open.state {
                open.state = QuestionState::Lost(answer.clone());
            }
            return;
        }
        self.open.retain(|open| open.question.call != question.call);
        let own = serde_json::from_str(&question.input).unwrap_or_default();
        let (_, input) = tool(&question.tool, &own, &self.project);
        let (question, state) = (question.clone(), QuestionState::NotAsked);
        self.open.push(ProgramQuestion { question, input, state });
    }

    /// Requests for the questions that the program was not asked. `use_id` finds the vendor's name of a call.
    pub(crate) fn ask(&mut self, use_id: impl Fn(&CallId) -> Option<String>) -> Vec<Value> {
        let mut requests = Vec::new();
        for open in self.open.iter_mut().filter(|open| open.state == QuestionState::NotAsked) {
            self.number += 1;
            let id = format!("{}/{}", open.question.call, self.number);
            open.state = QuestionState::Asked(id.clone());
            let question = &open.question;
            let (name, _) = tool(&question.tool, &Value::Null, &self.project);
            requests.push(json!({
                "type": "control_request",
                "request_id": id,
                "request": {
                    "subtype": "can_use_tool",
                    "tool_name": name,
                    "input": open.input,
                    "permission_suggestions": question.rules().iter().take(1).map(|rule| json!({
                        "type": "addRules", "behavior": "allow", "destination": "session",
                        "rules": [{"toolName": name, "ruleContent": rule}],
                    })).collect::<Vec<_>>(),
                    "decision_reason": on_screen(&question.reason),
                    "description": on_screen(&question.confinement),
                    "tool_use_id": use_id(&question.call),
                },
            }));
        }
        requests
    }

    /// Answers that were lost.
    pub(crate) fn lost_answers(&mut self) -> Vec<ProgramAnswer> {
        let mut again = Vec::new();
        for open in &mut self.open {
            if let QuestionState::Lost(answer) = open.state.clone() {
                open.state = QuestionState::Answered(answer.clone());
                again.push(open.with(answer));
            }
        }
        again
    }

    /// The answer did not count. The question is asked again, if it is still open.
    pub(crate) fn rejected(&mut self, id: &CallId) {
        if let Some(open) = self.open.iter_mut().find(|open| open.question.call == *id) {
            open.state = QuestionState::NotAsked;
        }
    }

    /// A question is open no more. Returns the request that waits at the program for nothing.
    pub(crate) fn remove(&mut self, id: &CallId) -> Option<String> {
        let place = self.open.iter().position(|open| open.question.call == *id)?;
        match self.open.remove(place).state {
            QuestionState::Asked(request) => Some(request),
            QuestionState::NotAsked | QuestionState::Answered(_) | QuestionState::Lost(_) => None,
        }
    }

    /// The program answers. None if it is no request of ours, or one that was withdrawn.
    pub(crate) fn reply(&mut self, id: &str, reply: PermissionReply) -> Option<ProgramAnswer> {
        let is_it = |open: &&mut ProgramQuestion| matches!(&open.state, QuestionState::Asked(asked) if asked == id);
        let open = self.open.iter_mut().find(is_it)?;
        let given = open.answer(reply);
        open.state = QuestionState::Answered(given.answer.clone());
        Some(given)
    }

    /// The program cannot answer any more: a no to each question.
    pub(crate) fn deny_all(&mut self) -> Vec<ProgramAnswer> {
        let is_open = |open: &&mut ProgramQuestion| {
            matches!(open.state, QuestionState::NotAsked | QuestionState::Asked(_))
        };
        let open = self.open.iter_mut().filter(is_open);
        open.map(|open| {
            let given = open.with(PersonAnswer::Deny(
                "The program that would answer has closed its input".to_owned(),
            ));
            open.state = QuestionState::Answered(given.answer.clone());
            given
        })
        .collect()
    }
}

impl ProgramQuestion {
    fn with(&self, answer: PersonAnswer) -> ProgramAnswer {
        let Question { call, digest, .. } = &self.question;
        ProgramAnswer { call: call.clone(), digest: digest.clone(), answer }
    }

    fn answer(&self, reply: PermissionReply) -> ProgramAnswer {
        let deny = |why: &str| self.with(PersonAnswer::Deny(why.to_owned()));
        match reply {
            PermissionReply::Failed(why) => deny(&format!("The permission callback failed: {why}")),
            PermissionReply::Deny { message: _, interrupts: AfterDeny::Interrupt } => {
                self.with(PersonAnswer::Stop)
            }
            PermissionReply::Deny { message, interrupts: AfterDeny::GoOn } => deny(&message),
            PermissionReply::Allow { input, keeps } => match &self.question.ask {
                Ask::Choose { questions } => match chosen(questions, input.as_ref()) {
                    Some(all) => self.with(PersonAnswer::Chosen(all)),
                    None => deny(
                        "The program gave no answer to a question; choose, and say what you chose",
                    ),
                },
                _ if input.as_ref().is_some_and(|input| *input != self.input) => deny(
                    "The program wants other arguments than you gave, which agentd does not put in: call the tool with them",
                ),
                Ask::Call { rules, modes: _ } => match (keeps, rules.first()) {
                    (KeptPermission::Session, Some(rule)) => {
                        self.with(PersonAnswer::Session(rule.clone()))
                    }
                    (KeptPermission::Session | KeptPermission::Once, _) => {
                        self.with(PersonAnswer::Once)
                    }
                },
                Ask::Plan { modes } => match modes.first() {
                    Some(mode) => self.with(PersonAnswer::Mode(*mode)),
                    None => deny("no mode is left for the plan"),
                },
                Ask::Visit => self.with(PersonAnswer::Once),
                Ask::Form { .. } => deny("a program cannot fill in the form of an MCP server"),
            },
        }
    }
}

/// The answers of the program: by question, a label, several with commas between them, or words.
fn chosen(questions: &[AskedQuestion], input: Option<&Value>) -> Option<Vec<ChosenAnswer>> {
    let answers = input?.get("answers")?;
    let of = |asked: &AskedQuestion| {
        let given = answers.get(&asked.text)?.as_str()?.trim();
        let is_label = |text: &str| asked.options.iter().any(|option| option.label == text);
        let parts: Vec<&str> = given.split(", ").collect();
        let labels = match (is_label(given), parts.iter().all(|part| is_label(part))) {
            (true, _) => vec![given.to_owned()],
            (false, true) => parts.into_iter().map(str::to_owned).collect(),
            (false, false) => Vec::new(),
        };
        let words = if labels.is_empty() { given.to_owned() } else { String::new() };
        let answer = ChosenAnswer { labels, words };
        (answer != ChosenAnswer::default()).then_some(answer)
    };
    questions.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::ids::SessionId;
    use protocol::judgement::{AskedOption, PermissionMode, Picks};

    fn asked(ask: Ask) -> (AskedProgram, String) {
        let mut program = AskedProgram::new("/p".into());
        program.add(&question(ask));
        let requests = program.ask(|_| None);
        assert!(program.ask(|_| None).is_empty(), "it is asked once");
        let id = requests[0]["request_id"].as_str().unwrap().to_owned();
        (program, id)
    }

    fn question(ask: Ask) -> Question {
        Question {
            call: CallId { session: SessionId("s".to_owned()), number: 3 },
            tool: "edit".to_owned(),
            input: r#"{"path":"a","old_string":"x","new_string":"y"}"#.to_owned(),
            preview: String::new(),
            confinement: String::new(),
            reason: String::new(),
            widens: Vec::new(),
            ask,
            deadline: 0,
            digest: "d".to_owned(),
        }
    }

    fn call() -> Ask {
        Ask::Call { rules: vec!["edit:a".to_owned(), "edit:*".to_owned()], modes: Vec::new() }
    }

    fn allow(input: Option<Value>, keeps: KeptPermission) -> PermissionReply {
        PermissionReply::Allow { input, keeps }
    }

    #[test]
    fn a_yes_gives_this_call_or_the_narrowest_rule() {
        let same = json!({"file_path": "/p/a", "old_string": "x", "new_string": "y"});
        for (reply, answer) in [
            (allow(None, KeptPermission::Once), PersonAnswer::Once),
            (allow(Some(same.clone()), KeptPermission::Once), PersonAnswer::Once),
            (
                allow(Some(same), KeptPermission::Session),
                PersonAnswer::Session("edit:a".to_owned()),
            ),
        ] {
            let (mut program, id) = asked(call());
            let given = program.reply(&id, reply).unwrap();
            assert_eq!((given.digest.as_str(), given.answer), ("d", answer));
            assert!(program.reply(&id, allow(None, KeptPermission::Once)).is_none());
        }
    }

    #[test]
    fn anything_else_is_a_no() {
        let other = json!({"file_path": "/etc/passwd", "old_string": "x", "new_string": "y"});
        for reply in [
            allow(Some(other), KeptPermission::Once),
            PermissionReply::Failed("it raised".to_owned()),
            PermissionReply::Deny { message: "no".to_owned(), interrupts: AfterDeny::GoOn },
        ] {
            let (mut program, id) = asked(call());
            let given = program.reply(&id, reply.clone()).unwrap();
            assert!(matches!(given.answer, PersonAnswer::Deny(_)), "{reply:?}");
        }
        let (mut program, id) = asked(call());
        let stop =
            PermissionReply::Deny { message: String::new(), interrupts: AfterDeny::Interrupt };
        assert_eq!(program.reply(&id, stop).unwrap().answer, PersonAnswer::Stop);
        let (mut program, _) = asked(call());
        assert_eq!(program.deny_all().len(), 1);
        assert!(program.deny_all().is_empty());
    }

    #[test]
    fn a_question_that_comes_again_is_not_asked_twice() {
        let (mut program, id) = asked(call());
        program.add(&question(call()));
        assert!(program.ask(|_| None).is_empty());
        program.rejected(&question(call()).call);
        let again = program.ask(|_| None);
        assert_ne!(again[0]["request_id"], id.as_str());
        assert!(program.remove(&question(call()).call).is_some());
        assert!(program.reply(&id, allow(None, KeptPermission::Once)).is_none());
    }

    /// The session asks again what was answered: the answer died with a process.
    #[test]
    fn a_lost_answer_is_given_again() {
        let (mut program, id) = asked(call());
        let given = program.reply(&id, allow(None, KeptPermission::Once)).unwrap();
        assert!(program.lost_answers().is_empty());
        program.add(&question(call()));
        assert_eq!(program.lost_answers(), [given]);
        assert!(program.lost_answers().is_empty() && program.ask(|_| None).is_empty());
    }

    #[test]
    fn plans_and_questions_of_the_model_are_answered() {
        let (mut program, id) =
            asked(Ask::Plan { modes: vec![PermissionMode::Ask, PermissionMode::Auto] });
        let given = program.reply(&id, allow(None, KeptPermission::Once)).unwrap();
        assert_eq!(given.answer, PersonAnswer::Mode(PermissionMode::Ask), "the most careful one");
        let option =
            |label: &str| AskedOption { label: label.to_owned(), description: String::new() };
        let options = vec![option("red"), option("blue, dark")];
        let which = AskedQuestion {
            header: String::new(),
            text: "Which?".to_owned(),
            picks: Picks::Several,
            options,
        };
        for (said, labels, words) in [
            ("red", vec!["red"], ""),
            ("blue, dark", vec!["blue, dark"], ""),
            ("green", vec![], "green"),
        ] {
            let (mut program, id) = asked(Ask::Choose { questions: vec![which.clone()] });
            let input = json!({"answers": {"Which?": said}});
            let given = program.reply(&id, allow(Some(input), KeptPermission::Once)).unwrap();
            let PersonAnswer::Chosen(all) = given.answer else { panic!("{said}") };
            assert_eq!(
                (all[0].labels.clone(), all[0].words.as_str()),
                (labels.iter().map(|it| (*it).to_owned()).collect(), words)
            );
        }
        let (mut program, id) = asked(Ask::Choose { questions: vec![which] });
        let given = program.reply(&id, allow(None, KeptPermission::Once)).unwrap();
        assert!(matches!(given.answer, PersonAnswer::Deny(_)));
    }
}
