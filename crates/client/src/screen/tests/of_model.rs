//! Questions of the model in the list of answers.

use super::questions::{asked, down, enter, enter_does, key, rows};
use super::{answered, event, question, says, types};
use crate::screen::{KeyPress, Screen};
use protocol::client::{ClientEvent, FromClient};
use protocol::judgement::{Ask, AskedOption, AskedQuestion, ChosenAnswer, PersonAnswer, Picks};

fn one(picks: Picks, labels: &[&str]) -> AskedQuestion {
    let option =
        |label: &&str| AskedOption { label: (*label).to_owned(), description: String::new() };
    let options = labels.iter().map(option).collect();
    AskedQuestion { header: String::new(), text: "Which?".to_owned(), picks, options }
}

fn of_model(questions: Vec<AskedQuestion>) -> Screen {
    let ClientEvent::Asked { mut question } = question(1, &[]) else { panic!() };
    question.ask = Ask::Choose { questions };
    asked(ClientEvent::Asked { question })
}

fn chosen(labels: &[&str], words: &str) -> PersonAnswer {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    PersonAnswer::Chosen(vec![ChosenAnswer { labels, words: words.to_owned() }])
}

#[test]
fn an_option_is_chosen_by_its_row_or_number_and_a_text_goes_along() {
    let screen = || of_model(vec![one(Picks::One, &["a", "b"])]);
    assert_eq!(rows(&screen()), ["❯ 1 a", "2 b", "3 Do not answer", "4 Stop the turn"]);
    assert_eq!(answered(&enter(&mut screen())), chosen(&["a"], ""));
    let mut by_number = screen();
    types(&mut by_number, "2");
    assert_eq!(answered(&enter(&mut by_number)), chosen(&["b"], ""));
    let mut noted = screen();
    types(&mut noted, "soon");
    down(&mut noted, 2);
    assert_eq!(enter_does(&noted), "Enter answers with this, with these words");
    assert_eq!(answered(&enter(&mut noted)), chosen(&["b"], "soon"));
}

#[test]
fn a_text_alone_is_the_answer_and_a_command_is_none() {
    for words in ["yes", "a", "use the one of before"] {
        let mut screen = of_model(vec![one(Picks::One, &["x"])]);
        types(&mut screen, words);
        assert_eq!(enter_does(&screen), "Enter answers with these words");
        assert_eq!(answered(&enter(&mut screen)), chosen(&[], words));
    }
    for line in [":mode plan", "!ls"] {
        let mut screen = of_model(vec![one(Picks::One, &["x"])]);
        types(&mut screen, line);
        let sent = enter(&mut screen);
        let answers = |word: &&&FromClient| matches!(word, FromClient::Answer { .. });
        assert_eq!(says(&sent).iter().filter(answers).count(), 0, "{line}: {sent:?}");
    }
}

#[test]
fn one_without_options_takes_words_and_nothing_by_an_empty_enter() {
    let mut screen = of_model(vec![one(Picks::One, &[])]);
    assert!(says(&enter(&mut screen)).is_empty(), "an Enter declines nothing");
    types(&mut screen, "agentd");
    assert_eq!(answered(&enter(&mut screen)), chosen(&[], "agentd"));
}

#[test]
fn what_did_not_count_is_asked_again_where_it_was() {
    let questions = vec![one(Picks::One, &["a"]), one(Picks::Several, &["b", "c"])];
    let mut screen = of_model(questions);
    assert!(says(&enter(&mut screen)).is_empty());
    let wanted = ["❯ 1 [ ] b", "2 [ ] c", "3 Answer with what is marked or typed"];
    assert_eq!(rows(&screen)[..3], wanted);
    key(&mut screen, KeyPress::Enter);
    down(&mut screen, 2);
    let first = answered(&enter(&mut screen));
    let call = super::call_id(1);
    let reason = "the connection was lost".to_owned();
    screen.update(event(0, ClientEvent::AnswerRejected { call, reason }));
    assert_eq!(rows(&screen)[0], "1 [x] b");
    assert_eq!(answered(&enter(&mut screen)), first);
}
