// Sinks: a logit a query head that joins the softmax and has no value.

const HAS_SINKS = true;

fn sink(head: u32) -> f32 {
    let bits = tables[problem.sinks + head];
    return clamp(select(bitcast<f32>(bits), LOWEST, bits == NEGATIVE_INFINITY), LOWEST, LARGEST_SCORE);
}
