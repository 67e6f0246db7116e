//! A server's lists, page by page, with an end: a server may name a next page for ever. Used by the client and
//! by `offers`.

use crate::oauth::said;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::ServiceError;
use serde::Serialize;
use std::collections::HashSet;
use std::time::Duration;

/// Most pages, things, and bytes of a list.
const PAGES: usize = 100;
const THINGS: usize = 2000;
const BYTES: usize = 32 << 20;

/// A page: its things, and the next one.
pub(crate) type Page<T> = (Vec<T>, Option<String>);

/// A list, and why it is not whole.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) things: Vec<T>,
    pub(crate) cut: Option<String>,
}

/// All pages of a list. A list whose server names a page again ends there.
///
/// # Errors
/// A request failed, the list does not come in this time, or it has no end.
pub(crate) async fn all<T: Serialize, F>(
    limit: Duration,
    mut page: impl FnMut(Option<PaginatedRequestParams>) -> F,
) -> Result<Listed<T>, String>
where
    F: Future<Output = Result<Page<T>, ServiceError>>,
{
    let listed = async {
        let (mut things, mut bytes, mut cursor) = (Vec::new(), 0, None::<String>);
        let mut known = HashSet::new();
        for _ in 0..PAGES {
            let of =
                cursor.take().map(|it| PaginatedRequestParams::default().with_cursor(Some(it)));
            let (more, next) = page(of).await.map_err(|error| said(&error))?;
            bytes += more.iter().map(length).sum::<usize>();
            things.extend(more);
            if things.len() > THINGS || bytes > BYTES {
                return Err(format!("it is longer than {THINGS} or {} MiB", BYTES >> 20));
            }
            let Some(next) = next else { return Ok(Listed { things, cut: None }) };
            if !known.insert(next.clone()) {
                let cut = Some("its server names the same next page again and again".to_owned());
                return Ok(Listed { things, cut });
            }
            cursor = Some(next);
        }
        Err(format!("it has more than {PAGES} pages"))
    };
    let late = |_| format!("it did not come within {} s", limit.as_secs_f64());
    tokio::time::timeout(limit, listed).await.map_err(late)?
}

fn length<T: Serialize>(thing: &T) -> usize {
    serde_json::to_string(thing).map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TIME: Duration = Duration::from_secs(5);

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(work)
    }

    #[test]
    fn pages_are_joined_and_asked_for_by_their_cursors() {
        let mut asked = Vec::new();
        let listed = block_on(all(TIME, |of| {
            let cursor = of.and_then(|of| of.cursor);
            let next = (asked.len() < 2).then(|| format!("page {}", asked.len()));
            asked.push(cursor);
            std::future::ready(Ok((vec![asked.len()], next)))
        }));
        assert_eq!(listed.unwrap().things, [1, 2, 3]);
        assert_eq!(asked, [None, Some("page 0".to_owned()), Some("page 1".to_owned())]);
    }

    #[test]
    fn a_list_whose_server_names_a_page_again_ends_there() {
        let again = || Ok((vec![1], Some("again".to_owned())));
        let listed = block_on(all(TIME, |_| std::future::ready(again()))).unwrap();
        assert_eq!(listed.things, [1, 1]);
        assert!(listed.cut.unwrap().contains("again"));
    }

    #[test]
    fn a_list_without_an_end_is_refused() {
        let mut page = 0;
        let mut next = || {
            page += 1;
            Ok((vec![1], Some(page.to_string())))
        };
        let error = block_on(all(TIME, |_| std::future::ready(next()))).unwrap_err();
        assert!(error.contains("100 pages"), "{error}");
        let mut page = 0;
        let mut long = || {
            page += 1;
            Ok((vec!["x".repeat(BYTES / 3)], Some(page.to_string())))
        };
        let error = block_on(all(TIME, |_| std::future::ready(long()))).unwrap_err();
        assert!(error.contains("32 MiB"), "{error}");
        let many = || Ok((vec![1; THINGS + 1], None));
        assert!(block_on(all(TIME, |_| std::future::ready(many()))).is_err());
        let hangs = block_on(all::<u8, _>(Duration::from_millis(20), |_| std::future::pending()));
        assert!(hangs.unwrap_err().contains("did not come"));
    }
}
