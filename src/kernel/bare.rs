//! WGSL without comments, indentation and empty lines, at compile time.

/// Calls for each byte that stays: its place there.
macro_rules! each {
    ($text:ident, $at:ident, $byte:ident => $keep:block) => {
        let bytes = $text.as_bytes();
        let (mut from, mut $at) = (0, 0);
        let mut line_begins = true;
        while from < bytes.len() {
            let $byte = bytes[from];
            let blank = $byte == b' ' || $byte == b'\n';
            if $byte == b'/' && from + 1 < bytes.len() && bytes[from + 1] == b'/' {
                while from < bytes.len() && bytes[from] != b'\n' {
                    from += 1;
                }
                continue;
            }
            if !(line_begins && blank) {
                $keep
                $at += 1;
                line_begins = $byte == b'\n';
            }
            from += 1;
        }
    };
}

/// Bytes that stay.
pub(crate) const fn len(text: &str) -> usize {
    each!(text, at, _byte => {});
    at
}

/// The bytes that stay; `N` is [`len`].
pub(crate) const fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bare = [0; N];
    each!(text, at, byte => { bare[at] = byte; });
    bare
}

#[cfg(test)]
mod tests {
    #[test]
    fn comments_and_indentation_go() {
        const TEXT: &str = "// a\n\nfn f() {\n    return 1 / 2;  // half\n}\n";
        const BARE: [u8; super::len(TEXT)] = super::text(TEXT);
        let bare = std::str::from_utf8(&BARE).expect("UTF-8");
        assert_eq!(bare, "fn f() {\nreturn 1 / 2;  \n}\n");
    }
}
