//! Extracts the prose of a page: the article with headings, lists, links and code as Markdown,
//! without navigation and other boilerplate. Pure; used by `fetch`.

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};

/// Limit of nesting, as in browsers. A deeper page is not read.
const MAX_DEPTH: usize = 512;
/// Limit of elements considered in the search for the article. Of a larger page all text is used.
const MAX_ELEMENTS: usize = 100_000;
/// If the article is shorter than the text divided by this, the search probably failed.
const MIN_SHARE: usize = 5;
/// Elements without prose.
const IGNORED_ELEMENTS: &str =
    "script, style, noscript, template, svg, iframe, head, nav, footer, form, button";

/// Title and text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Prose {
    pub title: String,
    pub text: String,
}

/// Extracts the prose of a page.
///
/// # Errors
/// The reason why it cannot be read.
pub(crate) fn prose(html: &str, url: &str) -> Result<Prose, String> {
    if depth(html) > MAX_DEPTH {
        return Err(format!("its elements are nested more than {MAX_DEPTH} deep"));
    }
    Ok(read(html, url))
}

fn read(html: &str, url: &str) -> Prose {
    let config = Config {
        text_mode: TextMode::Markdown,
        max_elements_to_parse: MAX_ELEMENTS,
        ..Config::default()
    };
    let article = Readability::new(html, Some(url), Some(config))
        .and_then(|mut reader| reader.parse())
        .map(|article| Prose {
            title: one_line(&article.title),
            text: tidied(&article.text_content),
        });
    let page = Document::from(html);
    let title = one_line(&page.select_single("title").text());
    page.select(IGNORED_ELEMENTS).remove();
    let all = || Prose { title: title.clone(), text: tidied(&page.md(None)) };
    match article {
        Ok(article) if !article.text.is_empty() => {
            let whole = page.formatted_text();
            if article.text.len() * MIN_SHARE < whole.len() { all() } else { article }
        }
        Ok(_) | Err(_) => all(),
    }
}

/// Approximate nesting depth: unclosed elements count as open.
fn depth(html: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let mut rest = html.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'<') {
        rest = &rest[at + 1..];
        match rest.first() {
            Some(b'/') => now = now.saturating_sub(1),
            Some(letter) if letter.is_ascii_alphabetic() => {
                let name: Vec<u8> = rest
                    .iter()
                    .take(10)
                    .take_while(|byte| byte.is_ascii_alphanumeric())
                    .map(u8::to_ascii_lowercase)
                    .collect();
                // Markup in scripts and styles does not count.
                if let b"script" | b"style" = &name[..] {
                    let end = rest.windows(name.len() + 2).position(|window| {
                        window.starts_with(b"</") && window[2..].eq_ignore_ascii_case(&name)
                    });
                    rest = &rest[end.unwrap_or(rest.len())..];
                    now += 1;
                } else if !VOID_OR_UNCLOSED.contains(&&name[..]) {
                    now += 1;
                    most = most.max(now);
                }
            }
            Some(_) | None => {}
        }
    }
    most
}

/// Void elements, and elements whose end tag is often omitted.
const VOID_OR_UNCLOSED: &[&[u8]] = &[
    b"area", b"base", b"br", b"col", b"dd", b"dt", b"hr", b"img", b"input", b"li", b"link",
    b"meta", b"option", b"p", b"param", b"path", b"rect", b"source", b"td", b"th", b"tr", b"track",
    b"use", b"wbr",
];

/// Collapses empty lines to at most one, with none at the ends.
fn tidied(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines().map(str::trim_end) {
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn prose(html: &str) -> Prose {
        super::prose(html, "https://example.org/a").unwrap()
    }

    #[test]
    fn an_article_is_read_without_what_stands_around_it() {
        let words = "Ferris is a crab who keeps promises about memory. ".repeat(30);
        let page = prose(&format!(
            "<html><head><title>On crabs</title><style>p {{}}</style></head><body>\
             <nav><a href=/>Home</a> <a href=/about>About us</a></nav><script>evil()</script>\
             <article><h1>On crabs</h1><p>{words}</p><p>See <a href='/b'>more</a>.</p>\
             <pre><code>let x = 1;</code></pre></article><footer>Imprint</footer></body></html>"
        ));
        assert_eq!(page.title, "On crabs");
        assert!(page.text.contains("keeps promises"), "{}", page.text);
        assert!(page.text.contains("[more](https://example.org/b)"), "{}", page.text);
        assert!(page.text.contains("let x = 1;"), "{}", page.text);
        for gone in ["evil()", "About us", "Imprint", "<p>"] {
            assert!(!page.text.contains(gone), "{gone}: {}", page.text);
        }
    }

    #[test]
    fn a_page_that_is_no_article_is_read_whole() {
        let page = prose("<title>List</title><ul><li>one<li>two</ul><table><tr><td>three</table>");
        assert_eq!(page.title, "List");
        for word in ["one", "two", "three"] {
            assert!(page.text.contains(word), "{}", page.text);
        }
        assert_eq!(prose(""), Prose::default());
        assert_eq!(prose("no markup at all").text, "no markup at all");
    }

    #[test]
    fn a_page_that_nests_without_end_is_refused_and_a_deep_one_is_read() {
        let deep =
            |count: usize| format!("{}words{}", "<div>".repeat(count), "</div>".repeat(count));
        assert!(prose(&deep(MAX_DEPTH - 10)).text.contains("words"));
        let why = super::prose(&deep(100_000), "").unwrap_err();
        assert!(why.contains("deep"), "{why}");
        let unclosed = "<div>".repeat(100_000);
        assert!(super::prose(&unclosed, "").is_err());
    }
}
