//! `guard_hook`: runs a hook that decides about a step before it happens. The project is read-only for it.
//! Only the conversation calls it; models do not see it.

use crate::arguments::facts::JudgedFacts;
use crate::failure::ToolFailure;
use crate::hook::run_hook;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, Caller, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

pub(super) struct GuardHookTool;

impl Tool for GuardHookTool {
    type Input = run_hook::Input;
    const NAME: &'static str = "guard_hook";
    // Never retried automatically: the command may have any effect.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::GuardHook;
    const CALLER: Caller = Caller::Conversation;
    const DESCRIPTION: &'static str = "Run a configured hook that decides about a step.";
    const ALIASES: &'static [Alias] = &[];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::DenyAndAsk)];

    fn facts(input: &Self::Input) -> JudgedFacts {
        run_hook::facts(input)
    }

    fn run(input: Self::Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        run_hook::run(input, ctx)
    }
}
