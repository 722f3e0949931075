//! The tuner's file: what survives a restart, and what is ignored.

use std::fs;
use std::path::PathBuf;

use wgpu_attention::{
    Choice, Class, Error, Gpu, Loaded, Method, Problem, Shape, Tile, Tuner, Tuning,
};

use super::{hasty, patient, small, two_methods};
use crate::support::{default_limits_gpu, gpu};

/// A folder of one test's own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("wgpu-attention-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("attention.tuning")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // Nothing depends on it.
    }
}

fn some() -> Tuning {
    let class = |tokens| Class::of(&Problem::new(Shape::self_attention(1, 8, tokens, 64)));
    Tuning::default()
        .with(class(64).expect("valid"), Choice::tile(Tile { queries: 8, keys: 16 }))
        .with(class(128).expect("valid"), Choice::default())
}

fn tuner(gpu: &Gpu, tuning: Tuning) -> Tuner {
    let attention = gpu.planner().clone().with_tuning(tuning);
    Tuner::new(&gpu.clone().with_attention(attention))
}

/// What a tuner that knows nothing makes of a file: if that is anything but fresh, still nothing.
fn load(file: &PathBuf) -> (Loaded, Tuning) {
    let mut fresh = Tuner::new(gpu());
    let loaded = fresh.load(file);
    assert!(loaded == Loaded::Fresh || fresh.tuning().is_empty(), "{loaded}");
    (loaded, fresh.tuning().clone())
}

/// What ran out of time is measured again where there is more of it, and only there.
#[test]
fn the_unfinished_goes_on() {
    let folder = Folder::new("unfinished");
    let gpu = gpu().clone().with_attention(two_methods(gpu().planner().clone()));
    let mut tuner = hasty(&gpu);
    let tuned = tuner.measure(&small(), |_| {}).expect("measured");
    assert!(!tuned.finished);
    assert_eq!(tuner.tune(&small(), |_| panic!("again")).expect("known"), tuned.choice);
    tuner.save(folder.file()).expect("written");
    // After the patient one it is finished.
    for (make, again) in
        [(hasty as fn(&Gpu) -> Tuner, false), (patient, true), (hasty, false), (patient, false)]
    {
        let mut next = make(&gpu);
        assert_eq!(next.load(folder.file()), Loaded::Fresh);
        let mut measured = false;
        next.tune(&small(), |_| measured = true).expect("a choice");
        assert_eq!(measured, again);
        next.save(folder.file()).expect("written");
    }
}

#[test]
fn survives_a_restart() {
    let folder = Folder::new("restart");
    assert_eq!(load(&folder.file()).0, Loaded::Missing);
    tuner(gpu(), some()).save(folder.file()).expect("written");
    println!("{}", fs::read_to_string(folder.file()).expect("text"));
    assert_eq!(load(&folder.file()), (Loaded::Fresh, some()));
    // Nothing unfinished is left, and what is there is replaced.
    tuner(gpu(), Tuning::default()).save(folder.file()).expect("written");
    assert_eq!(load(&folder.file()), (Loaded::Fresh, Tuning::default()));
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1);
    // What is known already stays: the file is older.
    tuner(gpu(), some()).save(folder.file()).expect("written");
    let newer = some().iter().fold(Tuning::default(), |all, (class, _)| {
        all.with(*class, Choice::method(Method::Decode))
    });
    let mut knowing = tuner(gpu(), newer.clone());
    assert_eq!(knowing.load(folder.file()), Loaded::Fresh);
    assert_eq!(*knowing.tuning(), newer);
    // What was measured here is what a restarted program plans with.
    let problem = small();
    let mut measured = hasty(gpu());
    let choice = measured.tune(&problem, |_| {}).expect("measured");
    measured.save(folder.file()).expect("written");
    let mut restarted = hasty(gpu());
    assert_eq!(restarted.load(folder.file()), Loaded::Fresh);
    assert_eq!(restarted.tune(&problem, |_| panic!("measured again")).expect("known"), choice);
    // Not so what the device does not allow.
    let without = gpu().planner().clone().without(Method::Flash);
    let tuning =
        Tuning::default().with(Class::of(&problem).expect("valid"), Choice::method(Method::Flash));
    let mut excluded = hasty(&gpu().clone().with_attention(without.with_tuning(tuning)));
    let mut measured = false;
    let choice = excluded.tune(&problem, |_| measured = true).expect("measured");
    assert!(measured && choice.method != Some(Method::Flash), "{choice}");
}

