//! Random changes to right files.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use safetensors::Dtype;

use super::super::made::Made;

const NUMBERS: [&str; 10] =
    ["0", "1", "2", "3", "4", "-1", "1e9", "4294967296", "18446744073709551615", "[]"];

/// One to three changes of the bytes or of the header's text.
pub fn of_bytes(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(1..=3) {
        let header = header_end(bytes);
        // Half of all changes in the header, as long as there is one.
        let end = if random.random() { header.min(bytes.len()) } else { bytes.len() };
        if end == 0 {
            return;
        }
        let at = random.random_range(0..end);
        match random.random_range(0..8) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes.truncate(at),
            3 => bytes.extend((0..random.random_range(1..9)).map(|_| 0u8)),
            4 => drop(bytes.drain(at..end.min(at + random.random_range(1..9)))),
            5 => {
                let piece = bytes[at..end.min(at + random.random_range(1..40))].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => number(bytes, at, header, random),
        }
        // So that what is behind the header's length is reached more often than not.
        if random.random_range(0..4) > 0 {
            mend(bytes);
        }
    }
}

/// Another number in place of one in the header.
fn number(bytes: &mut Vec<u8>, at: usize, header: usize, random: &mut StdRng) {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let header = header.min(bytes.len());
    let Some(start) = (at.min(header)..header).find(|&at| is_digit(&bytes[at])) else { return };
    let end = (start..header).find(|&at| !is_digit(&bytes[at])).unwrap_or(header);
    let other = NUMBERS.choose(random).expect("a number");
    bytes.splice(start..end, other.bytes());
}

pub fn header_end(bytes: &[u8]) -> usize {
    let length = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    usize::try_from(length).unwrap_or(usize::MAX).saturating_add(8)
}

/// The header's length by where its JSON seems to end.
fn mend(bytes: &mut [u8]) {
    let end = bytes.windows(2).position(|pair| pair == b"}}").map_or(0, |at| at + 2);
    if let (Some(start), Some(length)) = (bytes.first_chunk_mut(), end.checked_sub(8)) {
        *start = (length as u64).to_le_bytes();
    }
}

/// One to three changes of tensors, in a file that is one.
pub fn of_tensors(made: &mut Made, random: &mut StdRng) {
    for _ in 0..random.random_range(1..=3) {
        let names: Vec<String> = made.tensors.keys().cloned().collect();
        let Some(name) = names.choose(random) else { return };
        let Some(mut tensor) = made.tensors.remove(name) else { return };
        match random.random_range(0..8) {
            0 => {}
            1 => {
                // In another's place.
                let other = names.choose(random).expect("a name");
                made.tensors.insert(other.clone(), tensor);
            }
            2 => {
                let other = super::params::OPTIONAL.choose(random).expect("a name");
                made.tensors.insert((*other).into(), tensor);
            }
            kind => {
                if kind < 6 {
                    sizes(&mut tensor.shape, random);
                }
                if kind > 5 {
                    let types = [Dtype::BOOL, Dtype::I32, Dtype::I64, Dtype::F16, Dtype::F64];
                    tensor.dtype = *types.choose(random).expect("a type");
                }
                let size = tensor.dtype.bitsize() / 8;
                let bytes = tensor.shape.iter().try_fold(size, |all, &n| all.checked_mul(n));
                if let Some(bytes) = bytes.filter(|&bytes| bytes < 1 << 16) {
                    tensor.data.resize(bytes, random.random());
                    made.tensors.insert(name.clone(), tensor);
                }
            }
        }
    }
}

/// One size more, less, or other; huge ones only where there is no data.
fn sizes(shape: &mut Vec<usize>, random: &mut StdRng) {
    let at = random.random_range(0..=shape.len());
    match random.random_range(0..6) {
        0 => shape.insert(at, *[0, 1, 2].choose(random).expect("a size")),
        1 if at < shape.len() => drop(shape.remove(at)),
        2 if at < shape.len() && shape.len() > 1 => {
            shape[at] = 0;
            let other = (at + 1) % shape.len();
            shape[other] = *[1 << 20, 1 << 31, 1 << 33].choose(random).expect("a size");
        }
        _ if at < shape.len() => shape[at] = random.random_range(0..6),
        _ => {}
    }
}

/// Other numbers in `params`.
pub fn of_params(params: &str, random: &mut StdRng) -> String {
    let mut bytes = params.as_bytes().to_vec();
    let (at, end) = (random.random_range(0..bytes.len()), bytes.len());
    number(&mut bytes, at, end, random);
    String::from_utf8(bytes).expect("text")
}
