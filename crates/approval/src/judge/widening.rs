//! Rights beyond the session's: one by one, and in plain words. For `digest`, `rights` and `messages`; each
//! is in a question and in the digest that an answer binds to.

use protocol::hidden::visible;
use protocol::judgement::ExtraRight;

/// The rights that are asked for, one by one, as far as rules give them one by one.
#[must_use]
pub fn split_rights(widens: &[ExtraRight]) -> Vec<ExtraRight> {
    let one_by_one = |widening: &ExtraRight| match widening {
        ExtraRight::Hosts(hosts) => {
            hosts.iter().map(|host| ExtraRight::Hosts(vec![host.clone()])).collect()
        }
        whole @ (ExtraRight::Network
        | ExtraRight::Directory(_)
        | ExtraRight::GitAdmin
        | ExtraRight::GitSign) => {
            vec![whole.clone()]
        }
    };
    widens.iter().flat_map(one_by_one).collect()
}

/// A right beyond the session's, in plain words.
pub(crate) fn describe(widening: &ExtraRight) -> String {
    match widening {
        ExtraRight::Network => "network for this one call".to_owned(),
        ExtraRight::Hosts(hosts) => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("network to {} for this one call", hosts.join(", "))
        }
        ExtraRight::Directory(dir) => {
            format!("the directory {} for this one call", visible(&dir.to_path().to_string_lossy()))
        }
        ExtraRight::GitAdmin => "changing git's settings and hooks for this one call".to_owned(),
        ExtraRight::GitSign => {
            "signing git commits and tags with your ssh key for this one call".to_owned()
        }
    }
}
