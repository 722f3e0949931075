// What the largest weight is before the division by l: so little that no sum of finite values overflows.

// 2^-n, where 2^(n - 1) > keys: l < 1/2. Of the sequence's keys, so that all splits have the same.
// Its price: products of less than 2^-126 are 0 on some devices, of values below 2^(n - 126) all of them.
fn weight_unit(here: Place) -> f32 {
    let n = 33u - countLeadingZeros(here.sequence.keys);
    return bitcast<f32>((127u - n) << 23u);
}
