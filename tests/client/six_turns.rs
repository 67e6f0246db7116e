//! The session that the screen is measured by: six turns in the mode `sandboxed`, with their questions, keys, frames and
//! words.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call, text};
use crate::support::terminal::{Terminal, Tmux};
use crate::support::{Desk, needs};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

/// Most questions of the session.
const QUESTIONS: usize = 3;
/// Most keys besides the letters of the prompts.
const KEYS: usize = 60;

/// Sentences that were written for the model, and our own words for what people have words for.
const FOR_THE_MODEL: [&str; 20] = [
    "--- agentd ---",
    "exit code:",
    "Error [",
    "Not run: the user",
    "Find another way",
    "carry the plan out",
    "Read it again",
    "tool_use_id",
    "\"command\":",
    "\"path\":",
    "old_string",
    "toolu_",
    "may have run",
    "never started",
    "This is not a failure",
    "the way on",
    "bash_output, bash_input",
    "takes this number",
    "[denied]",
    "is void",
];

fn tool(at: usize, tool: &str, input: &Value) -> Say {
    call(&format!("toolu_{at}"), tool, &input.to_string())
}

fn bash(at: usize, command: &str) -> Say {
    tool(at, "bash", &json!({ "command": command }))
}

/// A project with a fault and a test that finds it.
fn project() -> Desk {
    needs("git");
    needs("python3");
    let desk = Desk::new();
    desk.write("money.py", "def share(cents, parts):\n    return [cents // parts] * parts\n");
    desk.write(
        "test_money.py",
        "import money\nassert sum(money.share(10, 3)) == 10, 'a cent is lost'\nprint('ok')\n",
    );
    for words in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        assert!(
            git.current_dir(desk.project()).env("HOME", desk.home()).status().unwrap().success()
        );
    }
    desk
}

fn answers() -> Vec<Answer> {
    let fixed = json!({
        "path": "money.py",
        "old_string": "    return [cents // parts] * parts",
        "new_string": "    each, rest = divmod(cents, parts)\n    return [each + (n < rest) for n in range(parts)]",
    });
    let notes = "cat > notes.txt <<'EOF'\nThe rest goes to the first parts.\nEOF\nmkdir build && touch build/a && rm -r build/ && git status --short";
    vec![
        Answer::says([
            text("I look."),
            tool(1, "read", &json!({ "path": "money.py" })),
            bash(2, "ls | head -40"),
        ]),
        Answer::text("`share` drops the remainder."),
        Answer::says([text("The test says:"), bash(3, "python3 test_money.py")]),
        Answer::text("It fails: a cent is lost."),
        Answer::says([text("Divide with the rest."), tool(4, "edit", &fixed)]),
        Answer::says([bash(5, "python3 test_money.py")]),
        Answer::text("It passes."),
        Answer::says([bash(6, "for n in 1 2 3 4 5 6 7 8; do echo step $n; sleep 0.5; done")]),
        Answer::text("Done with the steps."),
        Answer::says([bash(7, notes)]),
        Answer::text("Notes are there."),
        Answer::says([bash(8, "git commit -qam 'share: keep the rest'")]),
        Answer::text("It is committed."),
    ]
}

/// Types a prompt, answers its questions by the row that Enter is on, and returns how many there were.
fn turn(one: &Terminal<'_>, prompt: &str, end: &str, keys: &mut usize) -> usize {
    one.enters(prompt);
    *keys += 1;
    let mut asked = 0;
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let screen = one.screen();
        if screen.contains(end) && screen.contains("ready ·") {
            return asked;
        }
        if screen.contains("Allow once") {
            // A person reads first.
            std::thread::sleep(Duration::from_millis(600));
            one.press(&["Enter"]);
            *keys += 1;
            asked += 1;
            one.shows_no_more("Allow once");
        }
        assert!(Instant::now() < until, "{end:?} is awaited in:\n{screen}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn six_turns_ask_little_take_few_keys_and_show_no_word_for_the_model() {
    let desk = project();
    let server = Server::scripted(answers());
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "--permission-mode", "sandboxed"];
    let one = tmux.run("one", &desk.with_server(&server, &arguments), (120, 300));
    one.shows("ready");
    let (mut asked, mut keys) = (0, 0);
    for (prompt, end) in [
        ("explain money.py", "drops the remainder"),
        ("run its test", "a cent is lost."),
        ("mend it and run the test again", "It passes."),
    ] {
        asked += turn(&one, prompt, end, &mut keys);
    }
    assert_eq!(asked, 0, "all of it stays in the project and the sandbox: {}", one.screen());

    // While a command works, its line is never older than a second: it says another second or another last line.
    one.enters("do the steps");
    keys += 1;
    one.shows("step 1");
    let (mut last, mut changed) = (String::new(), Instant::now());
    let mut oldest = Duration::ZERO;
    let mut samples = 0;
    loop {
        let screen = one.screen();
        let Some(line) = screen.lines().find(|line| line.starts_with("● ")) else { break };
        if line != last {
            (last, changed) = (line.to_owned(), Instant::now());
        }
        oldest = oldest.max(changed.elapsed());
        samples += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    one.shows("Done with the steps.");
    assert!(samples > 10, "the line was seen while it worked");
    assert!(
        oldest < Duration::from_secs(3),
        "a frame of {oldest:?}; a second is meant, on a machine with nothing else to do"
    );

    asked += turn(&one, "write notes", "Notes are there.", &mut keys);
    asked += turn(&one, "commit it", "It is committed.", &mut keys);
    assert!(
        (1..=QUESTIONS).contains(&asked),
        "the commit is asked about, and little else: {asked}"
    );
    assert!(keys <= KEYS, "{keys}");
    assert!(desk.read("notes.txt").contains("first parts"));
    let screen = one.screen();
    let found: Vec<_> = FOR_THE_MODEL.into_iter().filter(|words| screen.contains(words)).collect();
    assert!(found.is_empty(), "{found:?} in:\n{screen}");
    assert!(screen.contains("✗ python3 test_money.py · exit 1"), "{screen}");
    assert!(screen.contains("✓ edit money.py"), "{screen}");
}
