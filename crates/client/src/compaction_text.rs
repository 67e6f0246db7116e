//! The steps of making a conversation smaller, in plain words. Pure. Used by the views.

use protocol::context::{Compaction, CompactionCause, SummaryStep};

/// A sentence for people.
pub(crate) fn describe_compaction(step: &Compaction) -> String {
    match step {
        Compaction::Cut { dropped, .. } => cut(*dropped),
        Compaction::Summary(SummaryStep::Asked { dropped, cause, .. }) => {
            let why = match cause {
                CompactionCause::Person => "",
                CompactionCause::Full => "its context is nearly full: ",
            };
            format!("{why}the model writes a summary of the first {}", messages(*dropped))
        }
        Compaction::Summary(SummaryStep::Written { text, .. }) => format!(
            "this summary replaces those messages, starting with the next request; :context summary \
             changes it, and everything stays on disk\n{text}"
        ),
        Compaction::Summary(SummaryStep::Failed { reason, .. }) => {
            format!("the model wrote no summary: {reason}")
        }
        Compaction::Summary(SummaryStep::Edited { text }) => format!("the summary is now:\n{text}"),
    }
}

fn messages(count: u32) -> String {
    match count {
        1 => "message".to_owned(),
        more => format!("{more} messages"),
    }
}

fn cut(dropped: u32) -> String {
    let what = match dropped {
        0 => "gets long results of earlier calls shortened".to_owned(),
        more => format!("no longer gets the first {} of this conversation", messages(more)),
    };
    format!(
        "to shrink its context, the model {what}, starting with the next request; everything stays \
         on disk"
    )
}
