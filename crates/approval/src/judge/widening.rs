//! Rights beyond the session's: one by one, and in plain words. For `digest`, `rights` and `wording`; each
//! is in a question and in the digest that an answer binds to.

use protocol::hidden::visible;
use protocol::judgement::Widening;

/// The rights that are asked for, one by one, as far as rules give them one by one.
#[must_use]
pub fn split_rights(widens: &[Widening]) -> Vec<Widening> {
    let one_by_one = |widening: &Widening| match widening {
        Widening::Hosts(hosts) => {
            hosts.iter().map(|host| Widening::Hosts(vec![host.clone()])).collect()
        }
        whole @ (Widening::Network
        | Widening::Directory(_)
        | Widening::GitAdmin
        | Widening::GitSign) => {
            vec![whole.clone()]
        }
    };
    widens.iter().flat_map(one_by_one).collect()
}

/// A right beyond the session's, in plain words.
pub(crate) fn describe(widening: &Widening) -> String {
    match widening {
        Widening::Network => "network for this one call".to_owned(),
        Widening::Hosts(hosts) => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("network to {} for this one call", hosts.join(", "))
        }
        Widening::Directory(dir) => {
            format!("the directory {} for this one call", visible(&dir.to_path().to_string_lossy()))
        }
        Widening::GitAdmin => "changing git's settings and hooks for this one call".to_owned(),
        Widening::GitSign => {
            "signing git commits and tags with your ssh key for this one call".to_owned()
        }
    }
}
