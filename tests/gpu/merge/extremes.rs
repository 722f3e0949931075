//! LSE near the ends of f32, sinks far from them, and rows without keys.

use wgpu_attention::{Merge, cpu};

use super::{Tensors, check, off, run, shape};
use crate::program::Program;

const EMPTY: f32 = f32::NEG_INFINITY;

#[test]
fn no_lse_is_too_large() {
    let program = Program::shared();
    let cases = [
        [3e38, 3e38, 3e38],
        [-3e38, -3e38, -3e38],
        [3e38, -3e38, 0.0],
        [-3e38, EMPTY, 3e38],
        [-3e38, EMPTY, EMPTY],
        [EMPTY, EMPTY, 3e38],
        [1e30, 1e30, -1e30],
        [-87.0, -90.0, -1000.0],
        [EMPTY, EMPTY, EMPTY],
        [f32::MIN, EMPTY, f32::MIN],
        [100.0, 100.0 + 1e-5, 12.0],
    ];
    for (seed, parts_lse) in (1..).zip(cases) {
        for sink in [None, Some(0.0), Some(3e38), Some(-3e38), Some(1e30), Some(EMPTY)] {
            let merge = Merge::new(shape(1, 1, 1, 6), 3);
            let merge = if sink.is_some() { merge.sinks() } else { merge };
            let tensors = Tensors::<f32>::new(&merge, false, seed);
            let sinks = sink.map(|sink| vec![sink]);
            let tensors = Tensors { parts_lse: parts_lse.to_vec(), sinks, ..tensors };
            check(program, &merge, &tensors);
            let (o, lse) = run(program, &program.attention, &merge, &tensors);
            assert!(o.iter().all(|x| x.is_finite()) && !lse[0].is_nan(), "{parts_lse:?} {sink:?}");
            let empty = parts_lse == [EMPTY; 3];
            assert_eq!(lse[0] == EMPTY, empty, "{parts_lse:?} {sink:?}");
            assert!(!empty || o == [0.0; 6]);
        }
    }
}

/// The mean of large numbers is no larger than they are.
#[test]
fn large_values_do_not_overflow() {
    let program = Program::shared();
    let merge = Merge::new(shape(1, 1, 1, 4), 7);
    let parts = [3e38, -3e38, 3.4e38, 1e-30].repeat(7);
    let tensors = Tensors { parts, parts_lse: vec![5.0; 7], held: None, sinks: None };
    let (o, _) = run(program, &program.attention, &merge, &tensors);
    for (got, want) in o.iter().zip([3e38, -3e38, 3.4e38, 1e-30]) {
        assert!((got / want - 1.0).abs() < 2e-6, "{got:e}, not {want:e}");
    }
}

/// NaN in a part that has keys comes out in its row and component, and nowhere else.
#[test]
fn visible_nan_stays_in_its_row() {
    let program = Program::shared();
    let merge = Merge::new(shape(1, 1, 3, 4), 2);
    let mut tensors = Tensors::<f32>::new(&merge, false, 3);
    tensors.parts_lse = vec![0.5; 6];
    let clean = run(program, &program.attention, &merge, &tensors);
    tensors.parts[5] = f32::NAN;
    let mut got = run(program, &program.attention, &merge, &tensors);
    let want = cpu::merge(&merge, tensors.inputs()).expect("cpu").o;
    assert!(want[5].is_nan() && want.iter().filter(|x| x.is_nan()).count() == 1);
    got.0[4..8].copy_from_slice(&clean.0[4..8]);
    assert_eq!(off(&got, &clean), 0.0);
}
