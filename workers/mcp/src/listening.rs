//! The subscription to changes of a server's lists, which servers of the newest revision report to those
//! alone who ask for them. Older servers report changes unasked. Used by the client.

use rmcp::model::{ErrorCode, ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, ServiceError};
use std::time::Duration;
use tokio::time::Instant;

/// The pause before a subscription that ended is opened again. It doubles up to `LONGEST`.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
/// After a subscription that held for so long, pauses begin anew. Proxies cut one that says nothing after half a
/// minute or more.
const HELD: Duration = Duration::from_secs(20);

/// A list of a server that is another one now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListChange {
    Tools,
    /// Resources or prompts.
    Offers,
}

/// The changes that the server reports to subscribers. None if it reports none, or reports them unasked.
pub(crate) fn reported(peer: &Peer<RoleClient>) -> Option<SubscriptionFilter> {
    let info = peer.peer_info()?;
    let lists = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .build()
        .supported_by(&info.capabilities);
    let is_newest = info.protocol_version >= ProtocolVersion::V_2026_07_28;
    (is_newest && lists != SubscriptionFilter::new()).then_some(lists)
}

/// Subscribes to these changes and reports each, for as long as the connection holds. A change before a
/// subscription stands was not reported, so each one that begins counts as a change.
pub(crate) async fn follow(
    peer: Peer<RoleClient>,
    lists: SubscriptionFilter,
    report: impl Fn(ListChange),
) {
    let mut pause = SHORTEST;
    while !peer.is_transport_closed() {
        let begun = Instant::now();
        match subscription(&peer, &lists, &report).await {
            Ok(()) => {}
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                tracing::warn!("the server reports changes of its lists to nobody");
                return;
            }
            Err(error) => tracing::debug!(%error, "a subscription to changes of lists ended"),
        }
        if begun.elapsed() > HELD {
            pause = SHORTEST;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// One subscription, until it ends.
async fn subscription(
    peer: &Peer<RoleClient>,
    lists: &SubscriptionFilter,
    report: &impl Fn(ListChange),
) -> Result<(), ServiceError> {
    let mut open = peer.listen(lists.clone()).await?;
    let accepted = open.acknowledged();
    if accepted.tools_list_changed == Some(true) {
        report(ListChange::Tools);
    }
    if [accepted.prompts_list_changed, accepted.resources_list_changed].contains(&Some(true)) {
        report(ListChange::Offers);
    }
    while let Some(change) = open.next().await? {
        let is_tools = matches!(change, ServerNotification::ToolListChangedNotification(_));
        // The filter accepts no updates of single resources.
        report(if is_tools { ListChange::Tools } else { ListChange::Offers });
    }
    Ok(())
}
