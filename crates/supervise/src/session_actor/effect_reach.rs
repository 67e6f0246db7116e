//! How far a call's effects reach by its cage, for the mode `sandboxed`: from the session's settings as they are when
//! the call is proposed. Paths are judged by the broker, and the store says what undo covers. Pure.

use call::{Executor, UndoBy};
use protocol::confinement::{Confinement, FilePath, Level, Network, Profile, Tier};
use protocol::judgement::{Effect, EffectReach, PermissionMode, ToolKind};
use tool_specs::{RunsIn, ServerToolCall};

/// A call that is about to be judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReachingCall<'a> {
    pub(super) mode: PermissionMode,
    pub(super) kind_for_verdict: ToolKind,
    pub(super) tool: &'a str,
    pub(super) executor: &'a Executor,
    pub(super) runs_in: RunsIn,
    pub(super) undo: UndoBy,
    /// With the rights that it asks for.
    pub(super) confinement: &'a Confinement,
    pub(super) profile: Profile,
    /// The tier that the session's commands get.
    pub(super) tier: Tier,
}

/// How far it reaches. Unknown where no mode is asked about it, or another one decides.
pub(super) fn reach(call: ReachingCall<'_>) -> EffectReach {
    let in_sandbox = match call.mode {
        PermissionMode::Sandboxed => EffectReach::Undoable,
        PermissionMode::Ask | PermissionMode::AcceptEdits => EffectReach::InSandbox,
        PermissionMode::Plan | PermissionMode::Auto | PermissionMode::DontAsk => {
            return EffectReach::Unknown;
        }
    };
    if call.kind_for_verdict == ToolKind::Query {
        return EffectReach::Unknown;
    }
    let effects = match (call.executor, call.profile, call.undo) {
        (Executor::Runner, Profile::Mutate, UndoBy::Copy | UndoBy::Restore) => {
            weaker(call).into_iter().collect()
        }
        (Executor::Runner, Profile::Command | Profile::Git, UndoBy::Snapshot) => of_command(call),
        (Executor::Job(_), _, _) => vec![Effect::Input],
        (Executor::Server(ServerToolCall { tool, .. }), _, _) => {
            vec![Effect::ServerTool(tool.clone())]
        }
        (
            Executor::Runner | Executor::Conversation(_) | Executor::Store | Executor::SubAgent(_),
            _,
            _,
        ) => return EffectReach::Unknown,
    };
    match (in_sandbox, effects.is_empty()) {
        (in_sandbox, true) => in_sandbox,
        (EffectReach::Undoable, false) => EffectReach::Beyond(effects),
        // No question names them in another mode.
        (_, false) => EffectReach::Unknown,
    }
}

fn of_command(call: ReachingCall<'_>) -> Vec<Effect> {
    let Confinement { network, hosts, added, .. } = call.confinement;
    let reached = match network {
        Network::Off => None,
        Network::On => Some(Effect::Network),
        Network::Listed => Some(Effect::Hosts(hosts.clone())),
    };
    let outside: Vec<FilePath> = added.clone();
    let outside = (!outside.is_empty()).then_some(Effect::Outside(outside));
    let git = tool_specs::changes_git_directory(call.tool).then_some(Effect::GitDirectory);
    let background = match call.runs_in {
        RunsIn::Background => Some(Effect::Background),
        RunsIn::Foreground => None,
    };
    [weaker(call), reached, outside, git, background].into_iter().flatten().collect()
}

/// Only the full sandbox bounds what a call does.
fn weaker(call: ReachingCall<'_>) -> Option<Effect> {
    let Confinement { level, highest_tier, .. } = call.confinement;
    let tier = match (level, *highest_tier, call.tier) {
        (Level::Uncaged, _, _) => Tier::C,
        (Level::Required | Level::BestEffort, Tier::A, tier) => tier,
        (Level::Required | Level::BestEffort, lower, _) => lower,
    };
    (tier != Tier::A).then_some(Effect::WeakerSandbox(tier))
}

#[cfg(test)]
mod tests {
    use super::*;
    use call::Executor;

    fn reached(change: impl FnOnce(&mut Confinement), tier: Tier) -> EffectReach {
        let mut confinement = Confinement::closed(Profile::Command, "/p", "/t");
        change(&mut confinement);
        reach(ReachingCall { confinement: &confinement, tier, ..command(&confinement) })
    }

