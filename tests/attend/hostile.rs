//! Files that are no safetensors, or say what cannot be.

use safetensors::Dtype;

use super::bad::{Row, zeros};
use super::made::Made;

/// A header of the caller's, with so many bytes of data behind it.
pub fn raw(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn entry(name: &str, dtype: &str, shape: &str, offsets: &str) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
}

/// Queries, no keys.
fn keyless(queries: usize, dim: usize) -> Vec<u8> {
    let f32s = |shape: &[usize]| zeros(Dtype::F32, shape);
    let made = Made::new().with("q", f32s(&[1, 1, queries, 1])).with("k", f32s(&[1, 1, 0, 1]));
    made.with("v", f32s(&[1, 1, 0, dim])).bytes()
}

/// Each with what the line about it says.
pub fn hostile() -> Vec<Row> {
    let good = Made::usual().bytes();
    let mut long = good.clone();
    long.push(0);
    let length = |n: u64| [&n.to_le_bytes(), &good[8..]].concat();
    let one = |shape: &str, offsets: &str, data: usize| {
        raw(&format!("{{{}}}", entry("q", "F32", shape, offsets)), data)
    };
    let two = |a: &str, b: &str, data: usize| {
        let [a, b] = [entry("a", "F32", "[2]", a), entry("b", "F32", "[2]", b)];
        raw(&format!("{{{a},{b}}}"), data)
    };
    // Each in range, all together past every address.
    let eighth = 1u64 << 61;
    let many = (0..8u64).map(|at| {
        let offsets = format!("[{},{}]", at * (eighth - 1), (at + 1) * (eighth - 1));
        entry(&format!("t{at}"), "U8", &format!("[{}]", eighth - 1), &offsets)
    });
    let many = format!("{{{}}}", many.collect::<Vec<_>>().join(","));
    vec![
        (vec![], "too short"),
        (good[..7].to_vec(), "too short"),
        (good[..8].to_vec(), "header: of"),
        (good[..100].to_vec(), "header: of"),
        (good[..good.len() - 1].to_vec(), "header: tensors of"),
        (long, "header: tensors of"),
        (length(u64::MAX), "header: of 18446744073709551615 bytes"),
        (length(u64::MAX - 7), "header: of"),
        (length(1 << 40), "header: of"),
        (length(0), "header: EOF"),
        (length(9), "header: "),
        (raw("[]", 0), "header: need a JSON object"),
        (raw("\u{1}", 0), "header: "),
        (raw(&"[".repeat(100_000), 0), "header: recursion limit"),
        (raw(r#"{"__metadata__":7}"#, 0), "__metadata__: need a JSON object"),
        (raw("{}", 0), "q: needed, not in the file"),
        (raw(r#"{"q":7}"#, 0), "q: invalid type"),
        (raw(r#"{"q":{"dtype":"F32"}}"#, 0), "q: missing field"),
        (raw(&format!("{{{}}}", entry("q", "F31", "[1]", "[0,4]")), 4), "q: unknown variant"),
        (one("[-1]", "[0,4]", 4), "q: invalid value"),
        (one("[1.5]", "[0,4]", 4), "q: invalid type"),
        (one("[1]", "[0,4,8]", 4), "q: invalid length"),
        (one("[18446744073709551616]", "[0,4]", 4), "q: invalid type"),
        (one("[18446744073709551615]", "[0,4]", 4), "q: a shape beyond all memory"),
        (one("[4294967296,4294967296]", "[0,4]", 4), "q: a shape beyond all memory"),
        (one("[4294967296,4294967296,0]", "[0,0]", 0), "q: a shape beyond all memory"),
        (one("[2]", "[0,4]", 4), "q: data_offsets: need 8 bytes"),
        (one("[1]", "[8,4]", 8), "q: data_offsets: 4 before 8"),
        (one("[1]", "[4,8]", 8), "q: data_offsets: need a start at 0, got 4"),
        (one("[1]", "[18446744073709551611,18446744073709551615]", 4), "q: data_offsets: need a"),
        (two("[0,8]", "[4,12]", 12), "b: data_offsets: need a start at 8, got 4"),
        (two("[0,8]", "[0,8]", 8), "b: data_offsets: need a start at 8, got 0"),
        (two("[0,8]", "[12,20]", 20), "b: data_offsets: need a start at 8, got 12"),
        (two("[0,8]", "[8,16]", 12), "header: tensors of 16 bytes"),
        (raw(&many, 100), "header: tensors of"),
        (raw(&format!("{{{}}}", entry("q\\n\\u001b[31m", "F32", "[2]", "[0,4]")), 4), "q  [31m: "),
        // No bytes of v, and an output past any memory.
        (keyless(1, 1 << 30), "v: dim: need at most 65536, got 1073741824"),
        (keyless(1 << 14, 1 << 16), "out: need at most 2147483648 bytes, got 4294967296"),
    ]
}
