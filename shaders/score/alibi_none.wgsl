// No ALiBi.

const HAS_ALIBI = false;

fn slope(head: u32) -> f32 {
    return 0.0;
}
