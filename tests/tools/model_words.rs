//! `sonnet`, `opus`, `haiku` and `inherit` in files for agents and commands, and in `--model`: the vendor's model, or
//! the parent's where the vendor has none of that name.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::vendor::Vendor;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, run};
use serde_json::json;

fn desk() -> Desk {
    let desk = Desk::new();
    for model in ["sonnet", "inherit"] {
        let text = format!(
            "---\nname: {model}s\ndescription: Looks.\nmodel: {model}\n---\nLook closely.\n"
        );
        desk.write(&format!(".claude/agents/{model}s.md"), &text);
    }
    desk.write(".claude/commands/quick.md", "---\nmodel: haiku\n---\nAnswer quickly.\n");
    desk
}

/// A turn with this prompt and these flags; the models that were asked.
fn asked(vendor: Vendor, prompt: &str, flags: &[&str], agent: Option<&str>) -> (Run, Vec<String>) {
    let start = agent.map(|agent| {
        let input = json!({"description": "a part", "prompt": "Look.", "subagent_type": agent});
        vendor.says([call("call_1", "task", &input.to_string())])
    });
    let answers: Vec<Answer> =
        start.into_iter().chain([vendor.text("Done."), vendor.text("Done.")]).collect();
    let server = Server::of(vendor, answers);
    let flags = [&["-p", prompt, "--permission-mode", "auto", "--trust-project"], flags].concat();
    let ran = run(desk().with_vendor(vendor, &server, &flags));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    let models = server.requests().into_iter();
    let models = models.map(|seen| seen.body["model"].as_str().unwrap().to_owned());
    (ran, models.collect())
}

#[test]
fn words_for_models_are_models_of_the_vendor_or_the_parent_s() {
    let (_, models) = asked(Vendor::Anthropic, "Go.", &["--model", "haiku"], None);
    assert_eq!(models, ["claude-haiku-5-5"]);
    let (_, models) = asked(Vendor::Anthropic, "Go.", &[], Some("sonnets"));
    assert_eq!(models[1], "claude-sonnet-5-5", "{models:?}");
    let (_, models) = asked(Vendor::Anthropic, "/quick", &[], None);
    assert_eq!(models, ["claude-haiku-5-5"]);
    // Another vendor has no such models.
    let (ran, models) = asked(Vendor::Chat, "Go.", &[], Some("sonnets"));
    assert!(models.iter().all(|model| *model == models[0]), "{models:?}");
    assert!(
        ran.err.contains("sonnet stands for no model of the provider openai-chat"),
        "{}",
        ran.err
    );
    let (ran, other) = asked(Vendor::Chat, "/quick", &[], None);
    assert_eq!(other[0], models[0]);
    assert!(ran.err.contains("haiku stands for no model"), "{}", ran.err);
    let (ran, other) = asked(Vendor::Chat, "Go.", &["--model", "opus"], None);
    assert_eq!(other[0], models[0]);
    assert!(ran.err.contains("\"opus\", which stands for no model"), "{}", ran.err);
    let (ran, other) = asked(Vendor::Chat, "Go.", &[], Some("inherits"));
    assert!(other.iter().all(|model| *model == models[0]), "{other:?}");
    assert!(!ran.err.contains("stands for no model"), "{}", ran.err);
}
