//! The identities of the paths that a cage has opened or covers, as text: equal texts mean that the
//! same files and directories are there.

use super::file_identity::{identity, identity_of};
use super::grant_list::Grants;
use nix::sys::stat::fstat;

impl Grants {
    /// One line for each path, with device and inode, and one for each reason why a path was left out.
    pub(crate) fn identities(&self) -> String {
        let grants = self.list.iter().map(|grant| {
            let shown = (&grant.path, grant.access, grant.fresh, &grant.overlay);
            format!("{:?} {:?} {shown:?}\n", grant.host, fstat(&grant.fd).ok().map(identity))
        });
        let covered = self.covered.iter();
        let covered = covered.map(|path| format!("{path:?} {:?} covered\n", identity_of(path)));
        let links = self.links.iter().map(|link| format!("{:?} links to {:?}\n", link.at, link.to));
        let keys = self.keys.iter().map(|key| format!("{key:?} stays readable\n"));
        let left_out = self.missing.iter().chain(&self.left_out).chain(&self.overlay_failures);
        let left_out = left_out.map(|why| format!("{why:?}\n"));
        grants.chain(covered).chain(links).chain(keys).chain(left_out).collect()
    }
}
