//! The questions that a model asks the person, and the answers to them. No call runs by an answer. Pure.

use crate::judge::digest::digest;
use protocol::hidden::{on_one_line, visible};
use protocol::judgement::{
    Ask, AskedOption, AskedQuestion, Audience, Basis, ChosenAnswer, JudgedCall, PermissionMode,
    Picks, Question, Verdict,
};
use std::collections::BTreeSet;
use tool_specs::tool::ask_user::{AskedInput, Input};

/// Most questions of a call, and most options of one: all of them fit on a screen.
const MOST_QUESTIONS: usize = 4;
const MOST_OPTIONS: usize = 8;
/// Most characters of a question, of a label and of a description.
const LONGEST_TEXT: usize = 2_000;
const LONGEST_LABEL: usize = 120;
const LONGEST_DESCRIPTION: usize = 500;

/// The verdict on a call that asks.
pub(crate) fn verdict(case: &JudgedCall, mode: PermissionMode, audience: Audience) -> Verdict {
    let questions = match questions_of(&case.call.input) {
        Ok(questions) => questions,
        Err(why) => {
            let text = format!("Not asked: {why}. Call ask_user again without that.");
            return Verdict::Deny(Basis::Unjudgeable(why), text);
        }
    };
    let nobody = |why: &str| Verdict::Allow(Basis::NobodyToAsk(why.to_owned()));
    match (audience, mode) {
        (Audience::NonInteractive, _) => nobody("the session is non-interactive"),
        (Audience::Person, PermissionMode::DontAsk) => nobody("the permission mode is dont-ask"),
        (
            Audience::Person,
            PermissionMode::Ask
            | PermissionMode::AcceptEdits
            | PermissionMode::Plan
            | PermissionMode::Sandboxed
            | PermissionMode::Auto,
        ) => Verdict::Ask(Question {
            call: case.call.id.clone(),
            tool: case.call.tool.clone(),
            input: case.call.input.clone(),
            preview: in_words(&questions),
            confinement: "the model reads your answer, and it is recorded: type no secret"
                .to_owned(),
            reason: "the model asks you".to_owned(),
            widens: Vec::new(),
            ask: Ask::Choose { questions },
            deadline: 0,
            digest: digest(case),
        }),
    }
}

/// The questions as people see them.
///
/// # Errors
/// Why they are not asked, for the model.
fn questions_of(input: &str) -> Result<Vec<AskedQuestion>, String> {
    let input: Input = serde_json::from_str(input).map_err(|error| error.to_string())?;
    match input.questions.len() {
        0 => return Err("there is no question".to_owned()),
        1..=MOST_QUESTIONS => {}
        more => return Err(format!("{more} questions are too many, ask at most {MOST_QUESTIONS}")),
    }
    input.questions.iter().map(question_of).collect()
}

fn question_of(asked: &AskedInput) -> Result<AskedQuestion, String> {
    let text = visible(&asked.question).trim().to_owned();
    if text.is_empty() {
        return Err("a question is empty".to_owned());
    }
    if text.chars().count() > LONGEST_TEXT {
        return Err(format!("a question has more than {LONGEST_TEXT} characters"));
    }
    if asked.options.len() > MOST_OPTIONS {
        return Err(format!("a question has more than {MOST_OPTIONS} options"));
    }
    let mut labels = BTreeSet::new();
    let mut options = Vec::new();
    for option in &asked.options {
        let label = line(&option.label, LONGEST_LABEL, "a label")?;
        let description = line(&option.description, LONGEST_DESCRIPTION, "a description")?;
        if label.is_empty() {
            return Err("an option has no label".to_owned());
        }
        if !labels.insert(label.clone()) {
            return Err(format!("two options of a question have the label `{label}`"));
        }
        options.push(AskedOption { label, description });
    }
    let header = line(&asked.header, LONGEST_LABEL, "a header")?;
    let picks = if asked.multi_select { Picks::Several } else { Picks::One };
    Ok(AskedQuestion { header, text, picks, options })
}

fn line(text: &str, most: usize, what: &str) -> Result<String, String> {
    let line = on_one_line(text.trim());
    match line.chars().count() > most {
        true => Err(format!("{what} has more than {most} characters")),
        false => Ok(line),
    }
}

/// What people read of them above the list of answers. Options of a single question stand in the list alone.
fn in_words(questions: &[AskedQuestion]) -> String {
    let [question] = questions else {
        let number = |(at, question): (usize, &AskedQuestion)| {
            let options = question.options.iter().map(|option| option.label.as_str());
            let options = options.collect::<Vec<_>>().join(" / ");
            match options.is_empty() {
                true => format!("{}. {}\n", at + 1, question.text),
                false => format!("{}. {}\n     {options}\n", at + 1, question.text),
            }
        };
        return questions.iter().enumerate().map(number).collect();
    };
    question.text.clone()
}

