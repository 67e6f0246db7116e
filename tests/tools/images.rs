//! Images from a file to the model: decoded in a caged process, kept by the journal, sent in each
//! vendor's form.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::vendor::{VENDORS, Vendor};
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use image::{ImageFormat, RgbImage};
use serde_json::{Value, json};
use std::io::Cursor;
use std::path::PathBuf;

/// A picture whose bytes do not shrink to nothing.
fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let picture = RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x % 256) as u8, (y % 256) as u8, (x * y % 256) as u8])
    });
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn write(desk: &Desk, name: &str, bytes: &[u8]) -> PathBuf {
    let path = desk.project().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The person says that the test's model sees.
fn with_vision(desk: &Desk) {
    let dir = desk.home().join(".config/agentd");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.toml"), "[models.test-model]\nvision = true\n").unwrap();
}

/// Every image of a request, whatever the vendor's form.
pub(crate) fn images(body: &Value) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    collect(body, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::Object(fields) => {
            let inline = fields.contains_key("media_type") || fields.contains_key("mimeType");
            let data = fields.get("data").filter(|_| inline).and_then(Value::as_str);
            let url = fields.get("url").or(fields.get("image_url")).and_then(Value::as_str);
            let url = url.and_then(|url| url.split_once(";base64,")).map(|(_, data)| data);
            found.extend(data.or(url).map(|data| BASE64_STANDARD.decode(data).unwrap()));
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(crate) fn size(bytes: &[u8]) -> (u32, u32) {
    let image = image::load_from_memory(bytes).unwrap();
    (image.width(), image.height())
}

fn reads(vendor: Vendor, path: &str) -> [Answer; 2] {
    let input = json!({ "path": path }).to_string();
    [vendor.says([call("call_1", "read", &input)]), vendor.text("Seen.")]
}

/// The journals of all sessions, as they are on disk.
fn journals(desk: &Desk) -> String {
    let sessions = std::fs::read_dir(desk.state().join("sessions")).unwrap();
    let text = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path().join("journal.jsonl")).unwrap()
    };
    sessions.map(text).collect()
}

#[test]
fn every_vendor_gets_the_image_that_a_call_read() {
    for vendor in VENDORS {
        let desk = Desk::new();
        with_vision(&desk);
        write(&desk, "shot.png", &picture(1200, 800, ImageFormat::Png));
        let server = Server::of(vendor, reads(vendor, "shot.png"));
        let flags = ["--model", "test-model", "-p", "Look."];
        let ran = run(desk.with_vendor(vendor, &server, &flags));
        assert_eq!(ran.code, 0, "{vendor:?}: {}", ran.err);
        let shown = images(&server.requests()[1].body);
        assert_eq!(shown.len(), 1, "{vendor:?}");
        assert_eq!(size(&shown[0]), (1200, 800));
        assert!(server.requests()[1].raw.contains("[image shot.png 1200x800]"), "{vendor:?}");
        // The journal's lines hold the reference alone.
        let journal = journals(&desk);
        assert!(journal.contains(r#""$image":""#), "{journal}");
        assert!(!journal.contains(&BASE64_STANDARD.encode(&shown[0])[..200]));
    }
}

#[test]
fn a_large_image_is_shrunk_and_each_format_is_read() {
    let desk = Desk::new();
    let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];
    for (format, number) in formats.into_iter().zip(1..) {
        let name = format!("{number}.{}", format.extensions_str()[0]);
        write(&desk, &name, &picture(1800, 90, format));
        let server = Server::scripted(reads(Vendor::Anthropic, &name));
        let ran = run(desk.with_server(&server, &["-p", "Look."]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let shown = images(&server.requests()[1].body);
        assert_eq!(shown.iter().map(|it| size(it)).collect::<Vec<_>>(), [(1568, 78)], "{name}");
        let text = format!("[image {name} 1800x90, shrunk to 1568x78]");
        assert!(server.requests()[1].raw.contains(&text), "{name}");
    }
}

#[test]
fn a_model_that_does_not_see_gets_a_sentence_and_the_person_a_notice() {
    for (config, why) in [
        ("", "agentd does not know whether the model test-model sees images"),
        ("[models.test-model]\nvision = false\n", "the model test-model does not see images"),
    ] {
        let desk = Desk::new();
        with_vision(&desk);
        std::fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
        write(&desk, "shot.png", &picture(12, 8, ImageFormat::Png));
        let server = Server::of(Vendor::Chat, reads(Vendor::Chat, "shot.png"));
        let flags = ["--model", "test-model", "-p", "Look."];
        let ran = run(desk.with_vendor(Vendor::Chat, &server, &flags));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let request = &server.requests()[1];
        assert_eq!(images(&request.body), Vec::<Vec<u8>>::new());
        assert!(request.raw.contains(&format!("[shot.png 12x8 is not shown: {why}")), "{why}");
        assert!(
            ran.err.contains(&format!("the image is not shown to the model: {why}")),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_resumed_and_a_forked_session_send_the_same_bytes() {
    let desk = Desk::new();
    let path = write(&desk, "shot.png", &picture(300, 200, ImageFormat::Png));
    let first = Server::scripted(reads(Vendor::Anthropic, "shot.png"));
    let ran = run(desk.with_server(&first, &["-p", "Look."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let before = first.requests()[1].body["messages"].clone();
    // The journal has its own copy.
    std::fs::remove_file(path).unwrap();
    for flags in [&["-c"][..], &["-c", "--fork"]] {
        let again = Server::scripted([Answer::text("Still.")]);
        let ran = run(desk.with_server(&again, &[flags, &["-p", "And now?"]].concat()));
        assert_eq!(ran.code, 0, "{flags:?}: {}", ran.err);
        let now = &again.requests()[0].body["messages"];
        let bare = |message: &Value| {
            message.to_string().replace(r#""cache_control":{"type":"ephemeral"},"#, "")
        };
        for at in 0..3 {
            assert_eq!(bare(&now[at]), bare(&before[at]), "{flags:?}: message {at}");
        }
        assert_eq!(images(now).len(), 1);
    }
}

#[test]
fn a_prompt_shows_the_image_that_it_names() {
    let desk = Desk::new();
    let whole = write(&desk, "my shot.png", &picture(120, 80, ImageFormat::Png));
    write(&desk, "b.jpg", &picture(60, 40, ImageFormat::Jpeg));
    let pasted = whole.to_str().unwrap().replace(' ', "\\ ");
    let server = Server::scripted([Answer::text("Seen.")]);
    let prompt = format!("compare @b.jpg with {pasted}");
    let ran = run(desk.with_server(&server, &["-p", &prompt]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = &server.requests()[0].body;
    assert_eq!(images(body).iter().map(|it| size(it)).collect::<Vec<_>>(), [(60, 40), (120, 80)]);
    let content = body["messages"][0]["content"].as_array().unwrap();
    let kinds: Vec<&str> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert!(kinds.ends_with(&["text", "text", "image", "text", "image"]), "{kinds:?}");
    assert_eq!(content[kinds.len() - 5]["text"], prompt.as_str());
    assert_eq!(content[kinds.len() - 4]["text"], "[image b.jpg 60x40]");
    // A caged call decoded it, as the audit log says.
    let ended = desk.ended(1);
    let (tool, enforced) = (&ended["tool"], &ended["enforced"]);
    assert_eq!((tool, &enforced["profile"]), (&json!("read"), &json!("query")), "{ended}");
    assert!(enforced["network"].as_str().unwrap().starts_with("off"), "{ended}");
}

#[test]
fn a_prompt_with_a_wrong_name_is_given_back_and_a_false_image_is_named() {
    let desk = Desk::new();
    desk.write("text.png", "only words");
    let server = Server::scripted([Answer::text("No.")]);
    let ran = run(desk.with_server(&server, &["-p", "see @missing.png"]));
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("@missing.png cannot be shown"), "{}", ran.err);
    assert_eq!(server.requests().len(), 0);
    let ran = run(desk.with_server(&server, &["-p", "see @text.png"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("text.png is not shown to the model: it is not an image"),
        "{}",
        ran.err
    );
    let request = &server.requests()[0];
    assert!(request.raw.contains("[text.png could not be shown: it is not an image]"));
    assert!(!request.raw.contains("only words"));
}

/// A chunk of a PNG.
fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let content = [kind, data].concat();
    let crc = content.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }
        })
    });
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&length[..], &content, &(!crc).to_be_bytes()].concat()
}

/// The beginning of a PNG that claims this size.
fn png_of(side: u32) -> Vec<u8> {
    let (side, colours) = (side.to_be_bytes(), [8, 2, 0, 0, 0]);
    let header = chunk(b"IHDR", &[&side[..], &side, &colours].concat());
    [b"\x89PNG\r\n\x1a\n".to_vec(), header, chunk(b"IDAT", &[0x78, 0x9c]), chunk(b"IEND", &[])]
        .concat()
}

#[test]
fn a_hostile_image_is_refused_within_bounds_and_the_session_goes_on() {
    let desk = Desk::new();
    let jpeg = picture(400, 300, ImageFormat::Jpeg);
    write(&desk, "bomb.png", &png_of(30_000));
    write(&desk, "empty.png", &png_of(300));
    write(&desk, "cut.jpg", &jpeg[..300]);
    write(&desk, "half.jpg", &jpeg[..jpeg.len() / 2]);
    // A GIF's size is two numbers of two bytes.
    let side = 30_000_u16.to_le_bytes();
    write(
        &desk,
        "bomb.gif",
        &[
            &b"GIF89a"[..],
            &side,
            &side,
            &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, b',', 0, 0, 0, 0],
            &side,
            &side,
            &[0, 2, 1, 0, 0, b';'],
        ]
        .concat(),
    );
    write(
        &desk,
        "riff.webp",
        b"RIFF\xff\xff\xff\xffWEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff",
    );
    // The bytes count, not the name.
    write(&desk, "other.png", &jpeg);
    let cases = [
        ("bomb.png", "Error [too_large] read: \"bomb.png\" is an image of 30000x30000 pixels"),
        ("empty.png", "Error [bad_image] read: \"empty.png\" begins as a PNG image"),
        ("cut.jpg", "Error [bad_image] read: \"cut.jpg\" is a JPEG image that is cut short"),
        ("half.jpg", "Error [bad_image] read: \"half.jpg\" is a JPEG image that is cut short"),
        ("bomb.gif", "Error [too_large] read: \"bomb.gif\" is an image of 30000x30000 pixels"),
        ("riff.webp", "Error ["),
        ("other.png", "[image other.png 400x300]"),
    ];
    let answers = cases.iter().zip(1..).map(|((path, _), number)| {
        let input = json!({ "path": path }).to_string();
        Answer::says([call(&format!("call_{number}"), "read", &input)])
    });
    let server = Server::scripted(answers.chain([Answer::text("Done.")]));
    let ran = run(desk.with_server(&server, &["-p", "Look."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    for ((path, expected), at) in cases.iter().zip(1..) {
        let messages = requests[at].body["messages"].as_array().unwrap();
        let content = &messages.last().unwrap()["content"][0]["content"];
        let text = content.as_str().or(content[0]["text"].as_str()).unwrap();
        assert!(text.starts_with(expected), "{path}: {text}");
        let ended = desk.ended(at as u64);
        let peak = ended["usage"]["peak_kib"].as_u64().unwrap();
        assert!(peak < 200 * 1024, "{path}: {peak} KiB");
    }
    assert_eq!(images(&requests[7].body).len(), 1);
}
