//! Projections and whole layers on pretended devices: a plan within every limit, or an error that
//! names one that is truly exceeded.

use wgpu_attention::{
    Align, Buffers, Choice, Error, LoopLimit, MultiHead, MultiHeadPlan, Operand, Problem,
    Projection, ProjectionPlan, Rows, Shape,
};

use crate::device::{PLAIN, Pretend, Traits, grid, words};
use crate::limits::{dispatch_within, lift};

fn projections() -> Vec<(&'static str, Projection)> {
    let new = Projection::new;
    let far = Rows { offset: 1 << 20, stride: 64 };
    vec![
        ("square", new(128, 64, 64)),
        ("one token", new(1, 512, 512).bias()),
        ("odd, all", new(33, 17, 65).bias().residual()),
        ("long rows", new(40, 100_000, 4).residual()),
        ("many tokens", new(300_000, 8, 8)),
        ("far apart", new(64, 64, 64).rows(Operand::X, far).rows(Operand::Y, far)),
        ("too large", new(1 << 19, 64, 1 << 10)),
        ("empty", new(0, 64, 64).bias()),
    ]
}

fn layers() -> Vec<(&'static str, MultiHead)> {
    let heads = |shape: Shape| Problem::new(shape).align(Align::BottomRight);
    let square = Shape::self_attention(1, 4, 128, 16);
    let grouped = Shape { q_len: 33, ..square }.kv_heads(2).value_dim(12);
    vec![
        ("square", MultiHead::new(64, heads(square))),
        ("cross, all", MultiHead::new(50, heads(grouped).lse()).context(33).biases().residual()),
        ("stored", MultiHead::new(64, heads(square).scores().weights()).residual()),
        ("long", MultiHead::new(16, heads(square.kv_len(50_000))).context(16)),
        ("large", MultiHead::new(512, heads(Shape::self_attention(64, 8, 1024, 64)))),
        ("no context", MultiHead::new(64, heads(square.kv_len(0))).context(9).biases()),
        ("no tokens", MultiHead::new(64, heads(Shape { q_len: 0, kv_len: 0, ..square }))),
    ]
}

/// What all pairs of a device and something to plan came to.
#[derive(Default)]
struct Tally {
    plans: u32,
    bound: u32,
    refused: u32,
    lifted: u32,
    broken: Vec<String>,
}

impl Tally {
    /// Plans on one device, checks the plan or the refusal; true if `bytes` are few enough to bind.
    fn pair<P>(
        &mut self,
        pretend: &Pretend,
        at: (&str, &wgpu::Limits, LoopLimit),
        plan: impl Fn(&Pretend) -> Result<P, Error>,
        within: impl Fn(&P, &wgpu::Limits) -> Result<(), String>,
    ) -> Option<P> {
        let (name, limits, loop_limit) = at;
        let pair = format!("{name} on {{{}}}, {loop_limit:?}", words(limits));
        match plan(pretend) {
            Ok(plan) => {
                self.plans += 1;
                let why = within(&plan, limits).err();
                self.broken.extend(why.map(|why| format!("{why}: {pair}")));
                Some(plan)
            }
            Err(Error::Limit { what, need, got }) => {
                self.refused += 1;
                assert!(need > got, "{what} {need} {got}: {pair}");
                match lift(plan, within, limits, Traits { loop_limit, ..PLAIN }) {
                    Ok(to) => self.lifted += u32::from(to),
                    Err(why) => self.broken.push(format!("{why}: {pair}")),
                }
                None
            }
            Err(error) => panic!("{error}: {pair}"),
        }
    }

    fn finish(&self, what: &str) {
        let Tally { plans, bound, refused, lifted, broken } = self;
        println!(
            "{what}: {plans} plans ({bound} bound), {refused} refused ({lifted} planned once the \
             named limits were raised)"
        );
        assert!(broken.is_empty(), "{} pairs:\n{}", broken.len(), broken.join("\n"));
        assert!(*plans > 200 && *refused > 50 && *bound > 100 && *lifted > 30);
    }
}

fn projection_within(plan: &ProjectionPlan, limits: &wgpu::Limits) -> Result<(), String> {
    plan.describe().iter().try_for_each(|dispatch| dispatch_within(dispatch, limits))
}

fn layer_within(plan: &MultiHeadPlan, limits: &wgpu::Limits) -> Result<(), String> {
    if plan.projected_bytes().max(plan.scratch_bytes()) > limits.max_buffer_size {
        return Err("working memory past the largest buffer".into());
    }
    plan.describe().iter().try_for_each(|dispatch| dispatch_within(dispatch, limits))
}

/// Buffers of just these sizes, if they are small and each fits the device.
fn buffers(pretend: &Pretend, sizes: &[(Operand, u64)]) -> Option<Vec<(Operand, wgpu::Buffer)>> {
    let most = pretend.device.limits().max_buffer_size;
    let is_small = sizes.iter().map(|x| x.1).sum::<u64>() < 1 << 20;
    let fits = sizes.iter().all(|x| x.1 <= most);
    (is_small && fits)
        .then(|| sizes.iter().map(|&(operand, size)| (operand, pretend.buffer(size))).collect())
}

fn given(buffers: &[(Operand, wgpu::Buffer)]) -> Buffers<'_> {
    buffers.iter().fold(Buffers::default(), |all, (operand, buffer)| all.with(*operand, buffer))
}

