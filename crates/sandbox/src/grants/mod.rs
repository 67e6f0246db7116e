//! From a policy and a call's confinement to real places, each opened once.

mod exclusions;
mod file_identity;
mod grant_list;
mod identity;
mod key_places;
mod open_all;
mod open_path;
pub(crate) mod path_grant;
mod protection;
mod session_dirs;
mod tool_homes;
mod withheld;

pub(crate) use grant_list::Grants;
pub(crate) use key_places::{KeyPlaces, OpenedGrant};
pub(crate) use open_path::from_variable;
pub(crate) use path_grant::{GrantVia, PathGrant};
pub(crate) use protection::{Protection, ProtectionSearch};
pub(crate) use session_dirs::check_private_dirs;
