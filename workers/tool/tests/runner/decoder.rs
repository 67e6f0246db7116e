//! An image whose decoder was taken over: in its cage it reads no secret and reaches no network, and the
//! record says so. The take-over needs a build with `--cfg agentd_hooks`; others have no test here.

#[cfg(not(agentd_hooks))]
pub const TESTS: &[crate::Test] = &[];

#[cfg(agentd_hooks)]
pub const TESTS: &[crate::Test] =
    &[("a_decoder_that_was_taken_over_finds_no_way_out", taken_over::finds_no_way_out)];

#[cfg(agentd_hooks)]
mod taken_over {
    use crate::supervisor::{Project, Runner, run};
    use protocol::confinement::Profile;
    use protocol::tool::ToTool;
    use sandbox::CallScope;
    use serde_json::json;
    use std::net::TcpListener;
    use tools::{Cancel, Engine, ToolRunRequest};

    pub fn finds_no_way_out() {
        let project = Project::new();
        let key = project.base.join("home/.ssh/id_ed25519");
        std::fs::create_dir_all(key.parent().unwrap()).unwrap();
        std::fs::write(&key, "a private key").unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let address = server.local_addr().unwrap();
        let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
        let orders = format!("agentd_hook: taken over\n{}\n{address}", key.display());
        image.extend(orders.bytes());
        std::fs::write(project.path("shot.png"), image).unwrap();
        let mut confinement = project.confinement(Profile::Query);
        confinement.home = Some(project.base.join("home").into());
        let input = json!({"path": "shot.png"}).to_string();

        let mut runner = Runner::start();
        let enforced = runner.enforced(&confinement);
        assert_eq!(enforced.profile, "query");
        assert!(enforced.network.starts_with("off") && enforced.seccomp, "{enforced:?}");
        runner.say(&ToTool::Go(run("read", &input)));
        let text = runner.done().result.text;
        assert!(text.contains("secret: Err(\"Permission denied"), "{text}");
        assert!(text.contains("network: Err(\"Address family not supported"), "{text}");
        assert!(server.accept().is_err(), "no connection came");

        // The same decoder in this process, which no cage confines.
        let order = ToolRunRequest {
            tool: "read",
            input: &input,
            judged: &[],
            max_result_chars: 30_000,
            profile: Profile::Query,
            denied: tools::DeniedReads::NONE,
        };
        let (scope, cancel) = (CallScope::from(&confinement), Cancel::new().unwrap());
        let text = tools::run(&order, &scope, &cancel, Engine::Without).result.text;
        assert!(text.contains("secret: Ok(\"a private key\"); network: Ok(())"), "{text}");
        assert!(server.accept().is_ok(), "a connection came");
    }
}
