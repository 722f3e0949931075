//! What the planner's tables say, written down once more: devices and problems on both sides of
//! every boundary.
//!
//! Bytes are those of the tile named: from so many on it fits.

use wgpu::Features;
use wgpu_attention::{CacheShape, Choice, Element, Method, Problem, Tile};

use super::devices::{Device, MATRIX};
use super::problems::{cached, grouped, halves, rows, typed};

/// Workgroup memory and invocations of a device without features.
fn plain(bytes: u32, threads: u32) -> Device {
    Device::new("plain").bytes(bytes).threads(threads)
}

/// The same with matrices.
fn matrix(bytes: u32, threads: u32, sizes: &'static [u32], lanes: [u32; 2]) -> Device {
    plain(bytes, threads).matrices(sizes, lanes)
}

fn f16(q_len: u32, dim: u32) -> Problem {
    halves(rows(q_len, dim, dim))
}

const KIB_16: u32 = 16 << 10;
const KIB_32: u32 = 32 << 10;

/// (why, device, problem, queries and keys of a tile).
type Rows = Vec<(&'static str, Device, Problem, [u32; 2])>;

#[rustfmt::skip]
fn flash() -> Rows {
    let browser = || plain(KIB_16, 256);
    let large = || plain(KIB_32, 256);
    let long = |q_len| rows(q_len, 64, 64);
    vec![
        ("few rows: many keys", browser(), long(1), [8, 64]),
        ("few rows, still", browser(), long(8), [8, 64]),
        ("one more than 8", browser(), long(9), [16, 32]),
        ("up to 16", browser(), long(16), [16, 32]),
        ("one more than 16", browser(), long(17), [64, 32]),
        ("a full tile", browser(), long(64), [64, 32]),
        ("32:8 heads: 4 rows ride together", browser(), grouped(1, 64), [8, 64]),
        ("8 rows", browser(), grouped(2, 64), [8, 64]),
        ("16 rows", browser(), grouped(4, 64), [16, 32]),
        ("20 rows", browser(), grouped(5, 64), [64, 32]),
        ("packed sequences ride alone", browser(), rows(4, 64, 64).packed(2), [8, 64]),
        ("few long rows", browser(), rows(8, 128, 128), [8, 64]),
        ("few rows longer than 128", browser(), rows(4, 128, 129), [16, 64]),
        ("few rows longer than 256", browser(), rows(4, 128, 257), [8, 128]),
        ("9 long rows", large(), rows(9, 128, 128), [16, 64]),
        ("16 long rows", large(), rows(16, 128, 128), [16, 64]),
        ("16 rows, one more than 64", large(), rows(16, 64, 65), [16, 64]),
        ("it is the value dims", large(), rows(63, 576, 64), [64, 32]),
        ("one value dim", large(), rows(63, 1, 1), [64, 32]),
        ("64 value dims", large(), rows(63, 128, 64), [64, 32]),
        ("one more than 64", large(), rows(63, 64, 65), [64, 64]),
        ("128 value dims", large(), rows(63, 64, 128), [64, 64]),
        ("one more than 128", large(), rows(63, 64, 129), [16, 64]),
        ("256 value dims", large(), rows(63, 64, 256), [16, 64]),
        ("one more than 256", large(), rows(63, 64, 257), [8, 128]),
        ("latent attention", large(), rows(63, 576, 512), [8, 128]),
        ("the most value dims", large(), rows(63, 64, 2048), [8, 128]),
        ("dims 128 in 16 KiB: half the queries", browser(), rows(63, 128, 128), [32, 64]),
        ("dims 80 in 16 KiB", browser(), rows(63, 80, 80), [32, 64]),
        ("64 x 64 just fits", plain(21_520, 256), rows(63, 128, 128), [64, 64]),
        ("64 x 64 just does not", plain(21_519, 256), rows(63, 128, 128), [32, 64]),
        ("what is tested takes 32 bytes", plain(21_551, 256), rows(63, 128, 128).bias_shape(&[300]), [32, 64]),
        ("32 bytes more", plain(21_552, 256), rows(63, 128, 128).mask_shape(&[300]), [64, 64]),
        ("f16 without the type: as f32", plain(21_519, 256), f16(63, 128), [32, 64]),
        ("f16 with it: half of K and V", plain(21_008, 256).f16(), f16(63, 128), [64, 64]),
        ("f16: just not", plain(21_007, 256).f16(), f16(63, 128), [32, 64]),
        ("only K and V count", plain(21_008, 256).f16(), typed(rows(63, 128, 128), Element::F32, Element::F16), [64, 64]),
        ("f32 K and V", plain(21_008, 256).f16(), typed(rows(63, 128, 128), Element::F16, Element::F32), [32, 64]),
        ("32 x 64 just fits", plain(11_280, 256), rows(63, 128, 128), [32, 64]),
        ("32 x 64 just does not", plain(11_279, 256), rows(63, 128, 128), [16, 64]),
        ("64 x 32 just fits", plain(10_768, 256), long(63), [64, 32]),
        ("64 x 32 just does not", plain(10_767, 256), long(63), [32, 32]),
        ("32 x 32 just fits", plain(5648, 256), long(63), [32, 32]),
        ("32 x 32 just does not", plain(5647, 256), long(63), [16, 32]),
        ("16 x 64 just fits", plain(6160, 256), rows(63, 256, 256), [16, 64]),
        ("16 x 64 just does not", plain(6159, 256), rows(63, 128, 128), [16, 32]),
        ("8 x 128 just fits", plain(7184, 256), rows(63, 64, 257), [8, 128]),
        ("8 x 128 just does not", plain(7183, 256), rows(63, 64, 257), [16, 32]),
        ("8 x 64 just fits", plain(3600, 256), long(4), [8, 64]),
        ("8 x 64 just does not", plain(3599, 256), long(4), [16, 32]),
        ("16 x 32 just fits", plain(3088, 256), long(63), [16, 32]),
        ("16 x 32 just does not", plain(3087, 256), long(63), [8, 16]),
        ("8 x 16 just fits", plain(912, 256), long(63), [8, 16]),
        ("8 x 16 just does not", plain(911, 256), long(63), [4, 4]),
        ("64 x 64 takes 256 threads", plain(KIB_32, 255), rows(63, 128, 128), [32, 64]),
        ("32 x 64 takes 128", plain(KIB_32, 128), rows(63, 128, 128), [32, 64]),
        ("32 x 64: just not", plain(KIB_32, 127), rows(63, 128, 128), [16, 64]),
        ("64 x 32 takes 128", plain(KIB_16, 128), long(63), [64, 32]),
        ("64 x 32: just not", plain(KIB_16, 127), long(63), [32, 32]),
        ("32 x 32 takes 64", plain(KIB_16, 64), long(63), [32, 32]),
        ("32 x 32: just not", plain(KIB_16, 63), long(63), [16, 32]),
        ("8 x 64 takes 32", plain(KIB_16, 32), long(4), [8, 64]),
        ("8 x 64: just not", plain(KIB_16, 31), long(4), [8, 16]),
        ("8 x 16 takes 8", plain(KIB_16, 8), long(4), [8, 16]),
        ("one thread", plain(KIB_16, 1), long(63), [4, 4]),
        ("a cache is read the same way", large(), cached(CacheShape::new(2, 8, 99, 128), 17), [64, 64]),
        ("int8 lies there as f32", plain(21_519, 256).f16(), cached(CacheShape::new(2, 8, 99, 128).element(Element::Int8), 17), [32, 64]),
        ("subgroups change nothing here", large().features(Features::SUBGROUP, [32, 32]), rows(63, 128, 128), [64, 64]),
        // Where matrices do not serve.
        ("f32", matrix(KIB_32, 256, &[16], [32, 32]), rows(63, 64, 64), [64, 32]),
        ("bf16", matrix(KIB_32, 256, &[16], [32, 32]), typed(rows(63, 64, 64), Element::Bf16, Element::Bf16), [64, 32]),
        ("f16 Q only", matrix(KIB_32, 256, &[16], [32, 32]), typed(rows(63, 64, 64), Element::F16, Element::F32), [64, 32]),
        ("f16 K and V only", matrix(KIB_32, 256, &[16], [32, 32]), typed(rows(63, 64, 64), Element::F32, Element::F16), [64, 32]),
        ("f16, 16 rows", matrix(KIB_32, 256, &[16], [32, 32]), f16(16, 64), [16, 32]),
        ("f16, 32:8 heads, 16 rows", matrix(KIB_32, 256, &[8], [32, 32]), halves(grouped(4, 128)), [16, 64]),
        ("head dims 129", matrix(KIB_32, 256, &[16], [32, 32]), halves(rows(63, 129, 128)), [64, 64]),
        ("value dims 132", matrix(KIB_32, 256, &[16], [32, 32]), halves(rows(63, 128, 132)), [16, 64]),
        ("no sizes", matrix(KIB_32, 256, &[], [32, 32]), f16(63, 64), [64, 32]),
        ("other sizes", matrix(KIB_32, 256, &[32, 4], [32, 32]), f16(63, 64), [64, 32]),
        ("no matrices", matrix(KIB_32, 256, &[16], [32, 32]).features(MATRIX.difference(Features::EXPERIMENTAL_COOPERATIVE_MATRIX), [32, 32]), f16(63, 64), [64, 32]),
        ("no type f16", matrix(KIB_32, 256, &[16], [32, 32]).features(MATRIX.difference(Features::SHADER_F16), [32, 32]), f16(63, 64), [64, 32]),
        ("no subgroups", matrix(KIB_32, 256, &[16], [32, 32]).features(MATRIX.difference(Features::SUBGROUP), [32, 32]), f16(63, 64), [64, 32]),
        ("less than a lane a row", matrix(KIB_32, 256, &[16], [8, 8]), f16(63, 64), [64, 32]),
        ("the same, 8 rows", matrix(KIB_32, 256, &[8], [4, 4]), f16(63, 64), [64, 32]),
        ("more than 4 lanes a row", matrix(KIB_32, 1024, &[16], [128, 128]), f16(63, 64), [64, 32]),
        ("the same, 8 rows", matrix(KIB_32, 1024, &[8], [128, 128]), f16(63, 64), [64, 32]),
        ("no room for 32 x 16", matrix(14_127, 256, &[16], [32, 32]), f16(63, 128), [32, 64]),
        ("no threads for 32 x 16", matrix(KIB_32, 63, &[16], [32, 32]), f16(63, 128), [16, 32]),
    ]
}

#[rustfmt::skip]
fn matrices() -> Rows {
    let large = |size| matrix(KIB_32, 256, size, [32, 32]);
    let all = &[8, 16];
    vec![
        ("f16, 17 rows", large(&[16]), f16(17, 64), [64, 32]),
        ("f16, 17 rows, 8 x 8", large(&[8]), f16(17, 64), [64, 32]),
        ("either size", large(all), f16(63, 64), [64, 32]),
        ("32:8 heads, 20 rows", large(&[8]), halves(grouped(5, 128)), [64, 32]),
        ("dims 128", large(&[16]), f16(63, 128), [64, 32]),
        ("few dims", large(&[8]), f16(63, 2), [64, 32]),
        ("causal", large(&[8]), f16(300, 64).causal(), [64, 32]),
        ("a cache", large(&[16]), cached(CacheShape::new(2, 8, 99, 128).element(Element::F16), 5), [64, 32]),
        ("packed", large(&[16]), f16(40, 64).packed(3), [64, 32]),
        ("64 x 32 just fits", matrix(32_304, 256, &[16], [32, 32]), f16(63, 128), [64, 32]),
        ("64 x 32 just does not", matrix(32_303, 256, &[16], [32, 32]), f16(63, 128), [32, 16]),
        ("dims 64: just fits", matrix(23_088, 256, &[16], [32, 32]), f16(63, 64), [64, 32]),
        ("dims 64: just does not", matrix(23_087, 256, &[16], [32, 32]), f16(63, 64), [32, 16]),
        ("dims 2 are 8", matrix(15_408, 256, &[8], [32, 32]), f16(63, 2), [64, 32]),
        ("dims 2 are 8: just not", matrix(15_407, 256, &[8], [32, 32]), f16(63, 2), [32, 16]),
        ("dims 2 are 16: just not", matrix(16_431, 256, &[16], [32, 32]), f16(63, 2), [32, 16]),
        ("the larger size wins", matrix(16_431, 256, all, [32, 32]), f16(63, 2), [32, 16]),
        ("16 KiB", matrix(KIB_16, 256, &[16], [32, 32]), f16(63, 128), [32, 16]),
        ("32 x 16 just fits", matrix(14_128, 256, &[8], [32, 32]), f16(63, 128), [32, 16]),
        ("64 x 32 takes 128 threads", matrix(KIB_32, 128, &[16], [32, 32]), f16(63, 64), [64, 32]),
        ("just not", matrix(KIB_32, 127, &[16], [32, 32]), f16(63, 64), [32, 16]),
        ("32 x 16 takes 64", matrix(KIB_32, 64, &[16], [32, 32]), f16(63, 64), [32, 16]),
        ("64 lanes: 256 threads", matrix(KIB_32, 256, &[16], [64, 64]), f16(63, 64), [64, 32]),
        ("64 lanes: just not", matrix(KIB_32, 255, &[16], [64, 64]), f16(63, 64), [32, 16]),
        ("64 lanes, 8 x 8", matrix(KIB_32, 255, &[8], [64, 64]), f16(63, 64), [32, 16]),
        ("32 or 64 count as 64", matrix(KIB_32, 255, &[16], [32, 64]), f16(63, 64), [32, 16]),
        ("8 to 32 count as 32", matrix(KIB_32, 128, &[8], [8, 32]), f16(63, 64), [64, 32]),
        ("16 lanes, 16 x 16: 64 threads", matrix(KIB_32, 64, &[16], [16, 16]), f16(63, 64), [64, 32]),
        ("16 lanes, 8 x 8: 128", matrix(KIB_32, 127, &[8], [16, 16]), f16(63, 64), [32, 16]),
        ("8 lanes, 8 x 8: 64", matrix(KIB_32, 64, &[8], [8, 8]), f16(63, 64), [64, 32]),
    ]
}

#[rustfmt::skip]
fn staged() -> Rows {
    let browser = || plain(KIB_16, 256);
    vec![
        ("scores are stored", browser(), rows(63, 64, 64).scores(), [32, 32]),
        ("weights", browser(), rows(1, 256, 256).weights(), [32, 32]),
        ("matrices change nothing", matrix(KIB_32, 256, &[16], [32, 32]), f16(63, 64).weights(), [32, 32]),
    ]
}

/// By hand: what a lane holds.
#[rustfmt::skip]
fn lanes() -> Vec<(&'static str, Device, Problem, Method, [u32; 2])> {
    use Method::{Broadcast, Decode};
    let lanes = |lanes| plain(KIB_16, 256).features(Features::SUBGROUP, [lanes, lanes]);
    let paged = || cached(CacheShape::new(2, 8, 99, 64).paged(16, 20), 17);
    let one = |dim| rows(9, dim, dim);
    vec![
        ("4 lanes", lanes(4), one(64), Broadcast, [4, 16]),
        ("8 lanes", lanes(8), one(64), Broadcast, [8, 16]),
        ("16 lanes", lanes(16), one(64), Broadcast, [16, 16]),
        ("64 lanes", lanes(64), one(64), Broadcast, [64, 16]),
        ("128 lanes", lanes(128), one(64), Broadcast, [128, 16]),
        ("pages: a key a lane", lanes(4), paged(), Broadcast, [4, 4]),
        ("pages, 8 lanes", lanes(8), paged(), Broadcast, [8, 8]),
        ("pages, 16 lanes", lanes(16), paged(), Broadcast, [16, 16]),
        ("pages, 32 lanes", lanes(32), paged(), Broadcast, [32, 16]),
        ("1 row", plain(KIB_16, 256), rows(1, 64, 64), Decode, [1, 128]),
        ("3 rows", plain(KIB_16, 256), rows(3, 64, 64), Decode, [4, 128]),
        ("at most 4", plain(KIB_16, 256), one(64), Decode, [4, 128]),
        ("160 quads of Q and O", plain(KIB_16, 256), one(80), Decode, [4, 128]),
        ("162", plain(KIB_16, 256), rows(9, 80, 84), Decode, [2, 128]),
        ("2 rows of 80", plain(KIB_16, 256), one(160), Decode, [2, 128]),
        ("of 82", plain(KIB_16, 256), one(164), Decode, [1, 128]),
        ("longer ones", plain(KIB_16, 256), one(576), Decode, [1, 128]),
        ("no more threads than there are", plain(KIB_16, 16), one(64), Decode, [4, 64]),
    ]
}

/// Bytes of the workgroup: 8 KiB a wave of 64 threads are filled with dims and keys.
#[test]
fn memory_of_a_wave() {
    let device = |kib: u32| plain(kib << 10, 1024);
    let table = [
        ("64 x 32: 16 KiB, 8 quads of 16", device(64), rows(63, 64, 64), 14_864),
        ("no more if there is more", device(16), rows(63, 64, 64), 14_864),
        ("64 x 64: 32 KiB, 11 quads of 32", device(64), rows(63, 128, 128), 31_760),
        ("32 x 64: all of 16 KiB, 5 quads of 32", device(16), rows(63, 128, 128), 15_376),
        ("16 x 32: 8 KiB, 8 quads of 16", device(64), rows(16, 64, 64), 7184),
        ("16 x 64: 8 KiB, 4 keys of V", device(64), rows(16, 128, 128), 7184),
        ("8 x 64: 8 KiB, 4 quads of 16", device(64), rows(4, 64, 64), 7696),
        ("f16: an even number of quads, 8 of 32", device(16).f16(), f16(63, 128), 14_864),
    ];
    for (why, device, problem, want) in table {
        let plan = device.pretend().attention.plan(&problem).expect("a plan");
        assert_eq!(plan.describe().dispatches[0].workgroup_bytes, want, "{why}");
    }
}

#[test]
fn the_choice_is_the_one_the_tables_say() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut check = |why, device: &Device, problem: &Problem, by_hand: Option<Method>, want| {
        let choice = by_hand.map_or(Choice::default(), Choice::method);
        let plan = device.pretend().attention.plan_with(problem, choice);
        let got = plan.map(|plan| (plan.method(), plan.describe().tile));
        count += 1;
        if got != Ok(want) {
            wrong.push(format!("{why}: {got:?}, not {want:?}"));
        }
    };
    let tables =
        [(Method::Flash, flash()), (Method::Matrix, matrices()), (Method::Staged, staged())];
    for (method, table) in tables {
        for (why, device, problem, [queries, keys]) in table {
            check(why, &device, &problem, None, (method, Tile { queries, keys }));
        }
    }
    for (why, device, problem, method, [queries, keys]) in lanes() {
        check(why, &device, &problem, Some(method), (method, Tile { queries, keys }));
    }
    println!("{count} rows");
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 60);
}
