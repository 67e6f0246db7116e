//! How far a person is with the questions of the model: one after the other, and all answers are given at once. Pure.

use protocol::judgement::{AskedQuestion, ChosenAnswer, Picks};

/// The answers so far, of those that are not sent yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answering {
    given: Vec<ChosenAnswer>,
    /// The marked options of the present question, by their places, in the order of the list.
    marked: Vec<usize>,
}

/// What an answer to one of them leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answered {
    /// An option is marked, or not any more.
    Marked,
    /// The next question is to be answered.
    Next,
    /// These are all answers.
    All(Vec<ChosenAnswer>),
    /// Nothing: it has no option marked and no words, or there is no such option.
    Empty,
}

impl Answering {
    /// The question that is to be answered.
    pub(super) fn at<'a>(&self, questions: &'a [AskedQuestion]) -> Option<&'a AskedQuestion> {
        questions.get(self.step())
    }

    /// How many are answered.
    pub(super) fn step(&self) -> usize {
        self.given.len()
    }

    pub(super) fn is_marked(&self, option: usize) -> bool {
        self.marked.contains(&option)
    }

    /// An option is chosen, perhaps with words: it is the answer, or is marked where several may be.
    pub(super) fn choose(
        &mut self,
        questions: &[AskedQuestion],
        option: usize,
        words: &str,
    ) -> Answered {
        let Some(question) = self.at(questions) else { return Answered::Empty };
        let Some(chosen) = question.options.get(option) else { return Answered::Empty };
        match question.picks {
            Picks::One => {
                let labels = vec![chosen.label.clone()];
                self.give(questions, ChosenAnswer { labels, words: words.to_owned() })
            }
            Picks::Several => {
                match self.marked.iter().position(|marked| *marked == option) {
                    Some(at) => drop(self.marked.remove(at)),
                    None => self.marked.push(option),
                }
                self.marked.sort_unstable();
                Answered::Marked
            }
        }
    }

    /// The marked options and these words are the answer.
    pub(super) fn finish(&mut self, questions: &[AskedQuestion], words: &str) -> Answered {
        let Some(question) = self.at(questions) else { return Answered::Empty };
        let marked = self.marked.iter().filter_map(|option| question.options.get(*option));
        let labels: Vec<String> = marked.map(|option| option.label.clone()).collect();
        if labels.is_empty() && words.trim().is_empty() {
            return Answered::Empty;
        }
        self.give(questions, ChosenAnswer { labels, words: words.to_owned() })
    }

    /// The last one stays where it is until the answers have arrived.
    fn give(&mut self, questions: &[AskedQuestion], answer: ChosenAnswer) -> Answered {
        if self.given.len() + 1 == questions.len() {
            let given = self.given.iter().cloned().chain([answer]);
            return Answered::All(given.collect());
        }
        self.given.push(answer);
        self.marked.clear();
        Answered::Next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::judgement::AskedOption;

    fn question(picks: Picks, labels: &[&str]) -> AskedQuestion {
        let option =
            |label: &&str| AskedOption { label: (*label).to_owned(), description: String::new() };
        let options = labels.iter().map(option).collect();
        AskedQuestion { header: String::new(), text: "Which?".to_owned(), picks, options }
    }

    fn answer(labels: &[&str], words: &str) -> ChosenAnswer {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        ChosenAnswer { labels, words: words.to_owned() }
    }

    #[test]
    fn all_answers_are_given_at_once_and_the_last_can_be_given_again() {
        let questions =
            [question(Picks::One, &["a", "b"]), question(Picks::Several, &["c", "d", "e"])];
        let mut answering = Answering::default();
        assert_eq!(answering.choose(&questions, 7, ""), Answered::Empty);
        assert_eq!(answering.choose(&questions, 1, "please"), Answered::Next);
        assert_eq!(answering.finish(&questions, " "), Answered::Empty);
        for option in [2, 0, 1, 1] {
            assert_eq!(answering.choose(&questions, option, ""), Answered::Marked);
        }
        assert!(answering.is_marked(0) && !answering.is_marked(1) && answering.is_marked(2));
        let all = vec![answer(&["b"], "please"), answer(&["c", "e"], "")];
        assert_eq!(answering.finish(&questions, ""), Answered::All(all.clone()));
        assert_eq!(answering.finish(&questions, ""), Answered::All(all));
    }

    #[test]
    fn own_words_are_an_answer_to_each_question() {
        let questions = [question(Picks::One, &[]), question(Picks::Several, &["c"])];
        let mut answering = Answering::default();
        assert_eq!(answering.finish(&questions, "agentd"), Answered::Next);
        let all = vec![answer(&[], "agentd"), answer(&[], "none of them")];
        assert_eq!(answering.finish(&questions, "none of them"), Answered::All(all));
    }
}
