//! How a person's other program gets the terminal while a screen is attached.

/// A use of the terminal by another program; its text, or one sentence for the user.
pub type TerminalUse<'a> = &'a mut dyn FnMut() -> Result<String, String>;
