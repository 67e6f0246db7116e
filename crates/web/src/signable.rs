//! Decides which requests of a command get the key of their host: those that only read. Pure,
//! except that it remembers the git repositories that answered.

use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING};
use hyper::{Method, StatusCode, Uri};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The only POST that reads: it names the objects that git fetches.
const UPLOAD_PACK: &str = "/git-upload-pack";
const UPLOAD_PACK_REQUEST: &str = "application/x-git-upload-pack-request";
/// The request that git sends before, and its answer.
const INFO_REFS: &str = "/info/refs";
const INFO_REFS_QUERY: &str = "service=git-upload-pack";
const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
/// Limit of remembered repositories, far above the number that one command fetches.
const MAX_REPOSITORIES: usize = 1000;

/// Beginnings of headers by which some servers treat a request as one for another method, path or
/// host, each with a source. `_` counts as `-`: both become the same variable of CGI and WSGI.
const REROUTERS: [(&str, &str); 14] = [
    ("x-http-method", "OData 3.0; -override: Google APIs, Rack::MethodOverride, Symfony"),
    ("x-method", "-override: IBM; npm method-override"),
    ("x-original-", "-url: IIS URL Rewrite, Symfony (CVE-2018-14773); -method: ingress-nginx"),
    ("x-rewrite-", "-url: ISAPI_Rewrite, Zend and Symfony (CVE-2018-14773)"),
    ("x-override-", "-url: PortSwigger, Practical Web Cache Poisoning"),
    ("x-forwarded-", "-prefix, -host: Spring ForwardedHeaderFilter; -method, -uri: Traefik"),
    ("forwarded", "RFC 7239"),
    ("x-envoy-", "-original-path: Envoy, router filter"),
    ("x-waws-", "-unencoded-url: Azure App Service"),
    ("x-host", "PortSwigger, HTTP Host header attacks"),
    ("x-http-host", "-override: PortSwigger, HTTP Host header attacks"),
    ("x-accel-", "-mapping: Rack::Sendfile (CVE-2025-61780)"),
    ("x-sendfile-", "-type: Rack::Sendfile (CVE-2025-61780)"),
    ("script-name", "gunicorn, setting forwarder_headers"),
];
/// Parameters of a query that name another method. WordPress takes `_method` of a GET too.
const METHOD_PARAMETERS: [&str; 4] =
    ["_method", "x-http-method-override", "x-http-method", "$httpmethod"];

/// Whether the key is added to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignedIn {
    Yes,
    No,
}

/// Whether a request has a body, also an empty one without a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestBody {
    None,
    Some,
}

/// The parts of a request that decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestHead<'a> {
    pub(crate) method: &'a Method,
    pub(crate) target: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: RequestBody,
}

impl RequestHead<'_> {
    /// Why a request to a host with a key is not forwarded at all: servers read it in different
    /// ways. For the request as the command sent it.
    pub(crate) fn ambiguity(self) -> Option<&'static str> {
        let has = |name| self.headers.contains_key(name);
        let reads = matches!(*self.method, Method::GET | Method::HEAD);
        if self.target.authority().is_some() {
            Some("request whose target is not a path")
        } else if has(CONTENT_LENGTH) && has(TRANSFER_ENCODING) {
            Some("request with two lengths, content-length and transfer-encoding")
        } else if reads && self.body == RequestBody::Some {
            Some("GET or HEAD with a body, which its server may take for the next request")
        } else {
            None
        }
    }

    /// Decides for a request as it is forwarded, given the repositories that answered.
    pub(crate) fn signed(self, repositories: &Repositories) -> SignedIn {
        let signed = match *self.method {
            Method::GET | Method::HEAD => !names_method(self.target.query().unwrap_or_default()),
            Method::POST => self.is_upload_pack(repositories),
            _ => false,
        };
        if signed { SignedIn::Yes } else { SignedIn::No }
    }

    fn is_upload_pack(self, repositories: &Repositories) -> bool {
        let mut kinds = self.headers.get_all(CONTENT_TYPE).iter();
        let kind = (kinds.next().map(|kind| kind.as_bytes()), kinds.next());
        let path = self.target.path();
        kind == (Some(UPLOAD_PACK_REQUEST.as_bytes()), None)
            && self.target.query().is_none()
            && path.strip_suffix(UPLOAD_PACK).is_some_and(|at| repositories.have(at))
    }

    /// The repository that this request asks for its refs, by the path of its URL.
    pub(crate) fn repository(self) -> Option<String> {
        let at = self.target.path().strip_suffix(INFO_REFS)?;
        let is_it = *self.method == Method::GET
            && self.target.query() == Some(INFO_REFS_QUERY)
            && is_plain(at);
        is_it.then(|| at.to_owned())
    }
}

