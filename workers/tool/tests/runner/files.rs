//! The file tools in their cages: needed access works, other access is refused.

use crate::supervisor::{Project, Runner, run};
use protocol::call::Outcome;
use protocol::confinement::Profile;
use protocol::tool::{FromTool, JudgedPath, RunnerJob, ToTool};
use serde_json::json;

pub const TESTS: &[crate::Test] = &[
    ("every_file_tool_works_in_its_cage", every_file_tool_works_in_its_cage),
    ("what_leads_out_is_refused", what_leads_out_is_refused),
    ("a_query_cage_does_not_let_a_mutation_run", a_query_cage_does_not_let_a_mutation_run),
    ("a_probe_binds_the_run", a_probe_binds_the_run),
    ("a_call_that_is_none_is_invalid", a_call_that_is_none_is_invalid),
];

fn every_file_tool_works_in_its_cage() {
    let project = Project::new();
    std::fs::create_dir(project.path("src")).unwrap();
    std::fs::write(project.path(".gitignore"), "ignored\n").unwrap();
    std::fs::write(project.path("ignored"), "one\n").unwrap();
    for (tool, input, expected) in [
        (
            "write",
            json!({"path": "src/new/a.txt", "content": "one\ntwo\n"}),
            "created src/new/a.txt: 8 bytes",
        ),
        (
            "write",
            json!({"path": "src/new/a.txt", "content": "one\n2\n"}),
            "overwrote src/new/a.txt: 6 bytes",
        ),
        (
            "edit",
            json!({"path": "src/new/a.txt", "old_string": "2", "new_string": "three"}),
            "edited src/new/a.txt: line 2",
        ),
        (
            "multi_edit",
            json!({"path": "src/new/a.txt", "edits": [
                {"find": "one", "replace": "1"}, {"start_line": 2, "end_line": 2, "replace": "3"},
            ]}),
            "edited src/new/a.txt: 2 places",
        ),
        ("write", json!({"path": "gone/x", "content": "x"}), "created gone/x: 1 bytes"),
        ("delete", json!({"paths": ["gone"], "recursive": true}), "deleted gone\n"),
        ("read", json!({"path": "src/new/a.txt"}), "1\t1\n2\t3\n"),
        ("ls", json!({"path": "src/new"}), "f 4 a.txt\n"),
        ("glob", json!({"pattern": "*.txt"}), "src/new/a.txt"),
        ("grep", json!({"pattern": "1"}), "src/new/a.txt:1:1\n"),
    ] {
        let report = project.run(tool, input);
        assert_eq!(report.result.outcome, Outcome::Done, "{tool}: {}", report.result.text);
        assert!(report.result.text.starts_with(expected), "{tool}: {}", report.result.text);
        assert!(report.usage.peak_kib > 0, "{tool}");
    }
}

fn what_leads_out_is_refused() {
    let project = Project::new();
    std::os::unix::fs::symlink("../secret", project.path("link")).unwrap();
    for path in ["../secret", "link", "/etc/passwd", "../proj-evil/x"] {
        for (tool, input) in
            [("read", json!({"path": path})), ("write", json!({"path": path, "content": "x"}))]
        {
            let result = project.run(tool, input).result;
            assert_eq!(result.code.as_deref(), Some("access_denied"), "{tool} {path}");
            assert!(result.text.contains("ACCESS DENIED"), "{}", result.text);
        }
    }
    assert_eq!(std::fs::read_to_string(project.base.join("secret")).unwrap(), "the secret\n");
}

fn a_query_cage_does_not_let_a_mutation_run() {
    let project = Project::new();
    for (profile, tool, input) in [
        (Profile::Query, "write", r#"{"path":"a","content":"x"}"#),
        (Profile::Query, "bash", r#"{"command":"touch a"}"#),
        (Profile::Mutate, "bash", r#"{"command":"touch a"}"#),
        (Profile::Command, "write", r#"{"path":"a","content":"x"}"#),
    ] {
        let mut runner = Runner::caged(&project.confinement(profile));
        runner.say(&ToTool::Go(run(tool, input)));
        let result = runner.done().result;
        assert!(matches!(result.outcome, Outcome::Confined { .. }), "{tool}: {}", result.text);
        assert!(!project.path("a").exists());
    }
    let mut runner = Runner::caged(&project.confinement(Profile::Command));
    runner.say(&ToTool::Go(RunnerJob::Probe { tool: "read".to_owned(), input: "{}".to_owned() }));
    assert!(matches!(runner.hear(), Some(FromTool::Probed(Err(_)))));
}

fn a_probe_binds_the_run() {
    let project = Project::new();
    std::fs::write(project.path("a"), "old\n").unwrap();
    let input = json!({"path": "a", "old_string": "old", "new_string": "new"});
    let probe = project.probe("edit", input.clone());
    assert!(probe.paths[0].in_scope && probe.paths[0].digest.is_some());
    assert!(probe.diff.contains("-old\n+new\n"), "{}", probe.diff);
    std::fs::write(project.path("a"), "old and changed\n").unwrap();
    let RunnerJob::Run { tool, input, env, timeout_ms, max_result_chars, .. } =
        run("edit", &input.to_string())
    else {
        unreachable!("made as a run")
    };
    let judged = probe
        .paths
        .into_iter()
        .map(|path| JudgedPath { real: path.real, digest: path.digest })
        .collect();
    let mut runner = Runner::caged(&project.confinement(Profile::Mutate));
    runner.say(&ToTool::Go(RunnerJob::Run {
        tool,
        input,
        judged,
        env,
        timeout_ms,
        max_result_chars,
        denied_reads: protocol::judgement::RuleSet::empty(),
    }));
    assert_eq!(runner.done().result.code.as_deref(), Some("stale"));
    assert_eq!(std::fs::read_to_string(project.path("a")).unwrap(), "old and changed\n");
}

fn a_call_that_is_none_is_invalid() {
    let project = Project::new();
    for (tool, input, code) in [
        ("reed", "{}", "unknown_tool"),
        ("read", "{", "invalid_arguments"),
        ("read", r#"{"path":1}"#, "invalid_arguments"),
    ] {
        let mut runner = Runner::caged(&project.confinement(Profile::Query));
        runner.say(&ToTool::Go(run(tool, input)));
        let result = runner.done().result;
        assert_eq!((result.outcome, result.code.as_deref()), (Outcome::Invalid, Some(code)));
    }
}
