//! Markdown of the model as HTML that loads nothing and runs nothing. Pure. For `export`.

use super::html_text::escape;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Its HTML. Markup in the text is shown as text; pictures and links to anything but web pages become
/// their addresses.
pub(super) fn to_html(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    // Addresses of links and pictures that became text, the innermost last.
    let mut as_text: Vec<Option<String>> = Vec::new();
    // The language of the code block that is open, and its lines so far.
    let mut code: Option<(String, String)> = None;
    let events = Parser::new_ext(text, options).map(|event| match event {
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
            code = Some((language.to_string(), String::new()));
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
        }
        Event::Text(lines) if code.is_some() => {
            code.iter_mut().for_each(|(_, whole)| whole.push_str(&lines));
            Event::Text(CowStr::Borrowed(""))
        }
        Event::End(TagEnd::CodeBlock) => match code.take() {
            Some((language, lines)) => {
                Event::Html(format!("{}</code></pre>\n", coloured(&language, &lines)).into())
            }
            None => Event::End(TagEnd::CodeBlock),
        },
        Event::Html(markup) | Event::InlineHtml(markup) => Event::Text(markup),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            if is_page(&dest_url) {
                as_text.push(None);
                return Event::Start(Tag::Link { link_type, dest_url, title, id });
            }
            as_text.push(Some(dest_url.into_string()));
            Event::Text(CowStr::Borrowed(""))
        }
        Event::Start(Tag::Image { dest_url, .. }) => {
            as_text.push(Some(dest_url.into_string()));
            Event::Text(CowStr::Borrowed("[picture] "))
        }
        Event::End(end @ (TagEnd::Link | TagEnd::Image)) => match as_text.pop().flatten() {
            Some(address) => Event::Text(format!(" ({address})").into()),
            None => Event::End(end),
        },
        event @ (Event::Start(_)
        | Event::End(_)
        | Event::Text(_)
        | Event::Code(_)
        | Event::InlineMath(_)
        | Event::DisplayMath(_)
        | Event::FootnoteReference(_)
        | Event::SoftBreak
        | Event::HardBreak
        | Event::Rule
        | Event::TaskListMarker(_)) => event,
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

/// Code with its colours, as classes of the page.
pub(super) fn coloured(language: &str, code: &str) -> String {
    let span = |(colour, text): (Option<u8>, String)| match colour {
        Some(number) => format!("<span class=\"c{number}\">{}</span>", escape(&text)),
        None => escape(&text),
    };
    terminal::code_spans(language, code).into_iter().map(span).collect()
}

fn is_page(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    address.starts_with("https://") || address.starts_with("http://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text_and_nothing_is_loaded() {
        for (text, html) in [
            ("# T\n\n*a* `b<c`", "<h1>T</h1>\n<p><em>a</em> <code>b&lt;c</code></p>\n"),
            ("<script>x()</script>", "&lt;script&gt;x()&lt;/script&gt;"),
            ("a <img src=x onerror=y> b", "<p>a &lt;img src=x onerror=y&gt; b</p>\n"),
            ("![p](https://e.org/p.png)", "<p>[picture] p (https://e.org/p.png)</p>\n"),
            ("[go](javascript:alert(1))", "<p>go (javascript:alert(1))</p>\n"),
            ("[go](JAVASCRIPT:x)", "<p>go (JAVASCRIPT:x)</p>\n"),
            ("[go](data:text/html,x)", "<p>go (data:text/html,x)</p>\n"),
            (
                "[w](https://e.org/?a=1&b=\"2)",
                "<p><a href=\"https://e.org/?a=1&amp;b=%222\">w</a></p>\n",
            ),
            (
                "[![p](https://e.org/p.png)](javascript:x)",
                "<p>[picture] p (https://e.org/p.png) (javascript:x)</p>\n",
            ),
            (
                "```rust\nlet a = \"<b>\";\n```",
                "<pre><code class=\"language-rust\"><span class=\"c5\">let</span> a \
                 <span class=\"c5\">=</span> <span class=\"c2\">&quot;&lt;b&gt;&quot;</span>;\n</code></pre>\n",
            ),
            (
                "```\"><script>\nx\n```",
                "<pre><code class=\"language-&quot;&gt;&lt;script&gt;\">x\n</code></pre>\n",
            ),
        ] {
            assert_eq!(to_html(text), html, "{text}");
        }
    }
}
