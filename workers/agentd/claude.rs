//! The executable `agentd-claude`, under which the Claude Agent SDKs find agentd: it becomes `agentd sdk`.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let error = match own {
        Ok(own) => {
            let agentd = own.with_file_name("agentd");
            let failed = Command::new(&agentd).arg("sdk").args(std::env::args_os().skip(1)).exec();
            format!("cannot start {}: {failed}", agentd.display())
        }
        Err(error) => {
            format!("the directory of agentd's executables is unknown: {error}; mount /proc")
        }
    };
    eprintln!("agentd-claude: {error}");
    ExitCode::FAILURE
}
