//! `web_fetch`: the text of a page; an image for models that see.

use crate::failure::{FailureCode, ToolFailure};
use crate::files::image;
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use protocol::hidden::line_for_model;
use tool_specs::ToolAnswer;
use tool_specs::text::truncate;
use tool_specs::tool::web_fetch::{Input, WebFetchTool};

/// Most characters of a page's text that the model gets.
pub(crate) const CHARS: usize = 40_000;

impl Tool for WebFetchTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let page = ctx.web()?.page(&input.url.url, ctx.cancel)?;
        if let Some(bytes) = &page.image {
            return show(bytes, &page.url, ctx);
        }
        let mut head = format!("URL: {}\n", page.url);
        if !page.title.is_empty() {
            head.push_str(&format!("Title: {}\n", page.title));
        }
        let whole = page.text.chars().count();
        let text = truncate::fit(&page.text, CHARS, "fetch a narrower page");
        let summary = match page.title.as_str() {
            "" => format!("{}: {whole} characters", page.url),
            title => format!("{title} ({}): {whole} characters", page.url),
        };
        let mut answer = ToolAnswer::done(format!("{head}\n{text}"), summary, Vec::new());
        if page.cut {
            answer.footer.push(
                "[only the first part of the page was read; it exceeds the size limit]".to_owned(),
            );
        }
        Ok(answer)
    }
}

/// The answer that shows an image.
fn show(bytes: &[u8], url: &str, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
    let Some(format) = image::format(bytes) else {
        return Err(ToolFailure::new(FailureCode::BadImage, format!("{url} is not an image"), ""));
    };
    // A decoder that the file takes over reaches no one.
    ctx.web()?.leave_network()?;
    let image = image::decode(bytes, format, (url, line_for_model(url).into_owned()), ctx.cancel)?;
    let line = image.line();
    ctx.extras.images.push(image.file);
    Ok(ToolAnswer::done(line.clone(), line, Vec::new()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cancel::Cancel;
    use crate::engine::Engine;
    use crate::engine::error::EngineError;
    use crate::engine::web::{SearchHit, WebEngine, WebPage};
    use crate::tool_context::ReportExtras;
    use sandbox::CallScope;
    use tool_specs::tool::web_fetch::PageUrl;
    use url::Url;

    /// A server of one damaged image; whether this process can leave the network.
    struct OneImage(Result<(), EngineError>);

    impl WebEngine for OneImage {
        fn page(&self, url: &Url, _: &Cancel) -> Result<WebPage, EngineError> {
            let image = Some(b"\x89PNG\r\n\x1a\nno more".to_vec());
            let (url, title, text) = (url.to_string(), String::new(), String::new());
            Ok(WebPage { url, title, text, cut: false, image })
        }

        fn search(&self, _: &str, _: usize, _: &Cancel) -> Result<Vec<SearchHit>, EngineError> {
            Ok(Vec::new())
        }

        fn leave_network(&self) -> Result<(), EngineError> {
            self.0.clone()
        }
    }

    #[test]
    fn no_image_is_decoded_where_the_network_stays_in_reach() {
        let fetch = |engine: &OneImage| {
            let cancel = Cancel::new().unwrap();
            let scope = CallScope {
                project: "/p".into(),
                added: Vec::new(),
                temp: "/t".into(),
                private: Vec::new(),
                home: None,
                caches: None,
                withheld: Vec::new(),
            };
            let mut ctx = ToolContext {
                scope: &scope,
                judged: &[],
                cancel: &cancel,
                command: None,
                max_chars: 1000,
                engine: Engine::Web(engine),
                denied: prompts::DeniedReads::NONE,
                protected: Default::default(),
                extras: ReportExtras::default(),
            };
            let url = PageUrl::try_from("https://example.org/a.png".to_owned()).unwrap();
            WebFetchTool::run(Input { url }, &mut ctx).unwrap_err().message
        };
        assert!(fetch(&OneImage(Ok(()))).contains("cannot be decoded"));
        let (code, message) = (FailureCode::Unreachable, "still there".to_owned());
        let stays = OneImage(Err(EngineError { code, message, hint: String::new() }));
        assert_eq!(fetch(&stays), "still there");
    }
}
