//! Runs jobs: plain, or as the calls of one session of a tier.

use super::job::{Job, Outcome, Place};
use super::person;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, run_within};
use nix::sys::signal::{Signal, killpg};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The outcomes of these jobs, in their order. A job that must be alone gets its own desk; the
/// others get folders of one project.
pub fn run(jobs: &[Job], place: Place, limit: Duration) -> Vec<Outcome> {
    let shared: Vec<&Job> = jobs.iter().filter(|job| !job.alone).collect();
    let mut of_shared = Bench { place, limit }.at_a_desk(&shared).into_iter();
    let one = |job: &Job| {
        let of_job = if job.alone {
            Bench { place, limit }.at_a_desk(&[job]).pop()
        } else {
            of_shared.next()
        };
        of_job.unwrap()
    };
    jobs.iter().map(one).collect()
}

/// A place, and how long each job may take there.
#[derive(Clone, Copy)]
struct Bench {
    place: Place,
    limit: Duration,
}

impl Bench {
    fn at_a_desk(self, jobs: &[&Job]) -> Vec<Outcome> {
        let desk = Desk::new();
        person::furnish(&desk);
        let _beside: Vec<Beside> = jobs.iter().filter_map(|job| self.start(&desk, job)).collect();
        let prepared: Vec<Outcome> =
            jobs.iter().map(|job| self.plain(&desk, job, &job.prepare)).collect();
        let mut outcomes = match self.place {
            Place::Plain => jobs.iter().map(|job| self.plain(&desk, job, &job.script)).collect(),
            Place::TierA => self.caged(&desk, jobs, "A"),
            Place::TierB => self.caged(&desk, jobs, "B"),
        };
        for ((job, outcome), prepared) in jobs.iter().zip(&mut outcomes).zip(prepared) {
            if prepared.code != Some(0) {
                *outcome = Outcome { code: None, ..prepared };
                continue;
            }
            let asked = (!job.effect.is_empty()).then(|| self.plain(&desk, job, &job.effect));
            outcome.had_effect = asked.is_some_and(|asked| asked.code == Some(0));
        }
        outcomes
    }

    /// A process that runs beside a job, in the job's folder.
    fn start(self, desk: &Desk, job: &Job) -> Option<Beside> {
        job.needs.iter().for_each(|program| needs(program));
        std::fs::create_dir_all(folder(desk, job)).unwrap();
        (!job.beside.is_empty()).then(|| {
            let mut command = shell(desk, job, &["bash", "-c"], &job.beside);
            command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
            Beside(command.spawn().unwrap())
        })
    }

    fn plain(self, desk: &Desk, job: &Job, script: &str) -> Outcome {
        // Both streams in the order of their words.
        let begun = Instant::now();
        let limit = self.limit.as_secs().to_string();
        let start = ["timeout", "-k", "1", &limit, "bash", "-c"];
        let ran = shell(desk, job, &start, &format!("exec 2>&1\n{script}")).output().unwrap();
        Outcome {
            code: ran.status.code().map(i64::from),
            output: String::from_utf8_lossy(&ran.stdout).into_owned(),
            had_effect: false,
            refusals: 0,
            took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap(),
        }
    }

    fn caged(self, desk: &Desk, jobs: &[&Job], tier: &str) -> Vec<Outcome> {
        let mut answers: Vec<Answer> =
            jobs.iter().map(|job| Answer::says([self.asks(desk, job)])).collect();
        answers.push(Answer::text("done"));
        let server = Server::scripted(answers);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.envs(person::environment(desk)).env("AGENTD_SANDBOX_TIER", tier);
        let ran = run_within(command, self.limit * u32::try_from(jobs.len()).unwrap());
        assert_eq!(ran.code, 0, "tier {tier}: {}", ran.err);
        let requests = server.requests();
        let results = results(&requests.last().unwrap().body);
        let audit = desk.audit();
        let ended: Vec<&Value> = audit.iter().filter(|record| record["event"] == "ended").collect();
        assert_eq!((results.len(), ended.len()), (jobs.len(), jobs.len()), "tier {tier}");
        let outcomes = results.into_iter().zip(ended).map(|(output, ended)| {
            assert_eq!(ended["enforced"]["tier"], tier, "{ended:#}");
            Outcome {
                code: ended["outcome"]["code"].as_i64(),
                output,
                had_effect: false,
                refusals: ended["refusals"].as_array().map_or(0, Vec::len),
                took_ms: took_ms(ended),
            }
        });
        outcomes.collect()
    }

    fn asks(self, desk: &Desk, job: &Job) -> crate::support::anthropic::Say {
        let script = filled(desk, &job.script);
        let command =
            if job.alone { script } else { format!("cd {} || exit 99\n{script}", job.name) };
        let limit = u64::try_from(self.limit.as_millis()).unwrap();
        let input = json!({ "command": command, "timeout_ms": limit });
        call(&format!("toolu_{}", job.name), "bash", &input.to_string())
    }
}

/// A process of the person that runs beside a job, and all that it started.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let group = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        // First as it may tidy up.
        let _ = killpg(group, Signal::SIGTERM);
        let tidied = Instant::now() + Duration::from_millis(500);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < tidied {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

fn folder(desk: &Desk, job: &Job) -> PathBuf {
    if job.alone { desk.project() } else { desk.project().join(&job.name) }
}

fn filled(desk: &Desk, script: &str) -> String {
    let outside = desk.outside().display().to_string();
    script.replace("@HOME@", &format!("{outside}/home")).replace("@OUTSIDE@", &outside)
}

/// A script as the person runs it in the job's folder, with a program that is given it.
fn shell(desk: &Desk, job: &Job, start: &[&str], script: &str) -> Command {
    let as_agentd = desk.agentd(&[]);
    let mut command = Command::new(start[0]);
    command.args(&start[1..]).arg(filled(desk, script)).env_clear();
    command.envs(as_agentd.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.envs(person::environment(desk)).current_dir(folder(desk, job)).stdin(Stdio::null());
    command
}

/// From the start of a call's command to its end.
pub fn took_ms(ended: &Value) -> u64 {
    let at = |name: &str| ended[name].as_u64().unwrap();
    at("ended") - ended["started"].as_u64().unwrap_or_else(|| at("ended"))
}

/// The results of all calls in a request, in their order.
fn results(body: &Value) -> Vec<String> {
    let blocks = body["messages"].as_array().unwrap().iter().flat_map(|message| {
        message["content"].as_array().into_iter().flatten().filter(|it| it["type"] == "tool_result")
    });
    let words = |block: &Value| {
        let content = &block["content"];
        content.as_str().or(content[0]["text"].as_str()).unwrap_or_default().to_owned()
    };
    blocks.map(words).collect()
}
