//! The output of `echo` and `printf`, and escapes such as `\x72`.

/// Decodes the escapes of a text. The second value is true if `\c` ended the output.
pub(super) fn escaped(text: &str) -> (String, bool) {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = letters.next() else {
            out.push('\\');
            break;
        };
        let (base, most, begun) = match kind {
            'x' => (16, 2, 0),
            'u' => (16, 4, 0),
            'U' => (16, 8, 0),
            '0'..='7' => (8, if kind == '0' { 3 } else { 2 }, kind.to_digit(8).unwrap_or_default()),
            'n' => {
                out.push('\n');
                continue;
            }
            't' => {
                out.push('\t');
                continue;
            }
            'r' => {
                out.push('\r');
                continue;
            }
            'a' | 'b' | 'e' | 'E' | 'f' | 'v' => {
                out.push('\u{7}');
                continue;
            }
            'c' => return (out, true),
            other => {
                if !matches!(other, '\\' | '\'' | '"' | '?') {
                    out.push('\\');
                }
                out.push(other);
                continue;
            }
        };
        let mut code = begun;
        for _ in 0..most {
            let Some(digit) = letters.peek().and_then(|c| c.to_digit(base)) else { break };
            letters.next();
            code = code.wrapping_mul(base).wrapping_add(digit);
        }
        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    (out, false)
}

/// The output of `echo`.
pub(super) fn echo(arguments: &[String]) -> String {
    let option = |word: &&String| {
        word.len() > 1
            && word.starts_with('-')
            && word[1..].bytes().all(|byte| b"neE".contains(&byte))
    };
    let options: String = arguments.iter().take_while(option).map(|word| &word[1..]).collect();
    let words = &arguments[arguments.iter().take_while(option).count()..];
    let text = words.join(" ");
    let reads = options.rfind(['e', 'E']).is_some_and(|at| options.as_bytes()[at] == b'e');
    let (text, ended) = if reads { escaped(&text) } else { (text, false) };
    if options.contains('n') || ended { text } else { text + "\n" }
}

/// The output of `printf`; the format is repeated until no argument is left.
pub(super) fn printf(arguments: &[String]) -> String {
    let arguments = match arguments {
        [first, rest @ ..] if first == "--" => rest,
        all => all,
    };
    let Some((format, mut rest)) = arguments.split_first() else { return String::new() };
    let mut out = String::new();
    loop {
        let before = rest.len();
        out.push_str(&once(format, &mut rest));
        if out.len() > super::TEXT_CAP {
            return super::TOO_MANY.into();
        }
        if rest.is_empty() || rest.len() == before {
            return out;
        }
    }
}

fn once(format: &str, rest: &mut &[String]) -> String {
    let mut out = String::new();
    let mut pieces = format.split('%');
    out.push_str(&escaped(pieces.next().unwrap_or_default()).0);
    let mut literal = false;
    for piece in pieces {
        if literal {
            literal = false;
            out.push_str(&escaped(piece).0);
            continue;
        }
        let end = piece.find(|c: char| c.is_ascii_alphabetic());
        let Some(end) = end.filter(|_| !piece.is_empty()) else {
            // `%%`
            out.push('%');
            literal = piece.is_empty();
            if !piece.is_empty() {
                out.push_str(piece);
            }
            continue;
        };
        let mut take = || match rest.split_first() {
            Some((first, more)) => {
                *rest = more;
                first.as_str()
            }
            None => "",
        };
        // `%-5.2s`: only the precision matters for a name, since it cuts letters off.
        let size = &piece[..end];
        let mut stars = size.split('.').map(|part| part.contains('*').then(&mut take));
        let (_, star) = (stars.next(), stars.next().flatten());
        drop(stars);
        let precision = size.split_once('.').map(|(_, digits)| star.unwrap_or(digits));
        let argument = take();
        let shown = match piece.as_bytes()[end] {
            b'b' => escaped(argument).0,
            b'c' => argument.chars().take(1).collect(),
            _ => argument.to_owned(),
        };
        match precision.map(|digits| digits.parse().unwrap_or(0)) {
            Some(most) if matches!(piece.as_bytes()[end], b's' | b'b') => {
                out.extend(shown.chars().take(most));
            }
            Some(_) | None => out.push_str(&shown),
        }
        out.push_str(&escaped(&piece[end + 1..]).0);
    }
    out
}
