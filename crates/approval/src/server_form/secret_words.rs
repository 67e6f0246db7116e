//! Names of secrets in languages beside English, as data. A form in one of these is no rarer than one in
//! English, and no list has all: each form says that its server sees the answers.

use super::fold::fold;
use std::sync::LazyLock;

/// How a row is compared with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowKind {
    /// With whole words.
    Whole,
    /// With the beginnings of words, for languages that inflect their endings. Several are words in a row,
    /// between which articles and prepositions may stand.
    Stem,
    /// With any part of the text without its blanks, for compounds and for scripts without blanks.
    Within,
}
use RowKind::{Stem, Whole, Within};

/// Language (ISO 639-1), comparison, names.
const ROWS: [(&str, RowKind, &str); 31] = [
    ("en", Whole, "pw pswd creds"),
    ("en", Within, "passkey|onetimecode|onetimepasscode"),
    (
        "en",
        Stem,
        "mnemonic phrase|seed word|secret phrase|wallet seed|login code|sms code|auth code|\
         authentication code|authenticator code|access code|id rsa|id ed25519|id ecdsa|id dsa",
    ),
    (
        "de",
        Within,
        "passwort|passwörter|kennwort|kennwörter|losungswort|geheimzahl|geheimnummer|zugangsdaten|anmeldedaten|\
                    zugangsschlüssel|zugriffsschlüssel|apischlüssel|kreditkartennummer|kartennummer|sicherheitscode|\
                    bestätigungscode|einmalcode|zugangscode|wiederherstellungsphrase|wiederherstellungsschlüssel",
    ),
    ("de", Stem, "geheimnis|privat schlüssel|geheim schlüssel|api schlüssel|ssh schlüssel"),
    ("es", Within, "contraseña|contrasenia"),
    ("es", Whole, "clave claves"),
    (
        "es",
        Stem,
        "credencial|código verificación|código seguridad|número tarjeta|frase semilla|frase recuperación|\
                  llave privada|llave api|palabra secreta",
    ),
    ("fr", Whole, "mdp jeton jetons"),
    (
        "fr",
        Stem,
        "mot passe|mots passe|motdepasse|phrase secrète|phrase récupération|clé privé|clé api|clé secrète|clé accès|\
                  clef privé|code secret|code vérification|numéro carte",
    ),
    (
        "it",
        Stem,
        "parola ordine|chiave privat|chiave api|chiave segret|chiave access|codice verifica|codice sicurezza|\
                  codice segreto|numero carta|credenzial|frase recupero|frase seme",
    ),
    ("pt", Whole, "senha senhas"),
    (
        "pt",
        Stem,
        "palavra passe|chave privada|chave api|chave secreta|chave acesso|código verificação|código segurança|\
                  número cartão|credencia|frase recuperação",
    ),
    (
        "nl",
        Within,
        "wachtwoord|toegangscode|pincode|inloggegevens|apisleutel|privésleutel|kaartnummer",
    ),
    ("nl", Stem, "privé sleutel|api sleutel|geheime sleutel|geheim woord"),
    (
        "pl",
        Stem,
        "hasł|klucz prywatn|klucz api|klucz dostęp|kod weryfikacyjn|numer karty|poświadcze",
    ),
    ("cs", Stem, "hesl|soukrom klíč|api klíč|tajn klíč|čísl kart"),
    ("ro", Whole, "parola parole parolă"),
    ("ro", Stem, "chei privat|chei api|cheie privat|cheie api|numărul cardului"),
    (
        "ru",
        Stem,
        "парол|секретн|приватн ключ|закрыт ключ|ключ api|api ключ|ключ доступ|код подтвержд|номер карт|учетн данн|\
                  сид фраз|кодов фраз|кодов слов",
    ),
    ("ru", Whole, "секрет секрета пин пинкод токен токена токены токеном токенов"),
    (
        "uk",
        Stem,
        "приватн ключ|секретн ключ|закрит ключ|облікові дані|номер картки|код підтвердження",
    ),
    ("tr", Stem, "şifre|parolan|api anahtar|özel anahtar|gizli anahtar|kart numaras|doğrulama kod"),
    (
        "sv",
        Within,
        "lösenord|adgangskode|passord|kodeord|apinyckel|apinøkkel|apinøgle|privatnyckel|engångskod",
    ),
    (
        "sv",
        Stem,
        "privat nyckel|privat nøkkel|privat nøgle|hemlig nyckel|hemmelig nøkkel|hemmelig nøgle",
    ),
    ("fi", Within, "salasana|tunnusluku|yksityinenavain|apiavain"),
    ("hu", Stem, "jelszó|jelszav|privát kulcs|api kulcs|titkos kulcs"),
    ("el", Stem, "κωδικ πρόσβασης|συνθηματικ|ιδιωτικ κλειδ|μυστικ κλειδ"),
    (
        "zh",
        Within,
        "密码|密碼|口令|私钥|私鑰|密钥|密鑰|秘钥|令牌|验证码|驗證碼|助记词|助記詞|凭据|憑證|卡号|卡號|安全码|动态码",
    ),
    (
        "ja",
        Within,
        "パスワード|暗証番号|秘密鍵|合言葉|トークン|apiキー|認証コード|確認コード|カード番号|シードフレーズ|パスフレーズ|\
                    비밀번호|패스워드|개인키|비밀키|인증번호|토큰|카드번호|시드문구|암호를",
    ),
    (
        "ar",
        Within,
        "كلمةالمرور|كلمهالمرور|كلمةالسر|الرقمالسري|مفتاحapi|المفتاحالخاص|مفتاحخاص|סיסמה|סיסמא|סיסמת|गुप्तकुंजी|\
                    पासवर्ड|گذرواژه|رمزعبور|mậtkhẩu|khóaapi|katasandi|kuncirahasia|kunciapi|รหัสผ่าน",
    ),
];
/// Phrases with a word above that name no secret: keywords, and an Italian word for "word".
const HARMLESS: [&str; 6] = [
    "palabra clave",
    "palabras clave",
    "palabras claves",
    "parola chiave",
    "parole chiave",
    "una parola",
];
/// Articles and prepositions that stand within names.
const FILLERS: [&str; 18] = [
    "de", "del", "della", "di", "da", "do", "des", "du", "d", "la", "el", "le", "l", "of", "the",
    "a", "der", "для",
];

