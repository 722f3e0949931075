// No sinks.

const HAS_SINKS = false;

fn sink(head: u32) -> f32 {
    return LOWEST;
}
