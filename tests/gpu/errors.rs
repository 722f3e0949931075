//! Every mistake is a value that names the operand, what was needed and what was given, and the
//! next right call on the same objects works. wgpu's own handler never hears of it.

mod buffers;
mod device;
mod extras;
mod problem;
mod slices;
mod tables;
mod words;

use wgpu_attention::{Choice, Error, Gpu, Inputs, Operand, Problem, Shape};

use crate::program::{Program, Reference, USAGE};
use crate::support::{Data, max_error};

/// Host calls on the shared program's device, so that its handler watches them.
pub fn gpu() -> Gpu {
    let program = Program::shared();
    Gpu::from_device(program.device.clone(), program.queue.clone())
        .with_attention(program.attention.clone())
}

/// The next right call.
pub fn good(gpu: &Gpu) {
    let problem = Problem::new(Shape::self_attention(1, 2, 9, 4));
    let data = Data::new(&problem, 1);
    let reference = Reference::new(&problem, data.inputs()).expect("a right call");
    let got = gpu.attention(&problem, data.inputs()).expect("a right call");
    assert!(max_error(&got.o, &reference.want.o) <= reference.tolerance(Operand::O));
}

/// The same text of the same error; NaN in it does not matter.
pub fn assert_same(name: &str, got: &Error, want: &Error) {
    assert_eq!(format!("{got:?}"), format!("{want:?}"), "{name}");
    let text = got.to_string();
    let words = match got {
        Error::Size { what, need, got } => {
            vec![what.to_string(), need.to_string(), got.to_string()]
        }
        Error::HeadGroups { q_heads, kv_heads } => {
            vec!["q_heads".into(), kv_heads.to_string(), q_heads.to_string()]
        }
        Error::Align { q_len, kv_len } => {
            vec!["align".into(), q_len.to_string(), kv_len.to_string()]
        }
        Error::Value { what, need, got } => {
            vec![what.to_string(), need.to_string(), got.to_string()]
        }
        Error::Element { operand, need, got } => {
            vec![operand.to_string(), need.to_string(), format!("{got:?}")]
        }
        Error::Stride { operand, need, got } => {
            vec![operand.to_string(), need.to_string(), got.to_string()]
        }
        Error::Broadcast { operand, need, got } => {
            vec![operand.to_string(), format!("{need:?}"), format!("{got:?}")]
        }
        Error::Length { operand, need, got } => {
            vec![operand.to_string(), need.to_string(), got.to_string()]
        }
        Error::Missing { operand } => vec![operand.to_string(), "not given".into()],
        Error::Unexpected { operand } => vec![operand.to_string(), "given".into()],
        Error::Usage { operand, need, got } => {
            vec![operand.to_string(), format!("{need:?}"), format!("{got:?}")]
        }
        Error::Overlap { operand, other, need } => {
            vec![operand.to_string(), other.to_string(), need.to_string()]
        }
        Error::Limit { what, need, got } => {
            vec![what.to_string(), need.to_string(), got.to_string()]
        }
        Error::Full { what, need, got } => {
            vec![what.to_string(), need.to_string(), got.to_string()]
        }
        Error::NoAdapter(why) | Error::DeviceLost(why) | Error::Device(why) => vec![why.clone()],
        other => panic!("{name}: {other:?} is new here"),
    };
    for word in words {
        assert!(text.contains(&word), "{name}: {text:?} does not say {word:?}");
    }
}

/// An empty call of a problem: what is wrong with the problem is found before its slices are.
fn empty() -> Inputs<'static> {
    Inputs::new(&[], &[], &[])
}

/// The choice of a plan that picks the fused kernel with a tile.
fn tile(queries: u32, keys: u32) -> Choice {
    Choice::tile(wgpu_attention::Tile { queries, keys })
}

/// Gives `bind` no buffer for an operand that needs so many bytes, short ones, and useless ones;
/// `unit` is the size of what its lengths count. How many were refused.
pub fn wrong_buffers(
    program: &Program,
    operand: Operand,
    [bytes, unit]: [u64; 2],
    bind: impl Fn(Option<&wgpu::Buffer>) -> Result<(), Error>,
) -> usize {
    let mut wrong = 0;
    let mut refuse = |buffer: Option<&wgpu::Buffer>, want: Error| {
        let error = bind(buffer).expect_err("a wrong buffer");
        assert_same(&format!("{operand} {buffer:?}"), &error, &want);
        wrong += 1;
    };
    refuse(None, Error::Missing { operand });
    for short in [bytes - 1, bytes - 4, 0] {
        let length = Error::Length { operand, need: bytes / unit, got: short / unit };
        refuse(Some(&program.empty(short, USAGE)), length);
    }
    let need = wgpu::BufferUsages::STORAGE;
    for got in [wgpu::BufferUsages::COPY_DST, USAGE - need, wgpu::BufferUsages::UNIFORM] {
        refuse(Some(&program.empty(bytes, got)), Error::Usage { operand, need, got });
    }
    bind(Some(&program.empty(bytes + 4, need))).expect("a longer buffer");
    wrong
}
