//! `agentd mcp install`: packages that are fetched once, by real npm and pip, and servers that start from them
//! without a network.
#![allow(clippy::unwrap_used)]

use super::mcp::{AUTO, asks};
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, needs, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A desk, and packages that are not from the network.
struct Packages {
    desk: Desk,
    dir: PathBuf,
    registry: Child,
    port: String,
}

impl Drop for Packages {
    fn drop(&mut self) {
        let _ = self.registry.kill();
        let _ = self.registry.wait();
    }
}

impl Packages {
    fn new(lines: &str) -> Self {
        needs("python3");
        needs("npm");
        let desk = Desk::new();
        let dir = desk.outside().join("packages");
        std::fs::create_dir(&dir).unwrap();
        for (name, text) in [
            ("server.py", include_str!("../data/mcp_server.py")),
            ("packages.py", include_str!("../data/packages.py")),
        ] {
            std::fs::write(dir.join(name), text).unwrap();
        }
        let mut registry = Command::new("python3")
            .arg(dir.join("packages.py"))
            .args([&dir, &dir.join("server.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(registry.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let made = Self { desk, dir, registry, port: port.trim().to_owned() };
        std::fs::create_dir_all(made.file().parent().unwrap()).unwrap();
        std::fs::write(made.file(), lines).unwrap();
        made
    }

    fn file(&self) -> PathBuf {
        self.desk.home().join(".config/agentd/config.toml")
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    fn store(&self) -> PathBuf {
        self.desk.home().join(".local/share/agentd/mcp")
    }

    /// The packages that stand, without the file of the lock.
    fn stored(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.store()).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != ".lock").collect();
        names.sort();
        names
    }

    fn mcp(&self, words: &[&str]) -> Run {
        let mut command = self.desk.agentd(&[&["mcp"], words].concat());
        command
            .env("NPM_CONFIG_REGISTRY", format!("http://127.0.0.1:{}/", self.port))
            .env("PIP_NO_INDEX", "1")
            .env("PIP_FIND_LINKS", self.dir.join("wheels/index.html"));
        run(command)
    }

    fn is_ready(&self, name: &str) -> Run {
        let ran = self.mcp(&["check", name]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("writes nothing; network: off"), "{}", ran.out);
        ran
    }
}

fn done(ran: &Run) {
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

#[test]
fn a_package_of_npm_takes_the_place_of_npx_and_its_server_needs_no_network() {
    let packages = Packages::new(
        "# mine\n[mcp.test]\ncommand = \"npx\" # fetches\nargs = [\"-y\", \"tiny-server\", \"habit\"]\n\
         env = { OWN = \"kept\" }\n\n[net]\nmode = \"off\"\n",
    );
    let before = packages.config();
    let shown = packages.mcp(&["install", "test"]);
    assert_eq!((shown.code, packages.stored()), (1, Vec::new()), "{}{}", shown.out, shown.err);
    for words in [
        "npm:tiny-server@1.0.0 and 1 package that",
        "do not run; tiny-dep would",
        "package-lock.json",
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    assert!(shown.err.contains("nothing is installed; --yes installs it"), "{}", shown.err);
    assert_eq!(packages.config(), before);

    done(&packages.mcp(&["install", "test", "--yes"]));
    let first = packages.stored();
    assert_eq!(first.len(), 1, "{first:?}");
    let config = packages.config();
    for words in
        ["# mine\n", "# fetches", "\"habit\"]", "OWN = \"kept\"", "from = \"npm\"", "[net]"]
    {
        assert!(config.contains(words), "{words}: {config}");
    }
    assert!(!config.contains("npx") && !config.contains("args"), "{config}");
    assert!(!packages.dir.join("ran").exists(), "no install script runs");
    packages.is_ready("test");
    let shown: Value = serde_json::from_str(&packages.mcp(&["show", "test"]).out).unwrap();
    assert_eq!(shown["package"], "npm:tiny-server@1.0.0");

    // One that cannot be fetched leaves the old one, and the file as it is.
    for version in ["9.9.9", "3.0.0"] {
        let spec = format!("npm:tiny-server@{version}");
        let ran = packages.mcp(&["install", "test", "--package", &spec, "--yes"]);
        assert_eq!(ran.code, 1, "{version}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains("npm failed"), "{}", ran.err);
        assert!(version != "3.0.0" || ran.err.contains("EINTEGRITY"), "{}", ran.err);
        assert_eq!((packages.stored(), packages.config()), (first.clone(), config.clone()));
    }
    done(&packages.mcp(&["install", "test", "--package", "npm:tiny-server@2.0.0", "--yes"]));
    let second = packages.stored();
    assert!(second.len() == 1 && second != first, "{second:?}");
    assert!(packages.config().contains("\"habit\"]"), "its arguments stay: {}", packages.config());
    packages.is_ready("test");

    let ran = packages.mcp(&["rm", "test"]);
    done(&ran);
    assert!(ran.out.contains("removed its package"), "{}", ran.out);
    assert_eq!(packages.stored(), Vec::<String>::new());
}

#[test]
fn a_package_of_pypi_starts_only_with_its_lock_and_is_mended_by_a_second_installation() {
    let packages = Packages::new("");
    let spec = "pypi:tiny-server==1.0";
    done(&packages.mcp(&["install", "test", "--package", spec, "--yes", "--", "modern"]));
    packages.is_ready("test");
    let dir = packages.store().join(&packages.stored()[0]);
    let lock = dir.join("requirements.lock");
    let text = std::fs::read_to_string(&lock).unwrap();
    assert!(text.starts_with("tiny-server==1.0 --hash=sha256:"), "{text}");

    std::fs::write(&lock, format!("{text}# changed\n")).unwrap();
    let ran = packages.mcp(&["check", "test"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("is not the recorded lock; `agentd mcp install test`"), "{}", ran.out);
    done(&packages.mcp(&["install", "test", "--yes"]));
    assert!(packages.config().contains("\"modern\"]"), "{}", packages.config());
    packages.is_ready("test");

    std::fs::remove_dir_all(&dir).unwrap();
    let ran = packages.mcp(&["check", "test"]);
    assert!(ran.code == 1 && ran.out.contains("not installed here"), "{}", ran.out);
    done(&packages.mcp(&["install", "test", "--package", "pypi:tiny-server", "--yes"]));
    assert!(packages.config().contains("version = \"2.0\""), "{}", packages.config());
    packages.is_ready("test");
}

#[test]
fn a_package_is_read_by_its_server_alone_and_written_by_no_call() {
    let packages = Packages::new("[mcp.other]\ncommand = [\"python3\", \"server.py\"]\n");
    packages.desk.write("server.py", include_str!("../data/mcp_server.py"));
    done(&packages.mcp(&["install", "test", "--package", "pypi:tiny-server==1.0", "--yes"]));
    let dir = packages.store().join(&packages.stored()[0]);
    let file = dir.join("site/tiny_server/__init__.py");
    let path = file.display().to_string();
    let input = json!({"path": path});
    let model = Server::scripted([
        Answer::says([asks("toolu_1", "read", input.clone())]),
        Answer::says([asks("toolu_2", "write", input.clone())]),
        Answer::says([call("toolu_3", "mcp__other__read", &input.to_string())]),
        Answer::says([call(
            "toolu_4",
            "bash",
            &json!({"command": format!("cat {path}; echo x > {path}; ls {}", dir.display())})
                .to_string(),
        )]),
        Answer::text("Done."),
    ]);
    let ran = run(packages.desk.with_server(&model, &AUTO));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let results = super::mcp::results(&model);
    assert!(results[0].contains("import tiny_server.server"), "the control: {results:?}");
    assert!(results[1].contains("Error"), "{results:?}");
    assert!(results[2].contains("Error"), "{results:?}");
    assert!(!results[3].contains("import tiny_server"), "{results:?}");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("def main"), "as it was");

    // Where calls could write it, it does not start.
    let home = packages.desk.home().display().to_string();
    let ran = packages.mcp(&["check", "test", "-C", &home]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("calls of this session may write in"), "{}", ran.out);
}

#[test]
fn what_is_no_package_of_a_registry_is_refused_with_a_way_on() {
    let packages = Packages::new(
        "[mcp.own]\ncommand = [\"node\", \"server.js\"]\n[mcp.far]\nurl = \"https://x.example/mcp\"\n",
    );
    let before = packages.config();
    for (words, why) in [
        (&["own"][..], "--package npm:PACKAGE"),
        (&["far"], "has a `url`"),
        (&["new"], "has no server new"),
        (&["new", "--package", "tiny-server"], "is not npm:PACKAGE"),
        (&["new", "--package", "npm:../x"], "is not npm:PACKAGE"),
        (&["../new", "--package", "npm:tiny-server"], "cannot have the name"),
        (&["new", "--package", "npm:tiny-dep"], "it has no program"),
        (&["new", "--package", "pypi:nobody-has-it"], "python3 failed"),
    ] {
        let ran = packages.mcp(&[&["install", "--yes"], words].concat());
        assert!(ran.code != 0 && ran.err.contains(why), "{words:?}: {}{}", ran.out, ran.err);
        assert_eq!((packages.stored(), packages.config()), (Vec::new(), before.clone()));
    }
}

#[test]
#[ignore = "installs packages"]
fn real_servers_are_installed_and_answer_without_a_network() {
    needs("npm");
    let desk = Desk::new();
    for (name, spec, tool, input, found) in [
        (
            "everything",
            "npm:@modelcontextprotocol/server-everything",
            "echo",
            json!({"message": "hello there"}),
            "hello there",
        ),
        ("time", "pypi:mcp-server-time", "get_current_time", json!({"timezone": "UTC"}), "UTC"),
    ] {
        let mut command = desk.agentd(&["mcp", "install", name, "--package", spec, "--yes"]);
        // The registries are those of the person who runs the test.
        for (name, value) in std::env::vars_os() {
            let text = name.to_string_lossy().to_ascii_uppercase();
            if ["PIP_", "NPM_CONFIG_", "SSL_"].iter().any(|begin| text.starts_with(begin)) {
                command.env(name, value);
            }
        }
        if let Some(npmrc) = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".npmrc"))
            && npmrc.exists()
        {
            command.env("NPM_CONFIG_USERCONFIG", npmrc);
        }
        done(&run(command));
        let ran = run(desk.agentd(&["mcp", "check", name]));
        done(&ran);
        assert!(ran.out.contains("network: off"), "{}", ran.out);
        let tool = format!("mcp__{name}__{tool}");
        let model = Server::scripted([
            Answer::says([call("toolu_1", &tool, &input.to_string())]),
            Answer::text("Done."),
        ]);
        let ran = run(desk.with_server(&model, &AUTO));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let results = super::mcp::results(&model);
        println!("{spec}: {results:?}");
        assert!(results[0].contains(found), "{results:?}");
    }
}
