//! How lists show texts and times.

use protocol::hidden::on_screen;

/// Without line ends and hidden characters.
pub(crate) fn one_line(text: &str) -> String {
    on_screen(text).replace(['\n', '\t'], " ")
}

/// Seconds as people write them.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.1} s"),
        60.0..3600.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
