//! The processes that serve a session may be away: what waits for each of them meanwhile, and what is known of it.
//! The session actor sends what is returned here. Pure, but for the thread of `replay`.

pub(super) mod failures;
pub(super) mod provider;
pub(super) mod replay;
pub(super) mod store;

use failures::Failures;
use provider::ProviderUse;
use replay::Replay;
use store::StoreQueue;

/// The links of a session; `D` is the address of a call that waits for its copies, `C` that of a client, `T` a
/// timer, and `R` a running replay.
#[derive(Debug)]
pub(super) struct Links<D, C, T, R> {
    pub(super) store: StoreQueue<D, C>,
    pub(super) provider: ProviderUse<T>,
    pub(super) replay: Replay<R>,
    pub(super) failures: Failures,
}

impl<D, C, T, R> Links<D, C, T, R> {
    /// No process runs yet.
    pub(super) fn none_yet() -> Self {
        Self {
            store: StoreQueue::none_yet(),
            provider: ProviderUse::none_yet(),
            replay: Replay::none_yet(),
            failures: Failures::default(),
        }
    }
}
