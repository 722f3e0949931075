//! Layouts that a GPU buffer cannot have, since its words are of 32 bits: a plan refuses them, and the
//! host call lays the operand out anew.

use wgpu_attention::half::f16;
use wgpu_attention::{
    BiasLayout, Element, Error, Group, Inputs, Layout, MultiHead, Operand, Problem, Shape, cpu,
};

use super::{assert_same, good, gpu};
use crate::support::{max_error, normal};

const SHAPE: Shape = Shape { q_len: 5, ..Shape::self_attention(2, 4, 7, 8) };

#[test]
fn odd_halves_and_masks_off_words() {
    let shape = Shape { value_dim: 7, ..SHAPE };
    let halves =
        |n: usize, seed| normal(n, seed).into_iter().map(f16::from_f32).collect::<Vec<_>>();
    let (q, k, v) = (halves(320, 1), halves(448, 2), halves(392, 3));
    let planner = gpu().planner().clone();
    let f16s = Problem::new(shape).element(Group::Queries, Element::F16);
    let f16s = f16s.element(Group::Keys, Element::F16);
    let even = Layout { offset: 0, batch: 200, head: 40, token: 8 };
    let need = "even strides and offset for 16-bit output in a GPU buffer";
    for (at, odd) in [
        (None, 35),
        (Some(even.at(3)), 3),
        (Some(Layout { token: 7, ..even }), 7),
        (Some(Layout { head: 41, ..even }), 41),
        (Some(Layout { batch: 201, ..even }), 201),
    ] {
        let problem = at.map_or(f16s.clone(), |at| f16s.clone().layout(Operand::O, at));
        let name = format!("o at {at:?}");
        let want = Error::Stride { operand: Operand::O, need, got: odd };
        let got = planner.plan(&problem).expect_err(&name);
        assert_same(&name, &got, &want);
        // Other operands may be odd, and so may 32-bit output.
        planner.plan(&problem.clone().element(Group::Queries, Element::F32)).expect(&name);
        let inputs = Inputs::new(&q, &k, &v);
        let want = cpu::attention(&problem, inputs).expect(&name).o;
        let got = gpu().attention(&problem, inputs).expect(&name).o;
        let [got, want] = [got, want].map(|o| o.iter().map(|x| x.to_f32()).collect::<Vec<_>>());
        assert!(max_error(&got, &want) < 2e-3, "{name}");
    }
    planner.plan(&f16s.layout(Operand::O, even.at(2))).expect("even");

    let need = "strides of whole words of 32 keys in a GPU buffer";
    let words = BiasLayout { offset: 32, batch: 0, head: 640, query: 64, key: 1 };
    let (q, k, v) = (normal(320, 4), normal(448, 5), normal(392, 6));
    let may: Vec<bool> = (0..4000).map(|at| at % 3 != 0).collect();
    for (at, off) in [
        (BiasLayout { offset: 31, ..words }, 31),
        (BiasLayout { batch: 1, ..words }, 1),
        (BiasLayout { head: 650, ..words }, 650),
        (BiasLayout { query: 7, ..words }, 7),
        (BiasLayout { query: 16, key: 0, ..words }, 16),
    ] {
        let problem = Problem::new(shape).mask(at);
        let want = Error::Stride { operand: Operand::Mask, need, got: off };
        assert_same("mask", &planner.plan(&problem).expect_err("off words"), &want);
        let layer = MultiHead::new(6, problem.clone()).context(6);
        assert_same("layer", &planner.plan_multi_head(&layer).expect_err("off words"), &want);
        let inputs = Inputs::new(&q, &k, &v).mask(&may);
        let want = cpu::attention(&problem, inputs).expect("bools");
        let got = gpu().attention(&problem, inputs).expect("bools");
        assert!(max_error(&got.o, &want.o) < 1e-5, "{at:?}");
    }
    planner.plan(&Problem::new(shape).mask(words)).expect("words");
    good(&gpu());
}
