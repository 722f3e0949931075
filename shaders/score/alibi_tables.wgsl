// ALiBi: a slope a query head.

const HAS_ALIBI = true;

fn slope(head: u32) -> f32 {
    return bitcast<f32>(tables[problem.slopes + head]);
}