/// Repositories of one host whose refs were read through this proxy.
#[derive(Debug, Default)]
pub(crate) struct Repositories(Mutex<HashSet<String>>);

impl Repositories {
    /// Remembers a repository if the answer is git's.
    pub(crate) fn note(&self, at: String, status: StatusCode, answer: &HeaderMap) {
        let kind = answer.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
        if status != StatusCode::OK || kind != Some(ADVERTISEMENT.as_bytes()) {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_REPOSITORIES {
            known.insert(at);
        }
    }

    fn have(&self, at: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(at)
    }
}

/// Removes the headers that lead a signed request elsewhere.
pub(crate) fn strip_rerouters(headers: &mut HeaderMap) {
    let leads_elsewhere = |name: &str| {
        let name = name.replace('_', "-");
        REROUTERS.iter().any(|(beginning, _)| name.starts_with(beginning))
    };
    let found: Vec<_> =
        headers.keys().filter(|name| leads_elsewhere(name.as_str())).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

fn names_method(query: &str) -> bool {
    // Servers separate parameters by either character.
    query.split(['&', ';']).any(|part| {
        url::form_urlencoded::parse(part.as_bytes()).any(|(name, _)| {
            let name = as_php_names(&name);
            METHOD_PARAMETERS.iter().any(|known| name.eq_ignore_ascii_case(known))
        })
    })
}

/// A parameter's name as PHP has it: up to a NUL, without blanks in front, and with `_` for blanks and
/// dots (php.net, "Variables From External Sources").
fn as_php_names(name: &str) -> String {
    let name = name.split('\0').next().unwrap_or_default().trim();
    name.replace(['.', ' ', '['], "_")
}

/// True for a path that every server reads in the same way: no empty or dotted segment, no
/// parameters, and no encoded separator.
fn is_plain(path: &str) -> bool {
    let is_plain_segment = |segment: &str| {
        let mut encoded = segment.split('%').skip(1).map(|after| {
            let code = after.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
            code.filter(|byte| !byte.is_ascii_control() && !b"/\\.;?#%".contains(byte))
        });
        !matches!(segment, "" | "." | "..")
            && !segment.contains([';', '\\'])
            && encoded.all(|byte| byte.is_some())
    };
    path.is_empty() || path.strip_prefix('/').is_some_and(|at| at.split('/').all(is_plain_segment))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hyper::Request;

    const GIT: (&str, &str) = ("content-type", UPLOAD_PACK_REQUEST);

    fn advertised(at: &[&str]) -> Repositories {
        let known = Repositories::default();
        let answer = Request::builder().header("content-type", ADVERTISEMENT).body(()).unwrap();
        for at in at {
            known.note((*at).to_owned(), StatusCode::OK, answer.headers());
        }
        known
    }

    fn judged(
        (method, target): (&str, &str),
        headers: &[(&str, &str)],
        body: RequestBody,
    ) -> Result<SignedIn, &'static str> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let (method, target, headers) = (&parts.method, &parts.uri, &parts.headers);
        let head = RequestHead { method, target, headers, body };
        match head.ambiguity() {
            Some(why) => Err(why),
            None => Ok(head.signed(&advertised(&["/ann/repo.git", ""]))),
        }
    }

    #[test]
    fn a_request_without_a_body_is_signed_in_if_it_reads() {
        for (method, target, signed) in [
            ("GET", "/left-pad", SignedIn::Yes),
            ("GET", "/a?b=method&method=1", SignedIn::Yes),
            ("HEAD", "/left-pad", SignedIn::Yes),
            ("GET", "/a?_method=delete", SignedIn::No),
            ("GET", "/a?b=1&%5Fmethod=delete", SignedIn::No),
            ("GET", "/a?b=1;_METHOD=delete", SignedIn::No),
            ("GET", "/a?X-HTTP-Method-Override=PUT", SignedIn::No),
            ("PUT", "/left-pad", SignedIn::No),
            ("DELETE", "/left-pad", SignedIn::No),
            ("OPTIONS", "*", SignedIn::No),
            ("get", "/", SignedIn::No),
            ("PROPFIND", "/", SignedIn::No),
        ] {
            let found = judged((method, target), &[], RequestBody::None);
            assert_eq!(found, Ok(signed), "{method} {target}");
        }
    }

    #[test]
    fn a_post_is_signed_in_only_for_git_at_a_repository_that_answered() {
        for (target, headers, signed) in [
            ("/ann/repo.git/git-upload-pack", &[GIT][..], SignedIn::Yes),
            ("/git-upload-pack", &[GIT], SignedIn::Yes),
            ("/ann/repo.git/git-upload-pack?", &[GIT], SignedIn::No),
            ("/ann/repo.git/git-upload-pack?_method=put", &[GIT], SignedIn::No),
            ("/ann/other.git/git-upload-pack", &[GIT], SignedIn::No),
            ("/ann/repo.git//git-upload-pack", &[GIT], SignedIn::No),
            ("/ann/x/../repo.git/git-upload-pack", &[GIT], SignedIn::No),
            ("/ann/repo%2egit/git-upload-pack", &[GIT], SignedIn::No),
            ("/ann/repo.git/git-receive-pack", &[GIT], SignedIn::No),
            ("/ann/repo.git/git-upload-pack", &[], SignedIn::No),
            ("/ann/repo.git/git-upload-pack", &[GIT, GIT], SignedIn::No),
            (
                "/ann/repo.git/git-upload-pack",
                &[("content-type", "application/x-www-form-urlencoded")],
                SignedIn::No,
            ),
        ] {
            let found = judged(("POST", target), headers, RequestBody::Some);
            assert_eq!(found, Ok(signed), "{target} {headers:?}");
        }
        let put = judged(("PUT", "/ann/repo.git/git-upload-pack"), &[GIT], RequestBody::Some);
        assert_eq!(put, Ok(SignedIn::No));
    }

    #[test]
    fn a_request_that_servers_read_in_different_ways_is_not_forwarded() {
        let two = &[("content-length", "1"), ("transfer-encoding", "chunked")];
        for (request, headers, body, why) in [
            (("GET", "/a"), &[][..], RequestBody::Some, "body"),
            (("HEAD", "/a"), &[], RequestBody::Some, "body"),
            (("POST", "/a"), two, RequestBody::Some, "two lengths"),
            (("GET", "http://other.example/a"), &[], RequestBody::None, "not a path"),
        ] {
            let refused = judged(request, headers, body).unwrap_err();
            assert!(refused.contains(why), "{request:?}: {refused}");
        }
        assert_eq!(judged(("POST", "/a"), &two[..1], RequestBody::Some), Ok(SignedIn::No));
    }

    #[test]
    fn a_repository_is_known_by_git_s_own_answer_at_a_plain_path() {
        let asked = |method: &str, target: &str| {
            let request = Request::builder().method(method).uri(target).body(()).unwrap();
            let (method, target, headers) = (request.method(), request.uri(), request.headers());
            RequestHead { method, target, headers, body: RequestBody::None }.repository()
        };
        let refs = "/info/refs?service=git-upload-pack";
        for at in ["/ann/repo.git", "", "/My%20Project/_git/repo"] {
            assert_eq!(asked("GET", &format!("{at}{refs}")).unwrap(), at);
        }
        for at in
            ["/a/../b", "/a//b", "/a%2fb", "/a/%2e%2e/b", "/a;b=1", "/a%5cb", "/a%00", "/a%252f"]
        {
            assert_eq!(asked("GET", &format!("{at}{refs}")), None, "{at}");
        }
        for (method, target) in [
            ("HEAD", "/r/info/refs?service=git-upload-pack"),
            ("GET", "/r/info/refs?service=git-receive-pack"),
            ("GET", "/r/info/refs?service=git-upload-pack&x=1"),
            ("GET", "/r/info/refs"),
        ] {
            assert_eq!(asked(method, target), None, "{method} {target}");
        }
        for (status, kind) in [(404, ADVERTISEMENT), (302, ADVERTISEMENT), (200, "text/plain")] {
            let known = Repositories::default();
            let answer = Request::builder().header("content-type", kind).body(()).unwrap();
            known.note("/r".to_owned(), StatusCode::from_u16(status).unwrap(), answer.headers());
            assert!(!known.have("/r"), "{status} {kind}");
        }
    }

    #[test]
    fn headers_that_lead_a_request_elsewhere_are_removed_and_others_stay() {
        let mut headers = HeaderMap::new();
        for name in [
            "x-http-method-override",
            "x_http_method_override",
            "x-original-url",
            "x-rewrite-url",
            "x-forwarded-prefix",
            "forwarded",
            "git-protocol",
            "accept",
            "x-request-id",
        ] {
            headers.insert(hyper::header::HeaderName::from_static(name), "1".parse().unwrap());
        }
        strip_rerouters(&mut headers);
        let mut left: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "git-protocol", "x-request-id"]);
        assert!(REROUTERS.iter().all(|(_, source)| !source.is_empty()));
    }
}
