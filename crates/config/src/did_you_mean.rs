//! The known name that a mistyped one is nearest to.

/// Longest word that is compared: a file may have any.
const CAP: usize = 100;

/// The nearest of `known`, if it is near enough to be meant: a third of the letters may differ.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.chars().take(CAP).collect();
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&word, name), name))
        .filter(|(far, _)| *far <= allowed)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["permissions.mode", "permissions.allow", "net.mode"];
        assert_eq!(nearest("permisions.mode", known), Some("permissions.mode"));
        assert_eq!(nearest("permissions.alow", known), Some("permissions.allow"));
        assert_eq!(nearest("net.mdoe", known), Some("net.mode"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
