//! Lengths and counts that the device has from elsewhere, and what else a cached problem may have.

use wgpu_attention::{
    Band, Buffers, CacheShape, Element, Inputs, LoopLimit, Operand, Pool, Problem, cpu,
};

use super::both::{Both, Setup};
use crate::checks::FLASH;
use crate::program::{Program, USAGE};
use crate::support::{max_error, normal};

/// Lengths of `words`, then counts.
fn write(both: &Both<'_>, at: u64, values: &[u32]) {
    both.program.queue.write_buffer(both.cache.words(), 4 * at, bytemuck::cast_slice(values));
}

fn each(mut test: impl FnMut(&mut Both<'_>, &str)) {
    let program = Program::shared();
    let plain = CacheShape::new(3, 2, 20, 6).value_dim(5);
    for shape in [plain, plain.paged(4, 15), plain.paged(4, 15).element(Element::Int8)] {
        for pool in [Pool::Buffer, Pool::Texture] {
            let shape = shape.pool(pool);
            let mut both = Both::new(program, &program.attention, &Setup::new(shape, 4, 5));
            test(&mut both, &format!("{shape:?}"));
        }
    }
}

/// Shorter lengths than the host knows: attention reads so many rows and no more, whatever lies
/// past them; the host's next change puts them right.
#[test]
fn shorter() {
    each(|both, name| {
        both.step(&[5, 4, 3]).expect("room");
        write(both, 0, &[2, 0, 3]);
        both.program.submit(|encoder| both.bound.encode_in(encoder));
        let [o, lse] = both.errors_at(&[2, 0, 3]);
        let most = if both.cache.shape().element == Element::Int8 { 0.02 } else { 4e-6 };
        assert!(o <= most && lse <= most, "{name}: {o:e} {lse:e}");
        let (k, v) = (both.twin.k().to_vec(), both.twin.v().to_vec());
        let [got_k, _] = both.rows(&both.program.attention);
        assert_eq!(got_k[2 * 6..5 * 6], [0.0; 18], "{name}");
        both.cache.set_len(&both.program.queue, 0, 5).expect("its pages");
        both.cache.set_len(&both.program.queue, 1, 4).expect("its pages");
        let rows = both.rows(&both.program.attention);
        let error = max_error(&rows[0], &k).max(max_error(&rows[1], &v));
        assert!(error <= 0.04, "{name}: {error}");
    });
}

/// Lengths past the pages count as that many tokens; nothing crashes and nothing else is written.
#[test]
fn longer_than_there_are_pages() {
    each(|both, name| {
        both.step(&[5, 4, 3]).expect("room");
        both.step(&[0; 3]).expect("no tokens");
        let before = both.rows(&both.program.attention);
        for huge in [21, 1 << 20, 1 << 31, u32::MAX - 1, u32::MAX] {
            write(both, 0, &[huge, 4, huge]);
            // Attention: sequence 1 is right, the others finite.
            both.program.submit(|encoder| both.bound.encode_in(encoder));
            let want = both.want(&[5, 4, 3]).o;
            let got = both.output();
            let third = got.len() / 3;
            let most = if both.cache.shape().element == Element::Int8 { 0.02 } else { 4e-6 };
            let middle = third..2 * third;
            let error = max_error(&got[middle.clone()], &want[middle]);
            assert!(error <= most, "{name} {huge}: {error:e}");
            assert!(got.iter().all(|x| x.is_finite()), "{name} {huge}");
            // An append of as much as it takes writes nothing past the limits.
            write(both, 3, &[u32::MAX, 0, u32::MAX]);
            both.program.submit(|encoder| both.record(encoder));
            let words = both.program.read(both.cache.words());
            let lens: Vec<_> = words[..3].iter().map(|x| x.to_bits()).collect();
            let limits: Vec<_> = words[6..9].iter().map(|x| x.to_bits()).collect();
            assert_eq!(lens, [limits[0], 4, limits[2]], "{name} {huge}");
            write(both, 0, &[5, 4, 3]);
            write(both, 3, &[0, 0, 0]);
            assert!(both.rows(&both.program.attention) == before, "{name} {huge}");
        }
    });
}

/// Counts of the device's own, within and past what was reserved; the host takes them over.
#[test]
fn counts_of_the_devices_own() {
    each(|both, name| {
        both.step(&[5, 4, 3]).expect("room");
        both.step(&[0; 3]).expect("no tokens");
        let queue = &both.program.queue;
        for sequence in 0..3 {
            both.cache.reserve(queue, sequence, 8).expect("pages");
        }
        let paged = both.cache.shape().paging.is_some();
        write(both, 3, &[3, u32::MAX, 1]);
        let new = both.fresh();
        for (buffer, rows) in both.new.iter().zip(&new) {
            queue.write_buffer(buffer, 0, bytemuck::cast_slice(rows));
        }
        both.program.submit(|encoder| both.record(encoder));
        // No more than the append has, no more than there are pages.
        let second = if paged { 4 } else { 5 };
        both.step_twin(&[3, second, 1], &new);
        let (rows, lens) = both.rows_error(&both.program.attention);
        assert_eq!(lens, [8, 4 + second, 4], "{name}");
        let int8 = both.cache.shape().element == Element::Int8;
        assert!(rows <= if int8 { 0.04 } else { 1e-6 }, "{name}: {rows}");
        let [o, lse] = both.errors();
        assert!(o.max(lse) <= if int8 { 0.02 } else { 4e-6 }, "{name}: {o:e} {lse:e}");
        for (sequence, len) in (0..3).zip(lens) {
            both.cache.set_len(queue, sequence, len).expect("its pages");
        }
        // The host's counts are not what the device has: other ones are written.
        both.step(&[1, 1, 0]).expect("room");
        assert!(both.errors()[0] <= if int8 { 0.02 } else { 4e-6 }, "{name}");
    });
}

/// Bias, mask, lengths, slopes, sinks, softcap and a window over a cache, in one piece and with
/// split keys.
#[test]
fn everything_else_of_a_problem() {
    everything_else(3);
}

/// One in so many of them by each cache, all at once by all.
pub fn everything_else(step: usize) {
    let program = Program::shared();
    let few = LoopLimit::Iterations(480);
    let split = program.attention.clone().with_loop_limit(few);
    let plain = CacheShape::new(3, 2, 150, 6).value_dim(5).pool(Pool::Texture);
    type Change = fn(Problem) -> Problem;
    let changes: [(&str, Change); 9] = [
        ("bias", |p| p.bias_shape(&[3, 1, 5, 150])),
        ("mask", |p| p.mask_shape(&[4, 5, 150])),
        ("q_lens", Problem::q_lens),
        ("kv_lens", Problem::kv_lens),
        ("alibi", Problem::alibi),
        ("sinks", Problem::sinks),
        ("softcap", |p| p.softcap(1.5)),
        ("window", |p| p.band(Band { left: Some(7), right: Some(0) })),
        ("all", |p| {
            let p = p.bias_shape(&[3, 1, 5, 150]).mask_shape(&[4, 5, 150]).q_lens().kv_lens();
            p.alibi().sinks().softcap(1.5).band(Band { left: Some(70), right: Some(1) })
        }),
    ];
    let bias = normal(3 * 5 * 150, 31);
    let mask: Vec<bool> = normal(4 * 5 * 150, 32).iter().map(|&x| x > -0.7).collect();
    let bits: Vec<f32> = mask
        .chunks(150)
        .flat_map(|row| {
            row.chunks(32).map(|keys| {
                let word = keys.iter().enumerate().map(|(at, &may)| u32::from(may) << at).sum();
                f32::from_bits(word)
            })
        })
        .collect();
    let (slopes, sinks) = ([0.5f32, 0.25, 0.1, 0.0], [0.3f32, -1.0, 2.0, 0.0]);
    let (q_lens, kv_lens) = ([5u32, 2, 0], [60u32, 4_000_000_000, 0]);
    let caches = [
        (&program.attention, plain),
        (&program.attention, plain.paged(16, 30)),
        (&split, plain.paged(16, 30)),
        (&split, plain.pool(Pool::Buffer)),
    ];
    for (number, (attention, shape)) in caches.into_iter().enumerate() {
        let mut both = Both::new(program, attention, &Setup::new(shape, 4, 5));
        for _ in 0..17 {
            both.step(&[5, 4, 1]).expect("room");
        }
        let lens = both.twin.lens().to_vec();
        let some =
            |(at, (name, _)): &(usize, (&str, Change))| *name == "all" || (at + number) % step == 0;
        for (_, (name, change)) in changes.into_iter().enumerate().filter(some) {
            let problem = change(both.problem.clone());
            let has = |operand| problem.table(operand);
            // Lanes would not pass the limit that early.
            let limited = std::ptr::eq(attention, &split);
            let tiled = if limited { FLASH } else { Default::default() };
            let plan = attention.plan_with(&problem, tiled).expect(name);
            let empty = |operand| program.empty(problem.bytes(operand).max(4), USAGE);
            let [o, lse, tables] = [Operand::O, Operand::Lse, Operand::Tables].map(empty);
            let scratch = program.empty(plan.scratch_bytes().max(4), USAGE);
            let words: [(Operand, &[u8]); 4] = [
                (Operand::QLens, bytemuck::cast_slice(&q_lens)),
                (Operand::KvLens, bytemuck::cast_slice(&kv_lens)),
                (Operand::Slopes, bytemuck::cast_slice(&slopes)),
                (Operand::Sinks, bytemuck::cast_slice(&sinks)),
            ];
            for (operand, values) in words {
                if let Some(place) = has(operand) {
                    program.queue.write_buffer(&tables, 4 * place.start, values);
                }
            }
            let (bias_in, mask_in) = (program.buffer(&bias), program.buffer(&bits));
            let mut given = Buffers::cached(&both.new[0], &both.cache, &o);
            given = given.with(Operand::Lse, &lse).with(Operand::Scratch, &scratch);
            let all = name == "all";
            if all || ["q_lens", "kv_lens", "alibi", "sinks"].contains(&name) {
                given = given.with(Operand::Tables, &tables);
            }
            let (with_bias, with_mask) = (all || name == "bias", all || name == "mask");
            if with_bias {
                given = given.with(Operand::Bias, &bias_in);
            }
            if with_mask {
                given = given.with(Operand::Mask, &mask_in);
            }
            let bound = plan.bind(given).expect(name);
            program.submit(|encoder| bound.encode_in(encoder));

            let keys: Vec<u32> = match has(Operand::KvLens) {
                Some(_) => lens.iter().zip(kv_lens).map(|(&a, b)| a.min(b)).collect(),
                None => lens.clone(),
            };
            let mut inputs =
                Inputs::<f32>::new(&both.q, both.twin.k(), both.twin.v()).kv_lens(&keys);
            let extras = &mut inputs.extras;
            extras.bias = with_bias.then_some(&bias);
            extras.mask = with_mask.then_some(&mask);
            extras.q_lens = has(Operand::QLens).map(|_| &q_lens[..]);
            extras.slopes = has(Operand::Slopes).map(|_| &slopes[..]);
            extras.sinks = has(Operand::Sinks).map(|_| &sinks[..]);
            let want = cpu::attention(&both.twin.problem(&problem), inputs).expect(name);
            let error = max_error(&program.read(&o), &want.o);
            let lse = max_error(&program.read(&lse), want.lse.as_deref().expect("wanted"));
            let splits = plan.describe().split_keys;
            assert!(splits.is_some() || !std::ptr::eq(attention, &split), "{name}: no split");
            assert!(
                error <= 1e-5 && lse <= 1e-5,
                "{name}, {splits:?}, {shape:?}: {error:e} {lse:e}"
            );
        }
    }
}
