//! Caches whose values are near the largest number: their mean is finite.

use wgpu_attention::{CacheShape, Choice, Element, Error, Method};

use super::both::{Both, Setup};
use super::{BROADCAST, possible};
use crate::checks::FLASH;
use crate::program::Program;

const TOKENS: usize = 64;
const DIM: usize = 8;

/// Three columns of one number, and one that changes its sign.
fn value(at: usize, most: f32) -> f32 {
    let (token, dim) = (at / DIM, at % DIM);
    let sign = if dim % 4 == 1 || (dim % 4 == 2 && token % 2 == 0) { -1.0 } else { 1.0 };
    sign * if dim % 4 == 3 { 0.02 * most } else { most }
}

#[test]
fn means_of_large_values() {
    large_values(2, 12);
}

/// One in so many of all combinations, of which so many at least must run.
pub fn large_values(step: usize, least: usize) {
    let program = Program::with_subgroups();
    let plain = CacheShape::new(1, 1, TOKENS as u32, DIM as u32);
    let (mut ran, mut wrong) = (0, Vec::new());
    let staged = Choice::method(Method::Staged);
    let elements = [
        (Element::Int8, 3e38),
        (Element::Int8, f32::MAX),
        (Element::Bf16, 3.3e38),
        (Element::F32, f32::MAX),
    ];
    let choices = [FLASH, Choice::method(Method::Decode), BROADCAST, staged];
    for (number, (element, most)) in elements.into_iter().enumerate() {
        for shape in [plain, plain.paged(5, 20)] {
            let setup = Setup::new(shape.element(element), 2, TOKENS as u32);
            for choice in choices.into_iter().skip(number % step).step_by(step) {
                for attention in [&program.attention, &program.split] {
                    let plan = attention.plan_with(&setup.problem(), choice);
                    let plan = match plan {
                        // What looks up pages, or stages, is not split so far.
                        Err(Error::Limit { what: "loop iterations of one invocation", .. }) => None,
                        plan => possible(program, plan),
                    };
                    let Some(plan) = plan else { continue };
                    ran += 1;
                    let mut both = Both::with_plan(program, attention, &setup, &plan);
                    both.cache.extend(&program.queue, &[TOKENS as u32]).expect("room");
                    let mut new = both.fresh();
                    new[2].iter_mut().enumerate().for_each(|(at, v)| *v = value(at, most));
                    for (buffer, row) in both.new.iter().zip(&new) {
                        let row: &[u8] = bytemuck::cast_slice(row);
                        program.queue.write_buffer(buffer, 0, row);
                    }
                    program.submit(|encoder| both.record(encoder));
                    both.step_twin(&[TOKENS as u32], &new);
                    let want = both.want(&[TOKENS as u32]);
                    let paged = shape.paging.is_some();
                    let name = format!("{element:?} of {most:e}, paged {paged}, {choice}");
                    for (got, want) in both.output().iter().zip(&want.o) {
                        let far = (f64::from(*got) - f64::from(*want)).abs() / f64::from(most);
                        if !got.is_finite() || far >= 0.02 {
                            wrong.push(format!("{name}: {got:e}, not {want:e}"));
                            break;
                        }
                    }
                }
            }
        }
    }
    println!("{ran} of {} ran", 64 / step);
    assert!(ran >= least, "{ran} ran");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
