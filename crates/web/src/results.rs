//! Parses a result page of DuckDuckGo. Pure; used by `fetch`.

use dom_query::Document;
use protocol::web::PrivateNetworks;
use tool_specs::web_url;
use tools::SearchHit;

/// The results in order; `None` if it is not a page of results.
pub(crate) fn results(html: &str, limit: usize) -> Option<Vec<SearchHit>> {
    let page = Document::from(html);
    let mut hits = Vec::new();
    for result in page.select(".result, .web-result").iter() {
        let link = result.select_single("a.result__a");
        // Advertisements link to a redirect address.
        let Some(href) = link.attr("href").filter(|href| !href.contains("/y.js")) else { continue };
        let href = match href.strip_prefix("//") {
            Some(rest) => format!("https://{rest}"),
            None => href.to_string(),
        };
        // A search result has a host name.
        let Ok(url) = web_url(&href, PrivateNetworks::Refused) else { continue };
        hits.push(SearchHit {
            title: words(&link.text()),
            url: url.to_string(),
            snippet: words(&result.select_single(".result__snippet").text()),
        });
    }
    hits.dedup_by(|hit, before| hit.url == before.url);
    let known = page.select(".no-results, .results, #links").exists();
    hits.truncate(limit);
    (known || !hits.is_empty()).then_some(hits)
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PAGE: &str = r#"<div id="links" class="results">
      <div class="result results_links result--ad"><h2><a class="result__a"
        href="https://duckduckgo.com/y.js?ad_domain=shop.example">Buy</a></h2></div>
      <div class="result results_links results_links_deep web-result"><h2 class="result__title">
        <a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fserde.rs%2F&amp;rut=1">Serde
          &amp; friends</a></h2>
        <a class="result__snippet" href="x">A <b>framework</b> for data.</a></div>
      <div class="result web-result"><a class="result__a" href="https://docs.rs/serde">docs</a></div>
      <div class="result web-result"><a class="result__a" href="javascript:x()">no</a></div>
    </div>"#;

    #[test]
    fn results_are_read_with_their_targets() {
        let hits = results(PAGE, 10).unwrap();
        assert_eq!(hits.len(), 2, "{hits:?}");
        assert_eq!(
            hits[0],
            SearchHit {
                title: "Serde & friends".into(),
                url: "https://serde.rs/".into(),
                snippet: "A framework for data.".into()
            }
        );
        assert_eq!(hits[1].url, "https://docs.rs/serde");
        assert_eq!(results(PAGE, 1).unwrap().len(), 1);
    }

    #[test]
    fn no_results_and_no_page_of_results_are_two_things() {
        assert_eq!(results("<div class='no-results'>No results.</div>", 5), Some(Vec::new()));
        assert_eq!(results("<form>Please prove that you are a person</form>", 5), None);
    }
}
