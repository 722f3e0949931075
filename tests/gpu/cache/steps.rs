//! Decoding: everything is made once, then each step is one extend, one recording, one submit.

use wgpu_attention::{CacheShape, Inputs, Pairing, Pool, Problem, Rotary, Shape, cpu};

use super::both::{Both, Setup};
use crate::program::{Program, USAGE};
use crate::support::{max_error, normal};

const STEPS: u32 = 1_000;
const PAGE: u32 = 16;
const DIM: u32 = 16;
/// Of Q and of K.
const HEADS: [u32; 2] = [32, 8];

/// `[head, token, dim]` from `[token, head, dim]`.
fn head_major(rows: &[f32], heads: u32) -> Vec<f32> {
    let row = |token: u32, head: u32| ((token * heads + head) * DIM) as usize;
    let each = (0..heads).flat_map(|head| (0..STEPS).map(move |token| row(token, head)));
    each.flat_map(|at| rows[at..at + DIM as usize].to_vec()).collect()
}

/// Halves of each row of `[token, head, dim]`, turned by token * 10000^(-p / pairs).
fn turned(rows: &[f32], heads: u32) -> Vec<f32> {
    let pairs = DIM as usize / 2;
    let mut out = rows.to_vec();
    for (at, row) in out.chunks_mut(DIM as usize).enumerate() {
        let token = (at as u32 / heads) as f64;
        for p in 0..pairs {
            let (sine, cosine) = (token * 10_000f64.powf(-(p as f64) / pairs as f64)).sin_cos();
            let [x, y] = [row[p], row[p + pairs]].map(f64::from);
            row[p] = (x * cosine - y * sine) as f32;
            row[p + pairs] = (y * cosine + x * sine) as f32;
        }
    }
    out
}

/// 1,000 tokens one at a time equal one causal call over all of them. Only what was bound before is
/// recorded, and `extend` writes to the device only where a page begins: elsewhere it is given the
/// queue of another device, which would complain.
#[test]
fn a_thousand_steps() {
    thousand_steps(Pool::Texture);
}

#[test]
#[ignore = "exhaustive"]
fn exhaustive_a_thousand_steps_in_a_buffer() {
    thousand_steps(Pool::Buffer);
}

fn thousand_steps(pool: Pool) {
    let program = Program::shared();
    let other = program.neighbour(wgpu::Limits::default());
    let [q_heads, kv_heads] = HEADS;
    let shape = CacheShape::new(1, kv_heads, STEPS, DIM).paged(PAGE, STEPS.div_ceil(PAGE));
    let rotary = Some(Rotary::new(DIM / 2, STEPS, Pairing::Halves));
    let setup = Setup { rotary, ..Setup::new(shape.pool(pool), q_heads, 1) };
    let mut both = Both::new(program, &program.attention, &setup);
    let [rows_q, rows_k] = HEADS.map(|heads| heads * DIM);
    let q = normal((STEPS * rows_q) as usize, 1);
    let [k, v] = [2, 3].map(|seed| normal((STEPS * rows_k) as usize, seed));
    let row_bytes = u64::from(4 * rows_q);
    let all = program.empty(row_bytes * u64::from(STEPS), USAGE);
    let mut written = 0;
    for step in 0..STEPS {
        let begins = step % PAGE == 0;
        written += u32::from(begins);
        let queue = if begins { &program.queue } else { &other.queue };
        both.cache.extend(queue, &[1]).expect("room");
        for (buffer, (rows, size)) in
            both.new.iter().zip([(&q, rows_q), (&k, rows_k), (&v, rows_k)])
        {
            let row = &rows[(step * size) as usize..][..size as usize];
            program.queue.write_buffer(buffer, 0, bytemuck::cast_slice(row));
        }
        program.submit(|encoder| {
            both.record(encoder);
            let at = row_bytes * u64::from(step);
            encoder.copy_buffer_to_buffer(&both.outputs[0], 0, &all, at, row_bytes);
        });
    }
    assert_eq!((written, both.cache.free_pages()), (STEPS.div_ceil(PAGE), 0));
    assert_eq!(other.uncaptured(), Vec::<String>::new());
    let whole = Shape::self_attention(1, q_heads, STEPS, DIM).kv_heads(kv_heads);
    let (q, k) = (turned(&q, q_heads), turned(&k, kv_heads));
    let [q, k, v] = [(&q, q_heads), (&k, kv_heads), (&v, kv_heads)]
        .map(|(rows, heads)| head_major(rows, heads));
    let want = cpu::attention(&Problem::new(whole).causal(), Inputs::new(&q, &k, &v));
    let got = head_major(&program.read(&all), q_heads);
    let error = max_error(&got, &want.expect("the definition").o);
    assert!(error <= 1e-5, "{pool:?}: {error:e}");

    // The other queue does complain where there is something to write.
    both.cache.set_len(&other.queue, 0, 0).expect("freed");
    assert_eq!(other.uncaptured().len(), 2, "length and limit");
}

/// Eleven steps in one submit, over page ends, after a prefix that is shared up to the middle of a
/// page: each step's output is that of its own length.
#[test]
fn many_steps_in_one_submit() {
    let program = Program::shared();
    for pool in [Pool::Buffer, Pool::Texture] {
        let shape = CacheShape::new(3, 2, 30, 8).pool(pool).paged(4, 20);
        let rotary = Some(Rotary::new(3, 30, Pairing::Adjacent));
        let setup = Setup { rotary, ..Setup::new(shape, 4, 1) };
        let mut both = Both::new(program, &program.attention, &setup);
        for _ in 0..6 {
            both.step(&[1, 0, 0]).expect("room");
        }
        both.share(0, 1, 6).expect("an empty sequence");
        both.share(0, 2, 5).expect("an empty sequence");
        let counts = [1, 1, 1];
        let steps: Vec<_> = (0..11).map(|_| both.fresh()).collect();
        for _ in &steps {
            both.cache.extend(&program.queue, &counts).expect("room");
        }
        let bytes = both.outputs[0].size();
        let all = program.empty(bytes * steps.len() as u64, USAGE);
        let sources: Vec<_> =
            steps.iter().map(|new| new.each_ref().map(|rows| program.buffer(rows))).collect();
        program.submit(|encoder| {
            for (at, source) in (0u64..).zip(&sources) {
                for (from, to) in source.iter().zip(&both.new) {
                    encoder.copy_buffer_to_buffer(from, 0, to, 0, from.size());
                }
                both.record(encoder);
                encoder.copy_buffer_to_buffer(&both.outputs[0], 0, &all, at * bytes, bytes);
            }
        });
        let got = program.read(&all);
        for (step, (new, got)) in steps.iter().zip(got.chunks(bytes as usize / 4)).enumerate() {
            both.step_twin(&counts, new);
            let error = max_error(got, &both.want(both.twin.lens()).o);
            assert!(error <= 4e-6, "{pool:?}, step {step}: {error:e}");
        }
        let (rows, lens) = both.rows_error(&program.attention);
        assert_eq!(lens, [17, 17, 16]);
        assert!(rows <= 1e-6, "{rows:e}");
        both.conserved();
    }
}
