//! An S3 server of a test's own: moto, from PyPI. It checks keys, signatures and buckets.

use crate::postgres::free_port;
use crate::support::{needs, until};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

const VERSION: &str = "5.2.1";
/// The requests that make the bucket and a user with two keys; all later ones need a key.
const WITHOUT_KEY: &str = "5";

/// A running server with the bucket `bucket`. It ends with the test.
pub struct S3 {
    server: Child,
    port: u16,
    /// The test's own key and the workers', each with its secret.
    keys: [[String; 2]; 2],
}

impl S3 {
    pub fn start() -> Self {
        let program = install().join("bin/moto_server");
        let port = free_port();
        let mut command = Command::new(program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command.env("INITIAL_NO_AUTH_ACTION_COUNT", WITHOUT_KEY);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().unwrap();
        let none = || ["none", "none"].map(str::to_owned);
        let mut s3 = Self { server, port, keys: [none(), none()] };
        until("the S3 server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        for (key, line) in s3.request("begin").iter().enumerate() {
            let (id, secret) = line.split_once(' ').unwrap();
            s3.keys[key] = [id, secret].map(str::to_owned);
        }
        s3
    }

    /// The variables of a worker that uses this bucket.
    pub fn variables(&self, bucket: &str) -> Vec<(&'static str, String)> {
        let [id, secret] = self.keys[1].clone();
        let mut variables = at(self.port, bucket);
        variables.extend([("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", secret)]);
        variables
    }

    /// The objects of the bucket.
    pub fn objects(&self) -> Vec<String> {
        self.request("objects")
    }

    /// Uploads that were begun and not ended.
    pub fn uploads(&self) -> Vec<String> {
        self.request("uploads")
    }

    /// Removes the bucket with all that is in it.
    pub fn remove_bucket(&self) {
        self.request("remove-bucket");
    }

    /// Makes the workers' key invalid.
    pub fn remove_key(&self) {
        self.request(&format!("remove-key {}", self.keys[1][0]));
    }

    fn request(&self, request: &str) -> Vec<String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/s3.py");
        let [id, secret] = &self.keys[0];
        let done = Command::new(install().join("bin/python"))
            .arg(script)
            .args([&self.port.to_string(), id, secret, request])
            .output()
            .unwrap();
        assert!(done.status.success(), "{request}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect()
    }

    /// Ends it.
    pub fn stop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The variables of a worker whose bucket is at this port, with a key that no server knows.
pub fn at(port: u16, bucket: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AGENTD_FLEET_OBJECTS", format!("s3://{bucket}/a/fleet")),
        ("AWS_ENDPOINT", format!("http://127.0.0.1:{port}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", "unknown".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "wrong".to_owned()),
    ]
}

/// The server's environment, made once for all tests.
fn install() -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("moto-{VERSION}"));
    let made = place.join("made");
    if made.exists() {
        return place;
    }
    needs("python3");
    let _ = fs::remove_dir_all(&place);
    let run = |command: &mut Command| {
        let done = command.stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&place));
    let package = format!("moto[server]=={VERSION}");
    run(Command::new(place.join("bin/pip")).args(["install", "--quiet", &package]));
    fs::write(made, "").unwrap();
    place
}
