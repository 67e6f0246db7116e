//! Git's settings as git reads them, for the few keys that are looked for. `vet` is stricter: it
//! believes nothing that could be read in two ways. For `led` only.

/// Sections and keys in lower case, and values, in order.
#[derive(Debug)]
pub(super) struct Settings(Vec<(String, String, String)>);

impl Settings {
    /// Reads them. What git would refuse ends the reading, as it ends git's.
    pub(super) fn of(text: &str) -> Self {
        let mut found = Vec::new();
        let mut section = String::new();
        let joined = text.replace("\\\r\n", "").replace("\\\n", "");
        for line in joined.lines() {
            let mut line = line.trim();
            if let Some(head) = line.strip_prefix('[') {
                let Some((name, rest)) = head.split_once(']') else { break };
                section = name.split_whitespace().next().unwrap_or_default().to_lowercase();
                // `[section "name"]` is another section than `[section]`.
                if name.contains('"') {
                    section.push_str(" *");
                }
                line = rest.trim();
            }
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            found.push((section.clone(), key.trim().to_lowercase(), unquoted(value.trim())));
        }
        Self(found)
    }

    /// All values of a key: which of them holds depends on files that are not looked at.
    pub(super) fn values(&self, section: &str, key: &str) -> Vec<&str> {
        let wanted = |(of, name, _): &&(String, String, String)| of == section && name == key;
        self.0.iter().filter(wanted).map(|(_, _, value)| value.as_str()).collect()
    }

    /// Whether others are to be read too.
    pub(super) fn includes(&self) -> bool {
        let including = |section: &str| section == "include" || section.starts_with("includeif");
        self.0.iter().any(|(section, key, _)| including(section) && key == "path")
    }
}

/// Without quotes, and without the comment behind it.
fn unquoted(value: &str) -> String {
    let mut plain = String::new();
    let mut quoted = false;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => plain.extend(letters.next()),
            '#' | ';' if !quoted => break,
            letter => plain.push(letter),
        }
    }
    if value.ends_with('"') { plain } else { plain.trim_end().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_hooks_is_found_however_it_is_written() {
        for text in [
            "[core]\n\thooksPath = .githooks\n",
            "[CORE]\nhookspath=.githooks\n",
            "[core] hooksPath = .githooks\n",
            "[core]\n\tbare = false\n\thooksPath = \".githooks\" # ours\n",
            "[core]\n\thooksPath = .git\\\nhooks\n",
            "[user]\n\tname = a\n[core]\n\thooksPath = .githooks ; ours\n",
        ] {
            assert_eq!(Settings::of(text).values("core", "hookspath"), [".githooks"], "{text}");
        }
        for text in [
            "[core]\n\t# hooksPath = .githooks\n",
            "[core \"x\"]\n\thooksPath = .githooks\n",
            "[user]\n\thooksPath = .githooks\n",
        ] {
            assert!(Settings::of(text).values("core", "hookspath").is_empty(), "{text}");
        }
        assert!(Settings::of("[include]\n\tpath = more\n").includes());
        assert!(Settings::of("[includeIf \"gitdir:/\"]\n\tpath = more\n").includes());
        assert!(!Settings::of("[core]\n\tpath = more\n").includes());
    }
}
