//! The constants in front of a module: the only generated WGSL.
//!
//! A module has those that its files name and no others. Its text is the key under which its pipeline
//! is kept, so with a constant that nothing uses, equal kernels would be compiled again.

/// The names, in the order in which they stand.
macro_rules! constants {
    ($($name:ident)+) => {
        /// What shapes registers and workgroup memory.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "words of the WGSL")]
        #[derive(Clone, Copy)]
        pub(crate) enum Constant {
            $($name,)+
        }

        const NAMES: &[&str] = &[$(stringify!($name),)+];
    };
}

constants! {
    HEAD_DIM VALUE_DIM HEAD_QUADS VALUE_QUADS
    THREADS_Q THREADS_K SUBGROUP_SIZE SUBGROUPS MATRIX_THREADS
    TILE_QUERIES TILE_KEYS DIM_QUADS KEY_CHUNK QUAD_STEP KEY_STEP TILE_QUADS
    OUT_QUADS COLUMN_QUADS COLUMN_TILES
    SOFTMAX_THREADS PACK_THREADS MERGE_THREADS
    K_TEXELS V_TEXELS CACHE_THREADS PAGE_GROUPS
    ROTARY_PAIRS ROTARY_POSITIONS ROTARY_ADJACENT
    ROW_THREADS MERGE_ROWS PROJECT_THREADS PROJECT_TILE PROJECT_QUADS
}

/// A file of `shaders/`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub text: &'static str,
    /// A bit for each [`Constant`] that the file names.
    named: u64,
}

impl File {
    pub const fn new(text: &'static str) -> File {
        File { text, named: named(text) }
    }
}

/// A module: what must be in front of all, constants as far as the files name them, and the files.
pub(crate) fn compose(enable: &str, constants: &[(Constant, u32)], files: &[&File]) -> String {
    let named = files.iter().fold(0, |named, file| named | file.named);
    let bytes: usize = files.iter().map(|file| file.text.len() + 1).sum();
    // Planning again costs little more than this text: it is written once, in place.
    let mut wgsl = String::with_capacity(bytes + 1024);
    wgsl.push_str(enable);
    for &(constant, value) in constants {
        if named >> constant as u32 & 1 == 1 {
            wgsl += &format!("const {} = {value}u;\n", NAMES[constant as usize]);
        }
    }
    for file in files {
        wgsl.push('\n');
        wgsl.push_str(file.text);
    }
    wgsl
}

/// The constants that are words of a text without its comments.
const fn named(text: &str) -> u64 {
    let text = text.as_bytes();
    let (mut named, mut at) = (0, 0);
    while at < text.len() {
        let begin = at;
        while at < text.len() && (text[at] == b'_' || text[at].is_ascii_alphanumeric()) {
            at += 1;
        }
        if at > begin {
            if text[begin].is_ascii_uppercase() {
                named |= bit(text, begin, at);
            }
        } else if text[at] == b'/' && at + 1 < text.len() && text[at + 1] == b'/' {
            while at < text.len() && text[at] != b'\n' {
                at += 1;
            }
        } else {
            at += 1;
        }
    }
    named
}

/// Of a word, text[begin..end]; 0 if it is no constant.
const fn bit(text: &[u8], begin: usize, end: usize) -> u64 {
    let mut number = 0;
    while number < NAMES.len() {
        let name = NAMES[number].as_bytes();
        let mut same = 0;
        if name.len() == end - begin {
            while same < name.len() && name[same] == text[begin + same] {
                same += 1;
            }
            if same == name.len() {
                return 1 << number;
            }
        }
        number += 1;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_outside_of_comments() {
        static FILES: [File; 2] = [
            File::new("// OUT_QUADS\nconst WIDE = 2u * HEAD_DIM; // TILE_KEYS\n"),
            File::new("const MY_VALUE_DIM = 1u / 3u + VALUE_DIMS + KEY_STEP;"),
        ];
        let all = [
            (Constant::OUT_QUADS, 1),
            (Constant::HEAD_DIM, 2),
            (Constant::TILE_KEYS, 3),
            (Constant::VALUE_DIM, 4),
            (Constant::KEY_STEP, 5),
        ];
        let wgsl = compose("", &all, &[&FILES[0], &FILES[1]]);
        let prologue = wgsl.split("\n\n").next().expect("a prologue");
        assert_eq!(prologue, "const HEAD_DIM = 2u;\nconst KEY_STEP = 5u;");
    }
}
