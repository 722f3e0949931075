//! A safetensors file: 8 bytes of header length, the header in JSON, the data. Nothing in it is
//! trusted.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::TensorInfo;
use serde_json::{Map, Value};

use super::json;
use super::tensor::Tensor;

/// A thousand tensors need 100 kB. JSON takes many times its size in memory.
const LONGEST_HEADER: u64 = 16 << 20;

/// A file whose header fits its data.
pub struct File {
    tensors: BTreeMap<String, TensorInfo>,
    metadata: Map<String, Value>,
    data: Vec<u8>,
}

impl File {
    /// Reads a file, the header first: what it says must fit before the rest is read.
    pub fn open(path: &Path) -> Result<File, String> {
        let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
        match about.file_type() {
            kind if kind.is_dir() => Err("a directory, need a file".into()),
            // A pipe has no length, and may never end.
            kind if !kind.is_file() => Err("not a regular file".into()),
            _ => {
                let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
                File::read(file, about.len())
            }
        }
    }

    /// Reads a file of so many bytes.
    pub fn read(mut from: impl Read, bytes: u64) -> Result<File, String> {
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(|_| "too short for a safetensors file")?;
        let (length, rest) = (u64::from_le_bytes(start), bytes.saturating_sub(8));
        if length > rest {
            return Err(format!("header: of {length} bytes in a file that has {rest} more"));
        }
        if length > LONGEST_HEADER {
            return Err(format!("header: need at most {LONGEST_HEADER} bytes, got {length}"));
        }
        let header = json::read(&bytes_of(&mut from, length)?);
        let header = header.map_err(|error| format!("header: {error}"))?;
        let Value::Object(mut entries) = header else {
            return Err("header: need a JSON object".into());
        };
        let metadata = match entries.remove("__metadata__") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(metadata)) => metadata,
            Some(_) => return Err("__metadata__: need a JSON object".into()),
        };
        let tensors = tensors(entries, rest - length)?;
        Ok(File { tensors, metadata, data: bytes_of(&mut from, rest - length)? })
    }

    /// A tensor by its name, if there is one.
    pub fn tensor<'a>(&'a self, name: &'a str) -> Option<Tensor<'a>> {
        let TensorInfo { dtype, shape, data_offsets: (start, end) } = self.tensors.get(name)?;
        Some(Tensor { name, dtype: *dtype, shape, data: &self.data[*start..*end] })
    }

    /// A tensor that must be there.
    pub fn need<'a>(&'a self, name: &'a str) -> Result<Tensor<'a>, String> {
        self.tensor(name).ok_or_else(|| format!("{name}: needed, not in the file"))
    }

    /// JSON that lies as text in the metadata. Null if there is none of that name.
    pub fn json(&self, name: &str) -> Result<Value, String> {
        match self.metadata.get(name) {
            None => Ok(Value::Null),
            Some(Value::String(text)) => {
                json::read(text.as_bytes()).map_err(|error| format!("{name}: {error}"))
            }
            Some(_) => Err(format!("{name}: need JSON as a text")),
        }
    }
}

/// Exactly so many bytes; memory that cannot be had is an error too.
fn bytes_of(from: &mut impl Read, bytes: u64) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    let room = usize::try_from(bytes).map_err(|error| error.to_string())?;
    all.try_reserve_exact(room).map_err(|error| error.to_string())?;
    from.take(bytes).read_to_end(&mut all).map_err(|error| error.to_string())?;
    match all.len() == room {
        true => Ok(all),
        false => Err(format!("truncated: {bytes} bytes expected, {} read", all.len())),
    }
}

/// The header's entries: each as large as its type and shape say, one after another, all of the
/// data in use.
fn tensors(
    entries: Map<String, Value>,
    bytes: u64,
) -> Result<BTreeMap<String, TensorInfo>, String> {
    let mut tensors = BTreeMap::new();
    for (name, entry) in entries {
        let info = serde_json::from_value(entry).map_err(|error| format!("{name}: {error}"))?;
        check_size(&info).map_err(|why| format!("{name}: {why}"))?;
        tensors.insert(name, info);
    }
    let mut places: Vec<_> = tensors.iter().map(|(name, info)| (info.data_offsets, name)).collect();
    places.sort_unstable();
    let mut end = 0;
    for ((start, next), name) in places {
        if start != end {
            return Err(format!("{name}: data_offsets: need a start at {end}, got {start}"));
        }
        end = next;
    }
    match end as u64 == bytes {
        true => Ok(tensors),
        false => Err(format!("header: tensors of {end} bytes in a file with {bytes} of them")),
    }
}

fn check_size(info: &TensorInfo) -> Result<(), String> {
    let TensorInfo { dtype, shape, data_offsets: (start, end) } = info;
    let bits = shape.iter().try_fold(dtype.bitsize(), |bits, &n| bits.checked_mul(n));
    let bits = bits.ok_or_else(|| format!("a shape beyond all memory, {shape:?}"))?;
    let got = end.checked_sub(*start);
    let got = got.ok_or_else(|| format!("data_offsets: {end} before {start}"))?;
    match bits.is_multiple_of(8) && got == bits / 8 {
        true => Ok(()),
        false => {
            let need = bits.div_ceil(8);
            Err(format!("data_offsets: need {need} bytes for {dtype:?} {shape:?}, got {got}"))
        }
    }
}
