//! Files that are used only as they were written, and only where they were written: a header of lines
//! that name the place, the contents, a checksum.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Attention, Error};

/// What came of a file. Anything but fresh is as if there were none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loaded {
    /// It was written on this adapter, by this driver and this version of the crate, and is whole.
    Fresh,
    /// There is none.
    Missing,
    /// It is whole, but from elsewhere: what differs.
    Stale(String),
    /// It is not what was written, or cannot be read: why.
    Damaged(String),
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loaded::Fresh => write!(f, "loaded"),
            Loaded::Missing => write!(f, "no file yet"),
            Loaded::Stale(why) => write!(f, "ignored, from elsewhere: {why}"),
            Loaded::Damaged(why) => write!(f, "ignored, damaged: {why}"),
        }
    }
}

/// The lines that a file of this kind begins with here.
pub(super) fn header(kind: &str, attention: &Attention) -> String {
    let info = attention.device().adapter_info();
    let limits = attention.limits();
    // Of the device what decides which kernels it may run: one of few limits must not tune for all.
    format!(
        "wgpu-attention {kind} 1\n\
         crate {}\n\
         adapter {:?} {:?} {} {}\n\
         driver {:?} {:?}\n\
         device f16 {} subgroup {} matrix {} workgroup {} {} loops {}\n",
        env!("CARGO_PKG_VERSION"),
        info.name,
        info.backend,
        info.vendor,
        info.device,
        info.driver,
        info.driver_info,
        attention.has_f16(),
        attention.lanes_of_subgroup().unwrap_or(0),
        attention.matrix().map_or(0, |[rows, _]| rows),
        limits.max_compute_invocations_per_workgroup,
        limits.max_compute_workgroup_storage_size,
        attention.loop_limit().unwrap_or(0),
    )
}

/// Header, contents, and a last line with the checksum of both.
pub(super) fn seal(header: &str, contents: &[u8]) -> Vec<u8> {
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(contents);
    let end = end(&bytes);
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

/// The contents of what was sealed under the same header.
pub(super) fn unseal<'b>(header: &str, bytes: &'b [u8]) -> Result<&'b [u8], Loaded> {
    let damaged = |why: &str| Loaded::Damaged(why.into());
    let body = bytes.len().checked_sub(end(&[]).len()).ok_or_else(|| damaged("too short"))?;
    let (body, last) = bytes.split_at(body);
    if last != end(body).as_bytes() {
        return Err(damaged("not what was written: its checksum is another"));
    }
    let mut rest = body;
    for want in header.split_inclusive('\n') {
        let end =
            rest.iter().position(|&byte| byte == b'\n').ok_or_else(|| damaged("no header"))?;
        let (got, after) = rest.split_at(end + 1);
        if got != want.as_bytes() {
            let got = String::from_utf8_lossy(got);
            let why = format!("`{}`, and this is `{}`", got.trim_end(), want.trim_end());
            return Err(Loaded::Stale(why));
        }
        rest = after;
    }
    Ok(rest)
}

/// FNV-1a of 64 bits: every step is a bijection, so no single changed byte goes unseen.
fn end(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("end {:016x}\n", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// A file's bytes, unless there are more than `most`.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Loaded> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Loaded::Missing,
        _ => Loaded::Damaged(error.to_string()),
    };
    // A pipe would keep the reader waiting.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Loaded::Damaged("not a file".into()));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > most {
        true => Err(Loaded::Damaged(format!("more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// Writes a file so that at no time there is half of one.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::File(format!("{}: {error}", path.display()));
    let name = path.file_name().ok_or(Error::File(format!("{}: no name", path.display())))?;
    // Two threads that save do not write to one file. Another process may have the same number, in
    // another container, or have had it and died: what is there is its.
    static SAVES: AtomicU64 = AtomicU64::new(0);
    let (mut file, unfinished) = loop {
        let save = SAVES.fetch_add(1, Ordering::Relaxed);
        let mut unfinished = name.to_os_string();
        unfinished.push(format!(".{}-{save}.unfinished", std::process::id()));
        let unfinished = path.with_file_name(unfinished);
        match OpenOptions::new().write(true).create_new(true).open(&unfinished) {
            Ok(file) => break (file, Unfinished(unfinished)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    };
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    drop(file);
    fs::rename(&unfinished.0, path).map_err(failed)
}

/// A file that goes away unless it was renamed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // Renamed, or never made: nothing to do.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    const HEADER: &str = "wgpu-attention test 1\nadapter \"a\"\n";

    #[test]
    fn what_was_sealed_is_unsealed() {
        for contents in [&b""[..], b"one line\n", b"no end", &[0, 255, 10, 10, 0]] {
            let sealed = seal(HEADER, contents);
            assert_eq!(unseal(HEADER, &sealed), Ok(contents));
            let other = unseal("wgpu-attention test 1\nadapter \"b\"\n", &sealed);
            assert!(
                matches!(&other, Err(Loaded::Stale(why)) if why.contains("\"b\"")),
                "{other:?}"
            );
        }
    }

    /// What was measured without matrix units is not for a device with them.
    #[test]
    fn matrices_make_another_device() {
        let (device, _queue) = wgpu::Device::noop(&wgpu::DeviceDescriptor {
            required_features: crate::attention::MATRIX_FEATURES,
            // SAFETY: nothing runs on this device.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            ..Default::default()
        });
        let with = |sizes: &[u32]| {
            header("test", &Attention::with(&device, Options::default().matrices(sizes)))
        };
        assert_ne!(with(&[]), with(&[8]));
        assert_ne!(with(&[16]), with(&[8]));
    }

    /// Files that a process of the same number left unfinished are neither in the way nor removed.
    #[test]
    fn what_others_left_stays() {
        let folder =
            std::env::temp_dir().join(format!("wgpu-attention-sealed-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let left: Vec<_> = (0..50)
            .map(|save| folder.join(format!("file.{}-{save}.unfinished", std::process::id())))
            .collect();
        left.iter().for_each(|path| fs::write(path, "theirs").expect("written"));
        write(&folder.join("file"), b"ours").expect("written");
        assert_eq!(fs::read(folder.join("file")).expect("bytes"), b"ours");
        assert!(left.iter().all(|path| fs::read(path).is_ok_and(|bytes| bytes == b"theirs")));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), left.len() + 1);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn every_damage_is_seen() {
        let sealed = seal(HEADER, b"flash 32x64\n");
        for len in 0..sealed.len() {
            assert!(matches!(unseal(HEADER, &sealed[..len]), Err(Loaded::Damaged(_))), "{len}");
        }
        for at in 0..sealed.len() {
            for change in 1..=255 {
                let mut bytes = sealed.clone();
                bytes[at] ^= change;
                assert!(matches!(unseal(HEADER, &bytes), Err(Loaded::Damaged(_))), "{at} {change}");
            }
        }
        let longer = [&sealed[..], b"\n"].concat();
        assert!(matches!(unseal(HEADER, &longer), Err(Loaded::Damaged(_))));
        // A checksum alone makes no header.
        assert!(matches!(unseal(HEADER, &seal("", b"")), Err(Loaded::Damaged(_))));
    }
}
