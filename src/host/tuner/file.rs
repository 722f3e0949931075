//! What was tuned, as text: a line `class = choice` for each class.

use crate::host::sealed::Loaded;
use crate::{Choice, Class, Tuning};

/// More than any tuning comes to.
pub(super) const MOST_BYTES: u64 = 1 << 20;

pub(super) fn text(tuning: &Tuning) -> String {
    tuning.iter().map(|(class, choice)| format!("{class} = {choice}\n")).collect()
}

/// Of what [`text`] gives; anything else is damaged, whoever gave it a right checksum.
pub(super) fn parse(bytes: &[u8]) -> Result<Tuning, Loaded> {
    let damaged = |why: String| Loaded::Damaged(why);
    let text = std::str::from_utf8(bytes).map_err(|error| damaged(error.to_string()))?;
    let mut tuning = Tuning::default();
    for line in text.split_terminator('\n') {
        let known = |(class, choice)| Some((Class::parse(class)?, Choice::parse(choice)?));
        let entry = line.split_once(" = ").and_then(known);
        let (class, choice) = entry.ok_or_else(|| damaged(format!("no such line: {line:?}")))?;
        if tuning.get(&class).is_some() {
            return Err(damaged(format!("twice: {class}")));
        }
        tuning = tuning.with(class, choice);
    }
    Ok(tuning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, Problem, Shape, Tile};

    fn some() -> Tuning {
        let class = |tokens| Class::of(&Problem::new(Shape::self_attention(1, 8, tokens, 64)));
        let tile = Choice::tile(Tile { queries: 32, keys: 64 });
        Tuning::default()
            .with(class(64).expect("valid"), tile)
            .with(class(999).expect("valid"), Choice::method(Method::Decode))
            .with(class(4000).expect("valid"), Choice::default())
    }

    #[test]
    fn read_back() {
        for tuning in [Tuning::default(), some()] {
            assert_eq!(parse(text(&tuning).as_bytes()), Ok(tuning));
        }
    }

    #[test]
    fn hostile_contents_are_damaged() {
        let good = text(&some());
        let line = good.lines().next().expect("a line");
        let hostile = [
            format!("{good}{line}\n"),
            good.replacen("64x64", "99999999999999999999x64", 1),
            good.replacen("rows=64", "rows=NaN", 1),
            good.replacen("rows=64", "rows=65", 1),
            good.replacen("flash 32x64", "flash 0x64", 1),
            good.replacen("flash 32x64", "flash 4294967292x4294967292", 1),
            good.replacen(" = ", " ", 1),
            good.replacen(" = ", " = = ", 1),
            format!("\n{good}"),
            format!("{good}\n"),
            good.replace('\n', "\r\n"),
            "\u{0}".into(),
        ];
        for text in hostile {
            assert!(matches!(parse(text.as_bytes()), Err(Loaded::Damaged(_))), "{text:?}");
        }
        assert!(matches!(parse(&[b'q', 0xff, b'\n']), Err(Loaded::Damaged(_))));
    }
}
