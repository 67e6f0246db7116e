//! `guard_hook`: runs a hook that decides about a step before it happens. The project is read-only for it.
//! Only the conversation calls it; models do not see it.

use crate::arguments::facts::JudgedFacts;
use crate::hook_input;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, Caller, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

pub struct GuardHookTool;

impl ToolSpec for GuardHookTool {
    type Input = hook_input::Input;
    const NAME: &'static str = "guard_hook";
    // Never retried automatically: the command may have any effect.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::GuardHook;
    const CALLER: Caller = Caller::Conversation;
    const DESCRIPTION: &'static str = "Run a configured hook that decides about a step.";
    const ALIASES: &'static [Alias] = &[];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::DenyAndAsk)];

    fn facts(input: &Self::Input) -> JudgedFacts {
        hook_input::facts(input)
    }
}
