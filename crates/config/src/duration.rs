//! Durations as written in a configuration: `500ms`, `60s`, `5m`, `24h`.

/// Parses a time into milliseconds; `None` if the text is not a time.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// The shortest way to write a time in milliseconds, such as `90s` or `24h`.
#[must_use]
pub fn written(ms: u64) -> String {
    for (factor, unit) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if ms >= factor && ms.is_multiple_of(factor) {
            return format!("{}{unit}", ms / factor);
        }
    }
    format!("{ms}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, ms) in [("500ms", 500), ("60s", 60_000), ("5m", 300_000), ("24h", 86_400_000)] {
            assert_eq!(milliseconds(text), Some(ms));
        }
        for bad in [
            "",
            "5",
            "s",
            "-5s",
            "5 s",
            "1.5s",
            "5d",
            "99999999999999999999s",
            "9999999999999999999h",
        ] {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
        assert_eq!(written(60_000), "1m");
        assert_eq!(written(1_500), "1500ms");
        assert_eq!(written(90_000), "90s");
    }
}