const LOOPS: [LoopLimit; 2] = [LoopLimit::Unlimited, LoopLimit::Iterations(65_535)];

#[test]
fn every_projection_is_within_its_device_or_names_the_limit() {
    let mut tally = Tally::default();
    for loop_limit in LOOPS {
        for limits in grid() {
            let pretend = Pretend::new(&limits, loop_limit);
            for (name, projection) in projections() {
                let plan = |pretend: &Pretend| pretend.attention.plan_projection(&projection);
                let at = (name, &limits, loop_limit);
                let Some(plan) = tally.pair(&pretend, at, plan, projection_within) else {
                    continue;
                };
                let is_empty = projection.elements(Operand::Y) == 0;
                assert_eq!(plan.describe().is_none(), is_empty, "{name}");
                let mut operands = vec![Operand::X, Operand::W, Operand::Y];
                let has = |o: &Operand| projection.elements(*o) > 0;
                operands.extend([Operand::B, Operand::Residual].into_iter().filter(has));
                let sizes: Vec<_> =
                    operands.into_iter().map(|o| (o, 4 * projection.elements(o))).collect();
                if let Some(buffers) = buffers(&pretend, &sizes) {
                    let bound = plan.bind(given(&buffers));
                    bound.unwrap_or_else(|e| panic!("{e}: {name} on {{{}}}", words(&limits)));
                    tally.bound += 1;
                }
            }
        }
    }
    tally.finish("projections");
}

#[test]
fn every_layer_is_within_its_device_or_names_the_limit() {
    let mut tally = Tally::default();
    for loop_limit in LOOPS {
        for limits in grid() {
            let pretend = Pretend::new(&limits, loop_limit);
            for (name, layer) in layers() {
                let plan = |pretend: &Pretend| pretend.attention.plan_multi_head(&layer);
                let at = (name, &limits, loop_limit);
                let Some(plan) = tally.pair(&pretend, at, plan, layer_within) else { continue };
                if let Some(buffers) = buffers(&pretend, &layer_sizes(&layer, &plan)) {
                    let bound = plan.bind(given(&buffers));
                    bound.unwrap_or_else(|e| panic!("{e}: {name} on {{{}}}", words(&limits)));
                    tally.bound += 1;
                }
            }
        }
    }
    tally.finish("layers");
}

fn layer_sizes(layer: &MultiHead, plan: &MultiHeadPlan) -> Vec<(Operand, u64)> {
    use Operand::{Bk, Bo, Bq, Bv, Context, Lse, Scores, Weights, Wk, Wo, Wq, Wv, X, Y};
    let outputs = layer.problem().outputs();
    let mut operands = vec![X, Wq, Wk, Wv, Wo, Y];
    if layer.elements(Bo) > 0 {
        operands.extend([Bq, Bk, Bv, Bo]);
    }
    // An empty context is given too: the layer is another without it.
    if *layer == layer.clone().context((layer.elements(Wk) / columns(layer)) as u32) {
        operands.push(Context);
    }
    let wanted = [(outputs.lse, Lse), (outputs.scores, Scores), (outputs.weights, Weights)];
    operands.extend(wanted.into_iter().filter(|x| x.0).map(|x| x.1));
    let mut sizes: Vec<_> = operands.into_iter().map(|o| (o, 4 * layer.elements(o))).collect();
    let memory =
        [(Operand::Projected, plan.projected_bytes()), (Operand::Scratch, plan.scratch_bytes())];
    sizes.extend(memory);
    sizes
}

fn columns(layer: &MultiHead) -> u64 {
    let shape = layer.problem().shape();
    u64::from(shape.kv_heads) * u64::from(shape.head_dim)
}

/// No workgroups are no reason to refuse what has nothing to compute; too few bindings are.
#[test]
fn no_workgroups_and_few_bindings() {
    let base = wgpu::Limits::default();
    let limits = wgpu::Limits { max_compute_workgroups_per_dimension: 0, ..base.clone() };
    let pretend = Pretend::new(&limits, LoopLimit::Unlimited);
    let plan = |tokens| pretend.attention.plan_projection(&Projection::new(tokens, 8, 8));
    assert!(plan(0).expect("nothing to compute").describe().is_none());
    let limit = |what, need, got| Some(Error::Limit { what, need, got });
    assert_eq!(plan(1).err(), limit("workgroups", 1, 0));
    let layer = |tokens| {
        let problem = Problem::new(Shape::self_attention(1, 2, tokens, 4));
        pretend.attention.plan_multi_head(&MultiHead::new(8, problem))
    };
    assert_eq!(layer(0).expect("nothing to compute").describe(), vec![]);
    assert_eq!(layer(1).err(), limit("workgroups", 1, 0));

    let limits = wgpu::Limits { max_bindings_per_bind_group: 8, ..base };
    let pretend = Pretend::new(&limits, LoopLimit::Unlimited);
    let want = limit("max_bindings_per_bind_group", 19, 8);
    let projection = Projection::new(1, 8, 8);
    let problem = Problem::new(Shape::self_attention(1, 2, 3, 4));
    let choice = Choice::default();
    assert_eq!(pretend.attention.plan_projection(&projection).err(), want);
    assert_eq!(pretend.attention.plan_multi_head(&MultiHead::new(8, problem.clone())).err(), want);
    assert_eq!(pretend.attention.plan_with(&problem, choice).err(), want);
}