/// A folded row.
struct SecretName {
    kind: RowKind,
    words: Vec<String>,
}

static NAMES: LazyLock<Vec<SecretName>> = LazyLock::new(|| {
    let mut names = Vec::new();
    for (_, kind, text) in ROWS {
        let separator = if kind == Whole { ' ' } else { '|' };
        for name in text.split(separator) {
            names.push(SecretName { kind, words: name.split(' ').map(fold).collect() });
        }
    }
    names
});

/// True if these folded words name a secret.
pub(super) fn names_secret(words: &[String]) -> bool {
    let harmless = HARMLESS.map(|phrase| phrase.split(' ').map(fold).collect::<Vec<_>>());
    let mut words = words.to_vec();
    for phrase in harmless {
        while let Some(at) = words.windows(phrase.len()).position(|part| part == phrase) {
            words.drain(at..at + phrase.len());
        }
    }
    let text = words.concat();
    let fillers = FILLERS.map(fold);
    words.retain(|word| !fillers.contains(word));
    NAMES.iter().any(|name| match name.kind {
        Whole => name.words.iter().any(|name| words.contains(name)),
        Within => name.words.iter().any(|name| text.contains(name.as_str())),
        Stem => words.windows(name.words.len()).any(|part| {
            part.iter().zip(&name.words).all(|(word, stem)| word.starts_with(stem.as_str()))
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_form::fold::readings;

    fn names(text: &str) -> bool {
        readings(text).iter().any(|words| names_secret(words))
    }

    #[test]
    fn secrets_are_known_in_each_language() {
        for text in [
            "Datenbankpasswort",
            "Ihr Kennwort",
            "Privater Schlüssel",
            "API-Schlüssel",
            "la contraseña",
            "Clave de acceso",
            "Número de tarjeta",
            "código de verificación",
            "Mot de passe",
            "Clé d'API",
            "clé privée",
            "Phrase secrète",
            "Chiave privata",
            "parola d'ordine",
            "senha",
            "Chave de API",
            "palavra-passe",
            "wachtwoord",
            "privésleutel",
            "Twoje hasło",
            "hasła",
            "heslo",
            "Parola",
            "пароль",
            "Введите пароля",
            "приватный ключ",
            "секретный ключ",
            "Ключ API",
            "şifreniz",
            "Parolanız",
            "lösenord",
            "adgangskode",
            "passord",
            "salasana",
            "jelszó",
            "κωδικός πρόσβασης",
            "密码",
            "请输入您的私钥",
            "パスワード",
            "秘密鍵",
            "ﾊﾟｽﾜｰﾄﾞ",
            "비밀번호",
            "كلمة المرور",
            "סיסמה",
            "पासवर्ड",
            "mật khẩu",
            "kata sandi",
            "รหัสผ่าน",
            "pw",
            "id_ed25519",
            "one-time code",
        ] {
            assert!(names(text), "{text}");
        }
    }

    #[test]
    fn words_like_these_are_no_secrets() {
        for text in [
            "palabras clave",
            "una parola",
            "parola chiave",
            "keyboard",
            "Tokenizer",
            "pinned",
            "secretary",
            "секретарь",
            "токенизатор",
            "Schlüsselwort",
            "mot-clé",
            "kluczowe słowo",
            "关键词",
            "キーボード",
            "암호화 방식",
            "enclave",
            "Passau",
            "passenger",
            "compass",
            "clavicle",
            "Project",
            "Name",
            "Kunde",
            "nombre",
            "имя",
            "名前",
            "ime",
            "navn",
            "opwarming",
        ] {
            assert!(!names(text), "{text}");
        }
    }
}
