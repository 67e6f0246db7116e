//! Settings of the person's programs apply in commands and in git's tools. Keys in these settings
//! do not enter the cage.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, needs, run};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// A text that must be in no answer.
const TOKEN: &str = "ghp_4f1cTOKEN";

/// A file of the home.
fn at_home(desk: &Desk, name: &str, text: &str) {
    let path = desk.home().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The results of these calls for the model, and the run.
fn told(desk: &Desk, tier: &str, calls: &[(&str, Value)]) -> (Vec<String>, Run) {
    let asked = calls.iter().enumerate().map(|(number, (tool, input))| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server = Server::scripted(asked.chain([Answer::text("done")]));
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier);
    // As a person's has it: with a directory that is not there.
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("/nowhere/bin:{path}"));
    let ran = crate::support::run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let said = server.requests().into_iter().skip(1).map(|request| {
        let last = request.body["messages"].as_array().unwrap().last().unwrap().clone();
        let content = &last["content"][0]["content"];
        content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default().to_owned()
    });
    (said.collect(), ran)
}

#[test]
fn git_s_own_settings_hold_without_their_keys() {
    needs("git");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let project = desk.project().display().to_string();
        at_home(
            &desk,
            ".gitconfig",
            &format!(
                "[user]\n\tname = Ann\n\temail = ann@home\n[core]\n\texcludesFile = ~/lists/ignore\n\
                 [alias]\n\tst = status --short\n\
                 [credential]\n\thelper = store --file ~/{TOKEN}\n\
                 [url \"https://{TOKEN}@github.com/\"]\n\tinsteadOf = https://github.com/\n\
                 [includeIf \"gitdir:{project}/\"]\n\tpath = work.inc\n"
            ),
        );
        at_home(&desk, "work.inc", "[user]\n\temail = ann@work\n");
        at_home(&desk, "lists/ignore", ".env\n");
        desk.write(".env", "SECRET=1\n");
        desk.write("a", "one\n");
        let bash = |command: &str| ("bash", json!({ "command": command }));
        let calls = [
            bash("git init -q . && git st && cat ~/.gitconfig ~/lists/ignore; git config --list"),
            bash(
                "f=$GIT_CONFIG_GLOBAL; (echo '[core] excludesFile = /dev/null' >> $f; rm -f $f; \
                 mv $(dirname $f) x; git config --global core.excludesFile /dev/null); echo tried",
            ),
            ("git_add", json!({ "all": true })),
            ("git_commit", json!({ "subject": "The first" })),
            ("git_status", json!({})),
            bash("git log -1 --format='%an %ae'; git ls-files; git status --short"),
        ];
        let (said, ran) = told(&desk, tier, &calls);
        let explained = said.join("\n----\n");
        assert!(said[0].starts_with("?? a\n") && !said[0].contains("?? .env"), "{explained}");
        assert!(!explained.contains(TOKEN), "tier {tier}: {explained}");
        assert!(said[1].contains("tried"), "{explained}");
        assert_eq!(
            said[5].lines().take(3).collect::<Vec<_>>()[..2],
            ["Ann ann@work", "a"],
            "{explained}"
        );
        assert!(!said[5].contains(".env"), "tier {tier}: {explained}");
        for word in ["git's credential.helper", "git's url.*.insteadof"] {
            assert_eq!(ran.err.matches(word).count(), 1, "{word}: {}", ran.err);
        }
        // The person's own git says the same of these files.
        assert_eq!(desk.read(".env"), "SECRET=1\n");
    }
}

#[test]
fn package_managers_have_their_registries_without_their_keys() {
    needs("npm");
    needs("pip");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let url = |name: &str| format!("https://ann:{TOKEN}@{name}.example/");
        at_home(
            &desk,
            ".npmrc",
            &format!("registry={}\n//npm.example/:_authToken={TOKEN}\n", url("npm")),
        );
        at_home(&desk, ".config/pip/pip.conf", &format!("[global]\nindex-url={}\n", url("pip")));
        at_home(&desk, ".config/uv/uv.toml", &format!("index-url = \"{}\"\n", url("uv")));
        at_home(
            &desk,
            ".cargo/config.toml",
            &format!(
                "[registries.corp]\nindex = \"sparse+{}\"\ntoken = \"{TOKEN}\"\n\
                 [alias]\nknown = \"check\"\n",
                url("cargo")
            ),
        );
        let script = "npm config get registry; pip config list; cat ${XDG_CONFIG_DIRS%%:*}/uv/uv.toml; \
            cat $CARGO_HOME/config.toml; \
            cat ~/.npmrc ~/.config/pip/pip.conf ~/.config/uv/uv.toml ~/.cargo/config.toml; \
            echo x >> $NPM_CONFIG_USERCONFIG; echo end";
        let (said, ran) = told(&desk, tier, &[("bash", json!({ "command": script }))]);
        let words = ["https://npm.example/", "https://pip.example/", "https://uv.example/"];
        for word in
            words.iter().chain(&["sparse+https://cargo.example/", "known = \"check\"", "end"])
        {
            assert!(said[0].contains(word), "tier {tier} lacks {word}: {}", said[0]);
        }
        assert!(!said[0].contains(TOKEN), "tier {tier}: {}", said[0]);
        for word in ["npm's //npm.example/:_authToken", "pip's password in index-url"] {
            assert_eq!(ran.err.matches(word).count(), 1, "{word}: {}", ran.err);
        }
    }
}

