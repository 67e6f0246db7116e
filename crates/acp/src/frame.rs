//! Lines of JSON-RPC 2.0. <https://www.jsonrpc.org/specification>

use serde_json::{Map, Value, json};

/// What an editor sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// It waits for an answer to this id.
    Request {
        /// A number, a text or null.
        id: Value,
        /// Its name.
        method: String,
        /// Its parameters; null where they are absent.
        params: Value,
    },
    /// It waits for none.
    Notification {
        /// Its name.
        method: String,
        /// As above.
        params: Value,
    },
    /// The answer to a request of ours.
    Reply {
        /// The id of that request.
        id: Value,
        /// The result, or the error.
        result: Result<Value, Value>,
    },
}

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    code: i32,
    message: String,
}

impl RpcError {
    /// A line is no JSON.
    #[must_use]
    pub fn parse(message: impl Into<String>) -> Self {
        Self { code: -32700, message: message.into() }
    }

    /// It is JSON, and no message.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: -32600, message: message.into() }
    }

    /// There is no such method.
    #[must_use]
    pub fn no_method(method: &str) -> Self {
        Self { code: -32601, message: format!("agentd has no method {method:?}") }
    }

    /// A parameter is missing or wrong.
    #[must_use]
    pub fn params(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }

    /// It failed.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: -32603, message: message.into() }
    }

    /// A key is missing. <https://agentclientprotocol.com/protocol/v1/schema#errorcode>
    #[must_use]
    pub fn no_key(message: impl Into<String>) -> Self {
        Self { code: -32000, message: message.into() }
    }

    /// There is no such session.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { code: -32002, message: message.into() }
    }

    /// For people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Incoming {
    /// Reads a line.
    ///
    /// # Errors
    /// The id that the error answers, null if it is unknown, and the error.
    pub fn read(line: &str) -> Result<Self, (Value, RpcError)> {
        let value: Value = serde_json::from_str(line).map_err(|error| {
            (Value::Null, RpcError::parse(format!("a line is no JSON: {error}")))
        })?;
        let Value::Object(mut fields) = value else {
            let text = "a line must be one JSON object; batches are not part of the protocol";
            return Err((Value::Null, RpcError::invalid(text)));
        };
        let id = fields.remove("id");
        let known = id.clone().unwrap_or_default();
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err((known, RpcError::invalid("\"jsonrpc\" must be \"2.0\"")));
        }
        if !matches!(known, Value::Null | Value::Number(_) | Value::String(_)) {
            return Err((Value::Null, RpcError::invalid("\"id\" must be a number or a text")));
        }
        match fields.remove("method") {
            Some(Value::String(method)) => {
                let params = fields.remove("params").unwrap_or_default();
                Ok(match id {
                    Some(id) => Self::Request { id, method, params },
                    None => Self::Notification { method, params },
                })
            }
            Some(_) => Err((known, RpcError::invalid("\"method\" must be a text"))),
            None => Self::reply(id, fields).ok_or_else(|| {
                let text = "a line needs \"method\", or \"id\" with \"result\" or \"error\"";
                (known, RpcError::invalid(text))
            }),
        }
    }

    fn reply(id: Option<Value>, mut fields: Map<String, Value>) -> Option<Self> {
        let result = match (fields.remove("error"), fields.remove("result")) {
            (Some(error), _) if !error.is_null() => Err(error),
            (_, Some(result)) => Ok(result),
            (_, None) => return None,
        };
        Some(Self::Reply { id: id?, result })
    }
}

/// The answer to a request.
#[must_use]
pub fn result_line(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The same where it failed.
#[must_use]
pub fn error_line(id: &Value, error: &RpcError) -> Value {
    let RpcError { code, message } = error;
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// A request of ours.
#[must_use]
pub fn request_line(id: &str, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A message that is not answered.
#[must_use]
pub fn notification_line(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_are_read_as_what_they_are() {
        let read = |line| Incoming::read(line).unwrap();
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}"#),
            Incoming::Request { id: "a".into(), method: "m".into(), params: json!({"x": 1}) }
        );
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","method":"m"}"#),
            Incoming::Notification { method: "m".into(), params: Value::Null }
        );
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":4,"result":null}"#),
            Incoming::Reply { id: 4.into(), result: Ok(Value::Null) }
        );
        let refused = Incoming::Reply { id: 4.into(), result: Err(json!({"code": 1})) };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":4,"error":{"code":1}}"#), refused);
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":4,"result":1,"error":{"code":1}}"#), refused);
    }

    #[test]
    fn a_bad_line_is_answered_where_its_id_is_known() {
        for (line, id, code) in [
            ("{", Value::Null, -32700),
            ("[]", Value::Null, -32600),
            ("7", Value::Null, -32600),
            (r#"{"id":3,"method":"m"}"#, 3.into(), -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":3,"method":7}"#, 3.into(), -32600),
            (r#"{"jsonrpc":"2.0","id":3}"#, 3.into(), -32600),
            (r#"{"jsonrpc":"2.0","result":3}"#, Value::Null, -32600),
        ] {
            let (known, error) = Incoming::read(line).unwrap_err();
            assert_eq!((known, error.code), (id, code), "{line}");
        }
    }
}
