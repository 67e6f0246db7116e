//! Slash commands and skills: each that can be used, and each file that cannot, with the reason.

use super::{PartState, ProjectReport};
use crate::context::TrustFlag;
use config::{Config, aliased_model, is_model_alias};
use prompts::{PromptFile, PromptKind, PromptList, PromptPlaces};
use protocol::judgement::RuleEffect;

pub(super) fn look(report: &mut ProjectReport<'_>) {
    let first = report.parts.len();
    let places = PromptPlaces {
        project: report.project.to_owned(),
        home: None,
        config: None,
        plugins: Vec::new(),
    };
    let list = PromptList::read(&places);
    for file in &list.files {
        one(report, file);
    }
    for trouble in &list.troubles {
        // The path, then the reason.
        let (place, why) = trouble.split_once(": ").unwrap_or(("", trouble));
        report.ignored(place, why);
    }
    report.cap(first, "commands and skills");
}

fn one(report: &mut ProjectReport<'_>, file: &PromptFile) {
    let place = file.file.display().to_string();
    let what = match file.kind {
        PromptKind::Command => "slash command",
        PromptKind::Skill => "skill",
    };
    let hint = format!("/{} {}", file.name, file.argument_hint);
    report.add(PartState::Used, &place, format!("{what} {}", hint.trim_end()));
    for hidden in &file.hides {
        let text = format!("/{} is {place}", file.name);
        report.ignored(&hidden.display().to_string(), text);
    }
    if let Some(model) = file.model.as_deref().filter(|model| *model != "inherit") {
        let flag = [("provider.model".to_owned(), model.to_owned())];
        let config = report.context.load(report.project, &flag, TrustFlag::NotGiven);
        let stands = |config: &Config| {
            let provider = config.provider.name.vendor().name;
            let is_named = config.provider.table.as_deref() == Some(model);
            !is_model_alias(model) || is_named || aliased_model(provider, model).is_some()
        };
        match config.is_ok_and(|config| config.provider.knows_model() && stands(&config)) {
            true => report.add(PartState::Used, &place, format!("`model`: its turn asks {model}")),
            false if is_model_alias(model) => report.ignored(
                &place,
                format!("`model: {model}` stands for no model of this provider: its turn asks the session's"),
            ),
            false => report.ignored(
                &place,
                format!("`model: {model}` is configured nowhere, so /{} is refused", file.name),
            ),
        }
    }
    for tool in &file.allowed_tools {
        if let Err(error) = approval::rules_of_flag(&tool.text, RuleEffect::Allow) {
            let text =
                format!("`{}` of `allowed-tools` is no rule of agentd: {}", tool.text, error.fault);
            report.ignored(&format!("{place}:{}", tool.line), text);
        }
    }
}
