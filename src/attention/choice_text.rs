//! A choice as one line, for logs and files.

use std::fmt;

use super::Choice;

impl fmt::Display for Choice {
    /// For instance `flash 32x64`, `broadcast 16x16 texture`; `auto` where the planner chooses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.method {
            Some(method) => f.write_str(&format!("{method:?}").to_lowercase())?,
            None => f.write_str("auto")?,
        }
        if let Some(tile) = self.tile {
            write!(f, " {}x{}", tile.queries, tile.keys)?;
        }
        match self.keys_in_texture {
            Some(true) => f.write_str(" texture"),
            Some(false) => f.write_str(" buffers"),
            None => Ok(()),
        }
    }
}

#[cfg(all(feature = "host", not(target_family = "wasm")))]
impl Choice {
    /// Of its text; `None` for any other text, and for a tile that no method has.
    pub(crate) fn parse(text: &str) -> Option<Choice> {
        use crate::{Method, Tile};
        let mut words = text.split(' ');
        let mut choice = Choice::default();
        let method = words.next()?;
        if method != "auto" {
            let name = |method: &Method| format!("{method:?}").to_lowercase();
            choice.method = Some(*Method::ALL.iter().find(|known| name(known) == method)?);
        }
        for word in words {
            match (word, word.split_once('x')) {
                ("texture", _) => choice.keys_in_texture = Some(true),
                ("buffers", _) => choice.keys_in_texture = Some(false),
                (_, tile) => {
                    let (queries, keys) = tile?;
                    let tile = Tile { queries: queries.parse().ok()?, keys: keys.parse().ok()? };
                    choice.tile = Some(tile.validate().map(|()| tile).ok()?);
                }
            }
        }
        (choice.to_string() == text).then_some(choice)
    }
}

#[cfg(all(test, feature = "host"))]
mod tests {
    use super::*;
    use crate::{Method, Tile};

    #[test]
    fn read_back() {
        let tile = Tile { queries: 16, keys: 128 };
        for choice in [
            Choice::default(),
            Choice::method(Method::Decode),
            Choice::tile(tile),
            Choice::method(Method::Broadcast).with_tile(tile).with_keys_in_texture(false),
            Choice::default().with_keys_in_texture(true),
        ] {
            assert_eq!(Choice::parse(&choice.to_string()), Some(choice), "{choice}");
        }
        for other in [
            "",
            "Flash",
            "flash ",
            "flash 16x0",
            "flash 016x16",
            "flash 99999999999x16",
            "flash 16x16 16x16",
            "flash texture 16x16",
            "warp 16x16",
            "16x16",
        ] {
            assert_eq!(Choice::parse(other), None, "{other}");
        }
    }
}
