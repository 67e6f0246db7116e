//! The variables that lead programs to the proxy of an allow-list, one row each with whom it is for. The
//! proxy opens tunnels, so a program sees the server's own certificate. For `command`.

use std::ffi::OsString;
use std::net::SocketAddr;

/// The value of a variable.
#[derive(Debug, Clone, Copy)]
enum ProxyValue {
    Address,
    /// Hosts that are reached without it: the command's own servers.
    Near,
    Text(&'static str),
    /// A switch of Java's for each of host and port. Java spares loopback by itself.
    OfJava,
}

const PROXY_VARIABLES: [(&str, ProxyValue); 22] = [
    // curl, git, wget, pip, uv, Go, Ruby and most others, each of which knows one spelling or some.
    ("http_proxy", ProxyValue::Address),
    ("https_proxy", ProxyValue::Address),
    ("all_proxy", ProxyValue::Address),
    ("HTTP_PROXY", ProxyValue::Address),
    ("HTTPS_PROXY", ProxyValue::Address),
    ("ALL_PROXY", ProxyValue::Address),
    ("no_proxy", ProxyValue::Near),
    ("NO_PROXY", ProxyValue::Near),
    // Node's own client and `fetch`, from 22.21 and 24.5 on.
    ("NODE_USE_ENV_PROXY", ProxyValue::Text("1")),
    // Packages of Node's that download for themselves.
    ("ELECTRON_GET_USE_PROXY", ProxyValue::Text("1")),
    ("GLOBAL_AGENT_HTTP_PROXY", ProxyValue::Address),
    ("GLOBAL_AGENT_NO_PROXY", ProxyValue::Near),
    ("YARN_HTTP_PROXY", ProxyValue::Address),
    ("YARN_HTTPS_PROXY", ProxyValue::Address),
    // Each JVM reports this variable on stderr. There is no quieter way to reach the JVMs that
    // Maven, Gradle and test runners start.
    ("JAVA_TOOL_OPTIONS", ProxyValue::OfJava),
    // These outdo a proxy in the person's settings, which the empty network cannot reach.
    ("npm_config_proxy", ProxyValue::Address),
    ("npm_config_https_proxy", ProxyValue::Address),
    ("PIP_PROXY", ProxyValue::Address),
    ("CARGO_HTTP_PROXY", ProxyValue::Address),
    ("GIT_CONFIG_COUNT", ProxyValue::Text("1")),
    ("GIT_CONFIG_KEY_0", ProxyValue::Text("http.proxy")),
    ("GIT_CONFIG_VALUE_0", ProxyValue::Address),
];

/// All proxy variables.
pub(crate) fn variables(at: SocketAddr) -> Vec<(OsString, OsString)> {
    let value = |says| match says {
        ProxyValue::Address => format!("http://{at}"),
        ProxyValue::Near => "localhost,127.0.0.1,::1".to_owned(),
        ProxyValue::Text(text) => text.to_owned(),
        ProxyValue::OfJava => {
            let (host, port) = (at.ip(), at.port());
            let switch = |of| format!("-D{of}.proxyHost={host} -D{of}.proxyPort={port}");
            format!("{} {}", switch("http"), switch("https"))
        }
    };
    PROXY_VARIABLES.map(|(name, says)| (name.into(), value(says).into())).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_variable_stands_once_and_names_the_proxy() {
        let given = variables("127.0.0.1:4000".parse().unwrap());
        for (at, (name, _)) in given.iter().enumerate() {
            assert_eq!(given.iter().position(|(other, _)| other == name), Some(at), "{name:?}");
        }
        for (name, wanted) in [
            ("HTTPS_PROXY", "http://127.0.0.1:4000"),
            ("no_proxy", "localhost,127.0.0.1,::1"),
            (
                "JAVA_TOOL_OPTIONS",
                "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=4000 \
                 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=4000",
            ),
            ("GIT_CONFIG_VALUE_0", "http://127.0.0.1:4000"),
        ] {
            assert!(given.contains(&(name.into(), wanted.into())), "{name}: {given:?}");
        }
    }
}