    fn command(confinement: &Confinement) -> ReachingCall<'_> {
        ReachingCall {
            mode: PermissionMode::Sandboxed,
            kind_for_verdict: ToolKind::Mutation,
            tool: "bash",
            executor: &Executor::Runner,
            runs_in: RunsIn::Foreground,
            undo: UndoBy::Snapshot,
            confinement,
            profile: Profile::Command,
            tier: Tier::A,
        }
    }

    fn beyond(effect: Effect) -> EffectReach {
        EffectReach::Beyond(vec![effect])
    }

    #[test]
    fn a_command_reaches_as_far_as_its_cage_lets_it() {
        assert_eq!(reached(|_| {}, Tier::A), EffectReach::Undoable);
        let host: protocol::hosts::HostRule =
            "crates.io".parse().unwrap_or_else(|_| unreachable!());
        let listed = |cage: &mut Confinement| {
            (cage.network, cage.hosts) = (Network::Listed, vec![host.clone()]);
        };
        assert_eq!(reached(listed, Tier::A), beyond(Effect::Hosts(vec![host.clone()])));
        let on = |cage: &mut Confinement| cage.network = Network::On;
        assert_eq!(reached(on, Tier::A), beyond(Effect::Network));
        let added = |cage: &mut Confinement| cage.added.push("/srv".into());
        assert_eq!(reached(added, Tier::A), beyond(Effect::Outside(vec!["/srv".into()])));
        assert_eq!(reached(|_| {}, Tier::B), beyond(Effect::WeakerSandbox(Tier::B)));
        let lower = |cage: &mut Confinement| cage.highest_tier = Tier::B;
        assert_eq!(reached(lower, Tier::A), beyond(Effect::WeakerSandbox(Tier::B)));
        let uncaged = |cage: &mut Confinement| cage.level = Level::Uncaged;
        assert_eq!(reached(uncaged, Tier::A), beyond(Effect::WeakerSandbox(Tier::C)));
        let both = |cage: &mut Confinement| {
            (cage.network, cage.highest_tier) = (Network::On, Tier::B);
        };
        let effects = vec![Effect::WeakerSandbox(Tier::B), Effect::Network];
        assert_eq!(reached(both, Tier::B), EffectReach::Beyond(effects));
    }

    #[test]
    fn what_is_no_command_of_a_runner_is_known_by_its_effect_or_not_at_all() {
        let cage = Confinement::closed(Profile::Command, "/p", "/t");
        let call = command(&cage);
        let background = ReachingCall { runs_in: RunsIn::Background, ..call };
        assert_eq!(reach(background), beyond(Effect::Background));
        for tool in ["git_add", "git_commit"] {
            assert_eq!(reach(ReachingCall { tool, ..call }), beyond(Effect::GitDirectory));
        }
        let asking = ReachingCall { mode: PermissionMode::Ask, ..call };
        assert_eq!(reach(asking), EffectReach::InSandbox);
        let unknown = [
            ReachingCall { tier: Tier::B, ..asking },
            ReachingCall { mode: PermissionMode::Auto, ..call },
            ReachingCall { kind_for_verdict: ToolKind::Query, ..call },
            ReachingCall { executor: &Executor::Store, undo: UndoBy::Nothing, ..call },
            ReachingCall { profile: Profile::McpWrite, ..call },
            ReachingCall { profile: Profile::Hook, ..call },
            ReachingCall { undo: UndoBy::Nothing, ..call },
        ];
        for other in unknown {
            assert_eq!(reach(other), EffectReach::Unknown, "{other:?}");
        }
        let job = tool_specs::JobRequest { call: 7, asks: tool_specs::JobAsk::Stop };
        let executor = &Executor::Job(job);
        assert_eq!(reach(ReachingCall { executor, ..call }), beyond(Effect::Input));
        let file = ReachingCall { profile: Profile::Mutate, undo: UndoBy::Copy, ..call };
        assert_eq!(reach(file), EffectReach::Undoable);
        assert_eq!(
            reach(ReachingCall { tier: Tier::B, ..file }),
            beyond(Effect::WeakerSandbox(Tier::B))
        );
    }
}