/// A home that is kept in the project, as by stow: a command may lay each of its links anew.
#[test]
fn links_that_lead_through_the_project_open_nothing_that_a_command_chose() {
    needs("git");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let (home, project) = (desk.home(), desk.project());
        at_home(&desk, ".ssh/id", TOKEN);
        at_home(&desk, "private/notes", TOKEN);
        at_home(&desk, "lists/template", "of-the-template\n");
        at_home(&desk, "tools/pyenv/x", "of-pyenv\n");
        let ignore = project.join("ignore");
        std::fs::create_dir_all(project.join("nvm")).unwrap();
        for (file, text) in [("versions", "node"), ("nvm/x", "of-nvm\n"), ("ignore", "*.o\n")] {
            std::fs::write(project.join(file), text).unwrap();
        }
        for (to, link) in [
            (project.join("versions"), ".tool-versions"),
            (project.join("nvm"), ".nvm"),
            (home.join("tools/pyenv"), ".pyenv"),
            (home.join("lists/template"), "template"),
        ] {
            std::os::unix::fs::symlink(to, home.join(link)).unwrap();
        }
        let named = format!(
            "[core]\n\texcludesFile = {}\n[commit]\n\ttemplate = ~/template\n",
            ignore.display()
        );
        at_home(&desk, ".gitconfig", &named);
        let bash = |script: &str| ("bash", json!({ "command": script }));
        let read = "cat ~/.nvm/* ~/.tool-versions ~/.pyenv/x; cat $(git config core.excludesFile) \
                    $(git config commit.template); cat ~/.ssh/id ~/private/notes; echo end";
        let anew = "rm -r nvm versions ignore; ln -s ~/.ssh nvm; ln -s ~/private/notes versions; \
                    ln -s ~/private/notes ignore";
        let (said, _) = told(&desk, tier, &[bash(read), bash(anew), bash(read)]);
        for word in ["of-nvm", "node", "*.o"] {
            assert!(said[0].contains(word), "tier {tier} lacks {word}: {}", said[0]);
        }
        assert!(project.join("nvm").is_symlink() && ignore.is_symlink(), "tier {tier}: {said:?}");
        let (next, ran) = told(&desk, tier, &[bash(read)]);
        for said in said.iter().chain(&next).filter(|said| said.contains("end")) {
            for word in ["of-pyenv", "of-the-template"] {
                assert!(said.contains(word), "tier {tier} lacks {word}: {said}");
            }
        }
        assert!(next[0].contains("end"), "tier {tier}: {next:?}");
        let all = format!("{said:?} {next:?}");
        assert!(!all.contains(TOKEN), "tier {tier}: {all}");
        assert!(ran.err.contains("commands can write a link on the way"), "{}", ran.err);
    }
}

/// The mask is that of the shell in which the session was opened, in tier A and B, for commands and file tools.
#[test]
fn files_have_the_modes_of_the_persons_umask() {
    let modes = |mask: &str, tier: &str| {
        let desk = Desk::new();
        let bash = json!({ "command": "mkdir made && echo x > made/file" }).to_string();
        let write = json!({ "path": "new/other", "content": "x" }).to_string();
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &bash)]),
            Answer::says([call("toolu_2", "write", &write)]),
            Answer::text("done"),
        ]);
        let agentd = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        let mut masked = std::process::Command::new("sh");
        masked.args(["-c", &format!("umask {mask}; exec \"$@\""), "sh"]).arg(agentd.get_program());
        masked.args(agentd.get_args()).current_dir(desk.project()).env_clear();
        masked.envs(agentd.get_envs().filter_map(|(name, value)| Some((name, value?))));
        masked.env("AGENTD_SANDBOX_TIER", tier).stdin(std::process::Stdio::null());
        let ran = run(masked);
        assert_eq!(ran.code, 0, "{ran:?}");
        ["made", "made/file", "new/other"].map(|name| {
            std::fs::metadata(desk.project().join(name)).unwrap().permissions().mode() & 0o777
        })
    };
    for tier in ["A", "B"] {
        assert_eq!(modes("022", tier), [0o755, 0o644, 0o644], "{tier}");
        assert_eq!(modes("027", tier), [0o750, 0o640, 0o640], "{tier}");
        assert_eq!(modes("002", tier), [0o775, 0o664, 0o664], "{tier}");
    }
}