/// Checks that there is one answer for each question, of its options or in own words.
///
/// # Errors
/// Why they do not count, for the person.
pub(crate) fn fits(questions: &[AskedQuestion], answers: &[ChosenAnswer]) -> Result<(), String> {
    if questions.len() != answers.len() {
        return Err(format!("{} answers are asked for, {} came", questions.len(), answers.len()));
    }
    for (question, ChosenAnswer { labels, words }) in questions.iter().zip(answers) {
        let asked = &question.text;
        if labels.is_empty() && words.trim().is_empty() {
            return Err(format!("the answer to `{asked}` is empty"));
        }
        if labels.len() > 1 && question.picks == Picks::One {
            return Err(format!("`{asked}` takes one option"));
        }
        for label in labels {
            if !question.options.iter().any(|option| option.label == *label) {
                return Err(format!("`{asked}` has no option `{label}`"));
            }
        }
    }
    Ok(())
}

/// What the model reads of the answers. They fit the question.
#[must_use]
pub fn answers_in_words(ask: &Ask, answers: &[ChosenAnswer]) -> String {
    let questions = match ask {
        Ask::Choose { questions } => questions.as_slice(),
        Ask::Call { .. } | Ask::Plan { .. } | Ask::Form { .. } | Ask::Visit => &[],
    };
    let mut text = "The user answers:".to_owned();
    for (question, ChosenAnswer { labels, words }) in questions.iter().zip(answers) {
        let words = Some(words.trim()).filter(|words| !words.is_empty());
        let said: Vec<&str> = labels.iter().map(String::as_str).chain(words).collect();
        text.push_str(&format!("\n- {}\n  {}", question.text, said.join("; ")));
    }
    text
}

/// For the model: the person answers nothing.
#[must_use]
pub fn unanswered(reason: &str) -> String {
    match reason {
        "" => "The user does not answer this. Choose yourself and say what you chose, or ask otherwise.".to_owned(),
        reason => format!("The user does not answer this, and says: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn asked() -> Vec<AskedQuestion> {
        let input = json!({"questions": [
            {"question": "Which store?", "header": "store", "options": [
                {"label": "SQLite", "description": "a file"}, {"label": "Post\u{202e}gres"}]},
            {"question": "Which checks?", "multi_select": true, "options": [
                {"label": "lint"}, {"label": "test"}]},
            {"question": "Which name?"}]});
        questions_of(&input.to_string()).unwrap()
    }

    fn answer(labels: &[&str], words: &str) -> ChosenAnswer {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        ChosenAnswer { labels, words: words.to_owned() }
    }

    #[test]
    fn what_people_see_has_no_hidden_character() {
        let questions = asked();
        assert!(!questions[0].options[1].label.contains('\u{202e}'), "{questions:?}");
        let words = in_words(&questions);
        assert!(words.starts_with("1. Which store?\n     SQLite / Post"), "{words}");
        assert!(words.ends_with("3. Which name?\n"), "{words}");
        assert_eq!(in_words(&questions[2..]), "Which name?");
    }

    #[test]
    fn an_answer_names_options_of_its_question_or_has_own_words() {
        let questions = asked();
        let name = || answer(&[], "agentd");
        let good = [answer(&["SQLite"], "in memory"), answer(&["lint", "test"], ""), name()];
        fits(&questions, &good).unwrap();
        let ask = Ask::Choose { questions: questions.clone() };
        assert_eq!(
            answers_in_words(&ask, &good),
            "The user answers:\n- Which store?\n  SQLite; in memory\n- Which checks?\n  lint; test\n- Which name?\n  agentd"
        );
        for (bad, why) in [
            (vec![name()], "3 answers are asked for, 1 came"),
            (vec![answer(&["MySQL"], ""), name(), name()], "no option `MySQL`"),
            (vec![answer(&[], " "), name(), name()], "is empty"),
            (vec![answer(&["SQLite", "SQLite"], ""), name(), name()], "takes one option"),
        ] {
            let said = fits(&questions, &bad).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn odd_questions_are_refused_with_the_reason() {
        let many = vec![json!({"question": "a?"}); 5];
        let twice = json!([{"question": "a?", "options": [{"label": "x"}, {"label": " x"}]}]);
        for (questions, why) in [
            (json!([]), "there is no question"),
            (json!(many), "5 questions are too many"),
            (json!([{"question": "  "}]), "a question is empty"),
            (twice, "the label `x`"),
            (json!([{"question": "a?", "options": [{"label": ""}]}]), "has no label"),
            (json!([{"question": "a".repeat(2001)}]), "more than 2000 characters"),
        ] {
            let said = questions_of(&json!({"questions": questions}).to_string()).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
