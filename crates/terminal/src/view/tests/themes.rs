//! The themes: contrast of each cell by WCAG 2, and frames that equal a full redraw in each of them.

use super::kept::{SCENES, Scene};
use super::*;
use crate::theme::{
    DALTONISED_DARK, DALTONISED_LIGHT, DARK, LIGHT, Palette, luminance, of_palette,
};

/// The least contrast of text that WCAG 2 calls readable.
const READABLE: f64 = 4.5;

const PALETTES: [(&str, Palette); 4] = [
    ("dark", DARK),
    ("light", LIGHT),
    ("daltonised on dark", DALTONISED_DARK),
    ("daltonised on light", DALTONISED_LIGHT),
];

const DEPTHS: [ColourDepth; 2] = [ColourDepth::True, ColourDepth::Palette];

impl Desk {
    /// Draws all in this theme.
    fn in_look(mut self, look: Theme) -> Self {
        self.view.state.look = look;
        self
    }
}

/// Changed lines, code, a table, links, notes and errors.
fn many_styles(mut desk: Desk) -> Desk {
    desk = SCENES[0].1(desk);
    let code = "# One\n\n> quoted [link](https://a.example) `code`\n\n```rust\n// why\n#[test]\nfn main() \
                { let a: u32 = \"x\".len() + 1; }\n```\n\n```diff\n+one\n-two\n```\n\n```json\n{\"a\": [1, null]}\n```\n";
    desk.event(answer(code));
    desk.event(ClientEvent::Notice { text: "a notice".to_owned() });
    desk.event(ClientEvent::Struck { reason: "the server".to_owned(), next: None });
    let diff = "--- a.rs\n+++ a.rs\n@@ -3,4 +3,4 @@\n // why\n-let a = \"one\"; // 1\n+let a = \"two\"; // 2\n \
                fn f() -> Vec<u8> { loop {} }\n+#[derive(Debug)] struct A<'a>(&'a str);\n";
    desk.event(ClientEvent::Proposed { call: call(8, "edit", r#"{"path":"a.rs"}"#) });
    desk.event(ended(8, diff));
    let ClientEvent::Asked { mut question } = question(9) else { panic!() };
    question.preview = diff.replace("a.rs", "a.zzz");
    desk.event(ClientEvent::Proposed { call: call(9, "edit", r#"{"path":"a.zzz"}"#) });
    desk.event(ClientEvent::Asked { question });
    desk
}

fn searched(desk: Desk) -> Desk {
    let mut desk = many_styles(desk);
    desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
    desk.paint();
    desk.input(ScreenInput::Key(KeyPress::Control('o')));
    desk.types("/total");
    desk.input(ScreenInput::Key(KeyPress::Enter));
    desk
}

fn selected(desk: Desk) -> Desk {
    let mut desk = many_styles(desk);
    desk.input(ScreenInput::Key(KeyPress::Control('o')));
    desk.types("ovjj/let");
    desk.input(ScreenInput::Key(KeyPress::Enter));
    desk
}

fn with_panels(desk: Desk) -> Desk {
    let mut desk = many_styles(desk);
    let reason = "the conversation has failed".to_owned();
    desk.event(ClientEvent::Degraded { reason });
    desk
}

fn lost(desk: Desk) -> Desk {
    let mut desk = many_styles(desk);
    desk.input(ScreenInput::Lost("gone".to_owned()));
    desk
}

fn scenes() -> impl Iterator<Item = Scene> {
    let own: [Scene; 5] = [
        ("styles", many_styles),
        ("search", searched),
        ("selection", selected),
        ("panels", with_panels),
        ("lost", lost),
    ];
    SCENES.into_iter().chain(own)
}

/// The first cell of the terminal that is not readable on this ground.
fn unreadable(desk: &Desk, ground: (u8, u8, u8)) -> Option<String> {
    let screen = desk.terminal.screen();
    let (rows, columns) = (screen.size().0.get(), screen.size().1.get());
    let mut places = (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y)));
    places.find_map(|(x, y)| {
        let cell = cell(screen, (x, y));
        let name = |why: &str| Some(format!("row {y}, column {x}, {:?}: {why}", cell.symbol()));
        if cell.symbol().trim().is_empty() || (cell.fg, cell.bg) == (Color::Reset, Color::Reset) {
            return (cell.modifier.contains(Modifier::DIM)).then(|| "dim text".to_owned());
        }
        let rgb = |colour| {
            if let Color::Indexed(number @ 16..) = colour {
                return Some(of_palette(number));
            }
            let Color::Rgb(red, green, blue) = colour else { return None };
            Some((red, green, blue))
        };
        let back = if cell.bg == Color::Reset { Some(ground) } else { rgb(cell.bg) };
        let (Some(front), Some(back)) = (rgb(cell.fg), back) else {
            return name(&format!("{:?} on {:?} is the terminal's own", cell.fg, cell.bg));
        };
        if cell.modifier.intersects(Modifier::DIM | Modifier::REVERSED) {
            return name("a terminal may change its colours");
        }
        let values = [luminance(front) + 0.05, luminance(back) + 0.05];
        let contrast = values[0].max(values[1]) / values[0].min(values[1]);
        (contrast < READABLE)
            .then(|| name(&format!("{front:?} on {back:?} has {contrast:.2} : 1")))
            .flatten()
    })
}

fn check(palette: &Palette, depth: ColourDepth) -> Result<usize, String> {
    let mut drawn = 0;
    for (name, scene) in scenes() {
        for (columns, rows) in [(40, 10), (80, 24), (200, 60)] {
            let desk = Desk::new(columns, rows).in_look(Theme::from_palette(palette, depth));
            let mut desk = scene(desk);
            desk.paint();
            if let Some(cell) = unreadable(&desk, palette.ground) {
                return Err(format!("{name} in {columns} columns, {depth:?}: {cell}"));
            }
            drawn += 1;
        }
    }
    Ok(drawn)
}

#[test]
fn each_cell_of_each_theme_is_readable() {
    for (name, palette) in &PALETTES {
        for depth in DEPTHS {
            let drawn = check(palette, depth).unwrap_or_else(|cell| panic!("{name}: {cell}"));
            assert_eq!(drawn, scenes().count() * 3);
        }
    }
}

#[test]
fn a_theme_with_one_pale_colour_is_found_out() {
    let pale = Palette { bad: (0x80, 0x50, 0x50), ..DARK };
    let found = check(&pale, ColourDepth::True).unwrap_err();
    assert!(found.contains("(128, 80, 80)") && found.contains(": 1"), "{found}");
    // The terminal's own colours promise nothing.
    let mut desk = many_styles(Desk::new(80, 24));
    desk.paint();
    assert!(unreadable(&desk, DARK.ground).is_some());
}

#[test]
fn a_changed_row_has_a_ground_over_its_width_and_the_colours_of_its_language() {
    let mut desk = Desk::new(80, 40).in_look(Theme::from_palette(&DARK, ColourDepth::True));
    desk = SCENES[0].1(desk);
    let shown = desk.shown();
    let of_row = |words: &str| -> Vec<Cell> {
        let y = shown.lines().position(|row| row.contains(words)).unwrap();
        let y = u16::try_from(y).unwrap();
        (2..80).map(|x| cell(desk.terminal.screen(), (x, y))).collect()
    };
    let (removed, added) = (of_row("-     return"), of_row("+     return"));
    for row in [&removed, &added] {
        assert!(row.iter().all(|cell| cell.bg == row[0].bg && cell.bg != Color::Reset), "{shown}");
        let mut colours: Vec<_> = row.iter().map(|cell| format!("{:?}", cell.fg)).collect();
        colours.sort();
        colours.dedup();
        assert!(colours.len() > 3, "sign, text and language: {colours:?}");
    }
    assert_ne!(removed[0].bg, added[0].bg);
    let marked = |row: &[Cell]| row.iter().any(|cell| cell.modifier == Modifier::UNDERLINED);
    assert!(marked(&removed), "{shown}");
    assert!(of_row("def total").iter().all(|cell| cell.bg == Color::Reset), "the control");
}

#[test]
fn a_theme_changes_what_is_on_the_screen_already() {
    let mut desk = many_styles(Desk::new(100, 40));
    desk.paint();
    let coloured = |desk: &Desk| {
        let screen = desk.terminal.screen();
        let places = (0..40).flat_map(|y| (0..100).map(move |x| (x, y)));
        let mut colours: Vec<String> =
            places.map(|place| format!("{:?}", cell(screen, place).fg)).collect();
        colours.sort();
        colours.dedup();
        colours.iter().any(|colour| colour.contains("Rgb"))
    };
    assert!(!coloured(&desk), "the control");
    for (command, is_coloured) in [(":theme dark", true), (":theme ansi", false)] {
        desk.input(ScreenInput::Command(command.to_owned()));
        desk.equals_a_redraw();
        assert_eq!(coloured(&desk), is_coloured, "{command}");
        assert_eq!(unreadable(&desk, DARK.ground).is_none(), is_coloured, "{command}");
    }
    // The ground decides, once the terminal has told it.
    desk.input(ScreenInput::Command(":theme auto".to_owned()));
    let asked = String::from_utf8_lossy(&desk.sent.0.borrow()).into_owned();
    assert!(asked.contains("\u{1b}]11;?"), "{asked:?}");
    desk.paint();
    assert!(!coloured(&desk));
    desk.input(ScreenInput::Ground(255, 255, 255));
    desk.paint();
    assert_eq!(unreadable(&desk, LIGHT.ground), None);
    assert!(coloured(&desk) && desk.screen.draft().is_empty());
}

fn looks() -> Vec<Theme> {
    let of =
        |(_, palette): &(&str, Palette)| DEPTHS.map(|depth| Theme::from_palette(palette, depth));
    let mut looks: Vec<Theme> = PALETTES.iter().flat_map(of).collect();
    looks.extend([Theme::ansi(), Theme::plain()]);
    looks
}

#[test]
fn without_colours_no_cell_has_one() {
    for (name, scene) in scenes() {
        let mut desk = scene(Desk::new(100, 40).in_look(Theme::plain()));
        desk.paint();
        let screen = desk.terminal.screen();
        let places = (0..40).flat_map(|y| (0..100).map(move |x| (x, y)));
        let plain = |cell: Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
        assert!(places.map(|place| cell(screen, place)).all(plain), "{name}");
    }
}

/// How many sessions are drawn: `SCREEN_CASES` for a longer run.
fn cases() -> u32 {
    std::env::var("SCREEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// In each theme and at each size: the frame equals a full redraw, and what a theme colours is readable.
    #[test]
    fn each_frame_of_each_theme_is_a_redraw_and_readable(
        look in 0..10_usize,
        scene in 0..9_usize,
        size in proptest::sample::select(vec![(80, 24), (40, 10), (200, 60)]),
        steps in proptest::collection::vec(any_step(PLAIN_TEXT, own_key()), 1..20),
    ) {
        let look = looks()[look];
        let mut desk = Desk::new(size.0, size.1).in_look(look);
        desk = scenes().nth(scene).unwrap().1(desk);
        desk.equals_a_redraw();
        for step in steps {
            desk.step(step);
            desk.equals_a_redraw();
            let palette = PALETTES.iter().find(|(_, palette)| {
                DEPTHS.iter().any(|depth| Theme::from_palette(palette, *depth).bad == look.bad)
            });
            if let Some((name, palette)) = palette {
                let found = unreadable(&desk, palette.ground);
                prop_assert!(found.is_none(), "{name}: {found:?}");
            }
        }
    }
}
