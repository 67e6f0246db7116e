//! Which answers fit which question. Asked by the broker about each answer of a person.

use crate::user_question;
use protocol::judgement::{Ask, PersonAnswer};

/// Checks that an answer without a note is one to the question of this name. A refusal fits each. A rule of the person's own
/// is checked by [`SessionRules::takes_rule`] instead.
///
/// [`SessionRules::takes_rule`]: crate::SessionRules::takes_rule
///
/// # Errors
/// Why it does not count, for the person.
pub fn fits(question: &str, ask: &Ask, answer: &PersonAnswer) -> Result<(), String> {
    match (ask, answer) {
        (_, PersonAnswer::Deny(_) | PersonAnswer::Stop)
        | (Ask::Call { .. } | Ask::Visit, PersonAnswer::Once)
        | (Ask::Form { .. }, PersonAnswer::Form(_)) => Ok(()),
        (Ask::Choose { questions }, PersonAnswer::Chosen(answers)) => {
            user_question::fits(questions, answers)
        }
        (Ask::Choose { .. }, _) => {
            Err("the model asks for answers: choose one, or write your own".to_owned())
        }
        (_, PersonAnswer::Chosen(_)) => Err("no answers are asked for".to_owned()),
        (
            Ask::Call { rules, .. },
            PersonAnswer::Session(rule)
            | PersonAnswer::Always(rule)
            | PersonAnswer::Everywhere(rule),
        ) => match rules.contains(rule) {
            true => Ok(()),
            false => Err(format!("{question} does not offer the rule `{rule}`")),
        },
        (_, PersonAnswer::Noted(..)) => Err("the note goes with no other answer".to_owned()),
        (Ask::Call { modes, .. }, PersonAnswer::Mode(mode)) => match modes.contains(mode) {
            true => Ok(()),
            false => Err(format!(
                "{question} does not offer mode {}; allow this call without one",
                mode.name()
            )),
        },
        (Ask::Call { .. } | Ask::Plan { .. }, PersonAnswer::Form(_)) => {
            Err("no form is asked for: allow or deny this call".to_owned())
        }
        (Ask::Plan { modes }, PersonAnswer::Mode(mode)) => match modes.contains(mode) {
            true => Ok(()),
            false => Err(format!(
                "a plan cannot be approved with mode {}: answer no instead",
                mode.name()
            )),
        },
        (
            Ask::Plan { modes },
            PersonAnswer::Once
            | PersonAnswer::Session(_)
            | PersonAnswer::Always(_)
            | PersonAnswer::Everywhere(_),
        ) => {
            let names: Vec<_> = modes.iter().map(|mode| mode.name()).collect();
            Err(format!("a plan is approved with a mode: {}", names.join(", ")))
        }
        (Ask::Form { .. }, PersonAnswer::Once) => {
            Err("the server asks for answers: fill in its form".to_owned())
        }
        (Ask::Visit, PersonAnswer::Form(_)) => {
            Err("the server asks for a visit, not for answers".to_owned())
        }
        (
            Ask::Form { .. } | Ask::Visit,
            PersonAnswer::Session(_)
            | PersonAnswer::Always(_)
            | PersonAnswer::Everywhere(_)
            | PersonAnswer::Mode(_),
        ) => Err("an answer to a server holds for this question only".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::judgement::PermissionMode;

    /// A question of each kind.
    fn asks() -> [Ask; 4] {
        [
            Ask::Call { rules: vec!["bash:ls *".into()], modes: vec![PermissionMode::Sandboxed] },
            Ask::Plan { modes: vec![PermissionMode::Ask, PermissionMode::AcceptEdits] },
            Ask::Form { lines: vec!["name =".into()] },
            Ask::Visit,
        ]
    }

    fn fitting(answer: &PersonAnswer) -> [bool; 4] {
        asks().map(|ask| fits("question 7", &ask, answer).is_ok())
    }

    #[test]
    fn each_answer_fits_its_own_kind_of_question() {
        for (answer, [call, plan, form, visit]) in [
            (PersonAnswer::Once, [true, false, false, true]),
            (PersonAnswer::Session("bash:ls *".into()), [true, false, false, false]),
            (PersonAnswer::Always("bash:ls *".into()), [true, false, false, false]),
            (PersonAnswer::Everywhere("bash:ls *".into()), [true, false, false, false]),
            (PersonAnswer::Mode(PermissionMode::AcceptEdits), [false, true, false, false]),
            (PersonAnswer::Mode(PermissionMode::Sandboxed), [true, false, false, false]),
            (PersonAnswer::Form("name = x".into()), [false, false, true, false]),
            (PersonAnswer::Deny(String::new()), [true; 4]),
            (PersonAnswer::Stop, [true; 4]),
        ] {
            assert_eq!(fitting(&answer), [call, plan, form, visit], "{answer:?}");
        }
    }

    #[test]
    fn a_rule_and_a_mode_fit_only_where_they_are_offered() {
        for rule in ["bash:ls", "bash:*", ""] {
            assert_eq!(fitting(&PersonAnswer::Session(rule.into())), [false; 4], "{rule}");
        }
        for mode in [PermissionMode::Plan, PermissionMode::DontAsk] {
            assert_eq!(fitting(&PersonAnswer::Mode(mode)), [false; 4], "{}", mode.name());
        }
        let why = |ask: &Ask| fits("question 7", ask, &PersonAnswer::Once).err();
        assert_eq!(
            why(&asks()[1]).as_deref(),
            Some("a plan is approved with a mode: ask, accept-edits")
        );
        let other = PersonAnswer::Always("bash:*".into());
        assert_eq!(
            fits("question 7", &asks()[0], &other).err().as_deref(),
            Some("question 7 does not offer the rule `bash:*`")
        );
    }
}