/// Cut anywhere, and with any byte changed: ignored, and said so.
#[test]
fn every_damage_is_ignored() {
    let folder = Folder::new("damage");
    tuner(gpu(), some()).save(folder.file()).expect("written");
    let good = fs::read(folder.file()).expect("bytes");
    let mut tried = 0;
    let mut ignored = |bytes: &[u8], what: String| {
        fs::write(folder.file(), bytes).expect("written");
        let (loaded, _) = load(&folder.file());
        assert!(matches!(loaded, Loaded::Damaged(_)), "{what}: {loaded}");
        tried += 1;
    };
    for len in 0..good.len() {
        ignored(&good[..len], format!("{len} bytes"));
    }
    for at in 0..good.len() {
        for change in [1, 0x20, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= change;
            ignored(&bytes, format!("byte {at} ^ {change}"));
        }
    }
    ignored(&[&good[..], &good].concat(), "twice".into());
    ignored(&vec![b'a'; 2 << 20], "too long".into());
    println!("{tried} damaged files ignored");
    // A folder in its place.
    let (loaded, _) = load(&folder.0);
    assert!(matches!(loaded, Loaded::Damaged(_)), "{loaded}");
    // A right file after all of them.
    fs::write(folder.file(), &good).expect("written");
    assert_eq!(load(&folder.file()), (Loaded::Fresh, some()));
}

/// Another version, adapter, driver, or a device with other limits, each with a right checksum.
#[test]
fn what_is_from_elsewhere_is_stale() {
    let folder = Folder::new("stale");
    tuner(gpu(), some()).save(folder.file()).expect("written");
    let good = fs::read_to_string(folder.file()).expect("text");
    let info = gpu().device().adapter_info();
    let other = |from: &str| good.replacen(from, &format!("{from}x"), 1);
    for (name, text) in [
        ("format", other("tuning 1")),
        ("crate", other(concat!("crate ", env!("CARGO_PKG_VERSION")))),
        ("adapter", other(&info.name)),
        ("backend", other(&format!("{:?}", info.backend))),
        ("ids", other(&format!("{} {}", info.vendor, info.device))),
        ("driver", other(&format!("driver {:?}", info.driver)[..])),
        ("driver_info", other(&info.driver_info)),
        ("subgroup", other("subgroup ")),
    ] {
        assert_ne!(text, good, "{name}");
        fs::write(folder.file(), sealed(&text)).expect("written");
        let (loaded, _) = load(&folder.file());
        println!("{name}: {loaded}");
        assert!(matches!(loaded, Loaded::Stale(_)), "{name}: {loaded}");
    }
    // The same text with its own checksum: the helper is right.
    fs::write(folder.file(), sealed(&good)).expect("written");
    assert_eq!(load(&folder.file()), (Loaded::Fresh, some()));
    // Of the same adapter, with the limits of every WebGPU device.
    tuner(default_limits_gpu(), some()).save(folder.file()).expect("written");
    assert!(matches!(load(&folder.file()).0, Loaded::Stale(_)));
    // A line that no tuner writes, with a right checksum.
    let line = good.replacen("flash 8x16", "flash 8x0", 1);
    fs::write(folder.file(), sealed(&line)).expect("written");
    assert!(matches!(load(&folder.file()).0, Loaded::Damaged(_)));
}

/// The text without its last line, and the last line that belongs to it.
fn sealed(text: &str) -> String {
    let body = &text[..text.trim_end().rfind('\n').expect("lines") + 1];
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{body}end {:016x}\n", body.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let folder = Folder::new("unwritable");
    let tuner = tuner(gpu(), some());
    for path in [folder.0.join("no such folder").join("file"), folder.0.clone(), "/".into()] {
        let error = tuner.save(&path).expect_err("an error");
        assert!(matches!(&error, Error::File(why) if !why.is_empty()), "{error}");
    }
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 0);
    tuner.save(folder.file()).expect("written");
}

/// What could not be read again is not written.
#[test]
fn no_more_than_is_read() {
    let folder = Folder::new("large");
    let class = |at: u32| {
        let shape = Shape::self_attention(1, 1, 8, 1 + at % 1000).value_dim(1 + at / 1000);
        Class::of(&Problem::new(shape)).expect("valid")
    };
    let many = |count| {
        (0..count).fold(Tuning::default(), |all, at| all.with(class(at), Choice::default()))
    };
    tuner(gpu(), many(10_000)).save(folder.file()).expect("written");
    assert_eq!(load(&folder.file()).1.len(), 10_000);
    let error = tuner(gpu(), many(30_000)).save(folder.file()).expect_err("too much");
    assert!(matches!(error, Error::File(_)), "{error}");
    assert_eq!(load(&folder.file()).1.len(), 10_000, "what was there");
}
