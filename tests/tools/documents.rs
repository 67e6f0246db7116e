//! Pages of a PDF: poppler's programs convert them in a cage that has no file but the document.
#![allow(clippy::unwrap_used)]

use crate::images::{images, size};
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, run, write_program};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;

const TWO_PAGES: &str = include_str!("../data/two-pages.pdf");
const TIERS: [&str; 2] = ["A", "B"];
/// agentd does not know whether this model sees.
const BLIND: [&str; 2] = ["--model", "test-model"];

fn desk() -> Desk {
    needs("pdftoppm");
    let desk = Desk::new();
    desk.write("two.pdf", TWO_PAGES);
    desk
}

/// A PDF of this many empty pages, with one more entry of its trailer.
fn pdf(pages: usize, entry: &str) -> String {
    let kids: String = (3..pages + 3).map(|number| format!("{number} 0 R ")).collect();
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        format!("<</Type/Pages/Kids[{kids}]/Count {pages}/MediaBox[0 0 90 60]>>"),
    ];
    objects.resize(pages + 2, "<</Type/Page/Parent 2 0 R>>".to_owned());
    let size = objects.len() + 1;
    let (mut text, mut table) = ("%PDF-1.4\n".to_owned(), String::new());
    for (object, number) in objects.iter().zip(1..) {
        table += &format!("{:010} 00000 n \n", text.len());
        text += &format!("{number} 0 obj\n{object}\nendobj\n");
    }
    let at = text.len();
    text + &format!("xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n")
        + &format!("<</Size {size}/Root 1 0 R{entry}>>\nstartxref\n{at}\n%%EOF\n")
}

/// The content of the model's result for this call, in this tier and with this search path before the
/// machine's.
fn read(desk: &Desk, input: Value, flags: &[&str], (tier, path): (&str, &str)) -> Value {
    let asked = call("call_1", "read", &input.to_string());
    let server = Server::scripted([Answer::says([asked]), Answer::text("Seen.")]);
    let mut command = desk.with_server(&server, &[&["-p", "Look."], flags].concat());
    command.env("AGENTD_SANDBOX_TIER", tier).env("PATH", path);
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let messages = server.requests()[1].body["messages"].as_array().unwrap().clone();
    messages.last().unwrap()["content"][0]["content"].clone()
}

fn text(content: &Value) -> String {
    content.as_str().or(content[0]["text"].as_str()).unwrap().to_owned()
}

fn shown(desk: &Desk, input: Value, flags: &[&str]) -> Value {
    read(desk, input, flags, ("A", "/usr/bin:/bin"))
}

