//! What was tuned, as text: a line `class = choice` for each class, or `class = choice, unfinished after N
//! ms`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::host::sealed::Loaded;
use crate::{Choice, Class, Tuning};

/// More than any tuning comes to.
pub(super) const MOST_BYTES: u64 = 1 << 20;

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub tuning: Tuning,
    /// Budgets that did not suffice.
    pub unfinished: BTreeMap<Class, Duration>,
}

impl Found {
    pub fn text(&self) -> String {
        let line = |(class, choice): (&Class, &Choice)| {
            let spent = self.unfinished.get(class);
            let mark = spent.map(|spent| format!("{UNFINISHED}{} ms", spent.as_millis()));
            format!("{class} = {choice}{}\n", mark.unwrap_or_default())
        };
        // A choice of the caller's that no file could hold would make it damaged.
        let sound =
            |(_, choice): &(&Class, &Choice)| Choice::parse(&choice.to_string()) == Some(**choice);
        self.tuning.iter().filter(sound).map(line).collect()
    }
}

const UNFINISHED: &str = ", unfinished after ";

/// Of what [`Found::text`] gives; anything else is damaged, whoever gave it a right checksum.
pub(super) fn parse(bytes: &[u8]) -> Result<Found, Loaded> {
    let damaged = |why: String| Loaded::Damaged(why);
    let text = std::str::from_utf8(bytes).map_err(|error| damaged(error.to_string()))?;
    let mut found = Found::default();
    for line in text.split_terminator('\n') {
        let entry = entry(line).ok_or_else(|| damaged(format!("no such line: {line:?}")))?;
        let (class, choice, spent) = entry;
        if found.tuning.get(&class).is_some() {
            return Err(damaged(format!("twice: {class}")));
        }
        found.tuning = found.tuning.with(class, choice);
        found.unfinished.extend(spent.map(|spent| (class, spent)));
    }
    Ok(found)
}

fn entry(line: &str) -> Option<(Class, Choice, Option<Duration>)> {
    let (class, rest) = line.split_once(" = ")?;
    let (choice, spent) = match rest.split_once(UNFINISHED) {
        Some((choice, spent)) => (choice, Some(spent.strip_suffix(" ms")?.parse().ok()?)),
        None => (rest, None),
    };
    Some((Class::parse(class)?, Choice::parse(choice)?, spent.map(Duration::from_millis)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, Problem, Shape, Tile};

    fn some() -> Found {
        let class = |tokens| Class::of(&Problem::new(Shape::self_attention(1, 8, tokens, 64)));
        let tile = Choice::tile(Tile { queries: 32, keys: 64 });
        let class = |tokens| class(tokens).expect("valid");
        let tuning = Tuning::default()
            .with(class(64), tile)
            .with(class(999), Choice::method(Method::Decode))
            .with(class(4000), Choice::default());
        // Not written: there is no such tile.
        let tuning = tuning.with(class(8), Choice::tile(Tile { queries: 3, keys: 8 }));
        Found { tuning, unfinished: BTreeMap::from([(class(999), Duration::from_millis(1500))]) }
    }

    #[test]
    fn read_back() {
        for found in [Found::default(), some()] {
            let read = parse(found.text().as_bytes()).expect("whole");
            assert_eq!(read.tuning.len(), found.tuning.len().saturating_sub(1));
            assert!(
                read.tuning.iter().all(|(class, &choice)| found.tuning.get(class) == Some(choice))
            );
            assert_eq!(read.unfinished, found.unfinished);
        }
    }

    #[test]
    fn hostile_contents_are_damaged() {
        let good = some().text();
        let line = good.lines().next().expect("a line");
        let hostile = [
            format!("{good}{line}\n"),
            good.replacen("64x64", "99999999999999999999x64", 1),
            good.replacen("rows=64", "rows=NaN", 1),
            good.replacen("rows=64", "rows=65", 1),
            good.replacen("flash 32x64", "flash 0x64", 1),
            good.replacen("flash 32x64", "flash 4294967292x4294967292", 1),
            good.replacen("1500 ms", "1500 s", 1),
            good.replacen("1500 ms", "-1 ms", 1),
            good.replacen("1500 ms", "99999999999999999999 ms", 1),
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
