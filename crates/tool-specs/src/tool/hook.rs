//! `hook`: runs a hook that follows an event. It may change the project, as a command may.
//! Only the conversation calls it; models do not see it.

use crate::arguments::facts::JudgedFacts;
use crate::hook_input;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, Caller, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

pub struct HookTool;

impl ToolSpec for HookTool {
    type Input = hook_input::Input;
    const NAME: &'static str = "hook";
    // Never retried automatically: the command may have any effect.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Hook;
    const CALLER: Caller = Caller::Conversation;
    const DESCRIPTION: &'static str = "Run a configured hook after an event.";
    const ALIASES: &'static [Alias] = &[];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::DenyAndAsk)];

    fn facts(input: &Self::Input) -> JudgedFacts {
        hook_input::facts(input)
    }
}