#[test]
fn a_model_that_sees_gets_the_pages_and_another_one_their_text() {
    for tier in TIERS {
        let desk = desk();
        let at = (tier, "/usr/bin:/bin");
        let seen = read(&desk, json!({"path": "two.pdf"}), &[], at);
        let lines = "[image two.pdf page 1 1568x1046]\n[image two.pdf page 2 1568x1046]";
        assert_eq!(text(&seen), lines, "{tier}");
        let pages = images(&seen);
        assert_eq!(pages.iter().map(|page| size(page)).collect::<Vec<_>>(), [(1568, 1046); 2]);
        assert!(pages[0] != pages[1]);
        // The record names the cage and the program.
        let ended = desk.ended(1).to_string();
        assert!(ended.contains(r#""profile":"document""#), "{ended}");
        assert!(ended.contains("pdftoppm -png -scale-to 1568 -f 1 -l 10 two.pdf"), "{ended}");

        let told = read(&desk, json!({"path": "two.pdf"}), &BLIND, at);
        let lines = "[page 1]\nThe first page\n[page 2]\nThe second page\n";
        assert_eq!(text(&told), lines);
        assert_eq!(images(&told).len(), 0);
        let ended = desk.audit().iter().map(Value::to_string).collect::<String>();
        assert!(ended.contains("pdftotext -layout -enc UTF-8 -f 1 -l 10 two.pdf"), "{ended}");
        assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
    }
}

#[test]
fn a_call_says_which_pages_and_has_to_above_ten() {
    let desk = desk();
    let second = shown(&desk, json!({"path": "two.pdf", "pages": "2"}), &[]);
    assert_eq!(text(&second), "[image two.pdf page 2 1568x1046]");
    let first = shown(&desk, json!({"path": "two.pdf", "pages": "1"}), &BLIND);
    assert!(text(&first).ends_with("[pages 1 to 1 of 2; continue with pages = \"2\"]"), "{first}");
    assert!(!text(&first).contains("second"), "{first}");
    desk.write("ten.pdf", &pdf(10, ""));
    let ten = shown(&desk, json!({"path": "ten.pdf"}), &[]);
    assert_eq!(images(&ten).len(), 10, "{}", text(&ten));
    desk.write("many.PDF", &pdf(57, ""));
    for (input, expected) in [
        (
            json!({"path": "many.PDF"}),
            "[too_large] read: \"many.PDF\" has 57 pages; without pages at most 10",
        ),
        (
            json!({"path": "many.PDF", "pages": "58-60"}),
            "[past_end] read: page 58 is past the end: \"many.PDF\" has 57",
        ),
        (
            json!({"path": "many.PDF", "pages": "1-21"}),
            "[invalid_arguments] read: pages = \"1-21\" is not a range of at most 20",
        ),
        (json!({"path": "many.PDF", "pages": "50-69"}), "[image many.PDF page 50 1568x1046]"),
    ] {
        let told = text(&shown(&desk, input, &[]));
        assert!(told.contains(expected), "{told}");
    }
    assert_eq!(images(&shown(&desk, json!({"path": "many.PDF", "pages": "38-57"}), &[])).len(), 20);
}

#[test]
fn the_bytes_of_a_file_say_what_it_is() {
    let desk = desk();
    desk.write("note.pdf", "no document\n");
    let told = text(&shown(&desk, json!({"path": "note.pdf"}), &[]));
    assert_eq!(told, "1\tno document\n");
    desk.write("report", TWO_PAGES);
    let told = text(&shown(&desk, json!({"path": "report"}), &[]));
    assert!(told.contains("[binary]") && told.contains("pages = \"1-5\""), "{told}");
    assert_eq!(images(&shown(&desk, json!({"path": "report", "pages": "1-5"}), &[])).len(), 2);
    desk.write("note.txt", "plain\n");
    let told = text(&shown(&desk, json!({"path": "note.txt", "pages": "1"}), &[]));
    assert_eq!(told, "1\tplain\n[pages was ignored: the file is not a PDF]");
}

#[test]
fn a_document_that_poppler_cannot_read_is_a_clear_error() {
    let desk = desk();
    let key = "00".repeat(32);
    let crypt = format!("/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/O<{key}>/U<{key}>/P -4>>");
    desk.write("locked.pdf", &pdf(1, &crypt));
    desk.write("damaged.pdf", "%PDF-1.4\nnothing\n");
    for (path, expected) in [
        (
            "locked.pdf",
            "[bad_document] read: \"locked.pdf\" is encrypted: it opens with a password only",
        ),
        (
            "damaged.pdf",
            "[bad_document] read: \"damaged.pdf\" cannot be shown: poppler ended with exit code 1: Syntax",
        ),
    ] {
        let told = text(&shown(&desk, json!({ "path": path }), &[]));
        assert!(told.contains(expected), "{told}");
    }
}

/// Programs of these names on a search path of the person's own.
fn stand_ins(desk: &Desk, programs: &[(&str, &str)]) -> String {
    let dir = desk.home().join("tools/bin");
    std::fs::create_dir_all(&dir).unwrap();
    for (name, script) in programs {
        let _ = std::fs::remove_file(dir.join(name));
        write_program(&dir.join(name), script);
    }
    format!("{}:/usr/bin:/bin", dir.display())
}

#[test]
fn a_missing_a_crashing_and_a_hanging_program_are_told_apart() {
    let desk = desk();
    let few = desk.home().join("few");
    std::fs::create_dir_all(&few).unwrap();
    std::os::unix::fs::symlink("/usr/bin/setsid", few.join("setsid")).unwrap();
    let input = || json!({"path": "two.pdf"});
    let told = text(&read(&desk, input(), &[], ("A", few.to_str().unwrap())));
    assert!(told.contains("[not_found]") && told.contains("poppler-utils on Debian"), "{told}");
    let pages = ("pdfinfo", "echo Pages: 1");
    let dir = stand_ins(&desk, &[pages, ("pdftoppm", "kill -SEGV $$")]);
    let told = text(&read(&desk, input(), &[], ("A", &dir)));
    assert!(told.contains("[bad_document]") && told.contains("SIGSEGV"), "{told}");
    assert!(desk.audit().last().unwrap().to_string().contains("pdftoppm -png"));
    let config = desk.home().join(".config/agentd");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[tools]\ntimeout_ms = 2000\n").unwrap();
    let dir = stand_ins(&desk, &[pages, ("pdftoppm", "sleep 60")]);
    let told = text(&read(&desk, input(), &[], ("A", &dir)));
    assert!(
        told.contains("[timed_out]") && told.contains("pdftoppm did not come to its end"),
        "{told}"
    );
    // The same with a program that does its work.
    let dir = stand_ins(&desk, &[("pdftotext", "printf 'of the stand-in\\f'"), pages]);
    let told = text(&read(&desk, input(), &BLIND, ("A", &dir)));
    assert_eq!(told, "[page 1]\nof the stand-in\n");
}

/// Tries what a converter that a document took over would try.
fn hostile(desk: &Desk, port: u16) -> String {
    let other = desk.project().join("other.txt").display().to_string();
    let home = desk.home().join("diary.txt").display().to_string();
    let made = desk.project().join("made.txt").display().to_string();
    format!(
        "cat {other} {home} 2>/dev/null; cat /etc/passwd 2>/dev/null\n\
         echo mine > {made}\n\
         bash -c 'echo taken > /dev/tcp/127.0.0.1/{port}' && echo connected\n\
         ls {}/ && echo listed\n\
         head -c 8 ${{1:-/proc/self/fd/3}}",
        desk.project().display()
    )
}

#[test]
fn a_converter_reads_no_other_file_writes_none_and_reaches_no_network() {
    for tier in TIERS {
        let desk = desk();
        desk.write("other.txt", "secret of the project\n");
        std::fs::write(desk.home().join("diary.txt"), "secret of the home\n").unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let script = hostile(&desk, server.local_addr().unwrap().port());
        let dir = stand_ins(
            &desk,
            &[("pdfinfo", "echo Pages: 1"), ("pdftotext", &format!("set --\n{script}"))],
        );
        let told = text(&read(&desk, json!({"path": "two.pdf"}), &BLIND, (tier, &dir)));
        assert_eq!(told, "[page 1]\n%PDF-1.4\n", "{tier}");
        assert!(!Path::new(&desk.project().join("made.txt")).exists());
        server.set_nonblocking(true).unwrap();
        assert!(server.accept().is_err(), "{tier}");
        // The same program without a cage does all of it.
        server.set_nonblocking(false).unwrap();
        let document = desk.project().join("two.pdf");
        let free = std::process::Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(&document)
            .output()
            .unwrap();
        let free = String::from_utf8(free.stdout).unwrap();
        for done in ["of the project", "of the home", "root:", "connected", "listed", "%PDF-1.4"] {
            assert!(free.contains(done), "{done}: {free}");
        }
        let mut word = String::new();
        server.accept().unwrap().0.read_to_string(&mut word).unwrap();
        assert_eq!(word, "taken\n");
        assert_eq!(desk.read("made.txt"), "mine\n");
    }
}
