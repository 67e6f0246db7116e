//! Parts of the lock that a command's cage and an in-process lock share: the effective network and
//! Landlock's TCP rule.

use crate::landlock::ruleset::TcpAccess;
use crate::policy::ConfinementPolicy;
use crate::policy::SocketRule;
use protocol::confinement::{Confinement, Network, Tier};

/// The TCP access that Landlock leaves. Tier A does not restrict it, because loopback of its own
/// network namespace must work.
pub(crate) fn tcp(tier: Tier, network: Network) -> TcpAccess {
    match (tier, network) {
        (Tier::B | Tier::C, Network::Off | Network::Listed) => TcpAccess::Refused,
        (Tier::A, Network::Off | Network::On | Network::Listed)
        | (Tier::B | Tier::C, Network::On) => TcpAccess::Unrestricted,
    }
}

/// The requested network, as far as the policy allows it.
pub(crate) fn effective_network(policy: &ConfinementPolicy, wanted: &Confinement) -> Network {
    match policy.sockets {
        SocketRule::None => Network::Off,
        SocketRule::All => Network::On,
        SocketRule::ByNetwork => wanted.network,
    }
}
