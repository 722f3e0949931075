// The program's own render pass after attention: the weights of one head as a heat map.
//
// One fragment a pixel. It finds its cell, query i downwards and key j to the right, reads the
// weight where attention left it, takes the colour of its square root, and writes the weight in
// percent over it, with digits from a strip of ten.

struct Picture {
    tokens: u32,
    // Pixels of a cell's side.
    cell: u32,
    // The head's first element of weights, [batch, head, query, key].
    first: u32,
    // 1: keys after the query stay empty.
    causal: u32,
    // Pixels of a digit.
    digit: vec2u,
}

@group(0) @binding(0) var<uniform> picture: Picture;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var colours: texture_2d<f32>;
@group(0) @binding(3) var digits: texture_2d<f32>;

const EMPTY = vec3f(0.93);
const GAP = vec3f(1.0);

// One triangle that covers the whole target.
@vertex
fn cover(@builtin(vertex_index) corner: u32) -> @builtin(position) vec4f {
    let at = vec2f(vec2u(corner & 1u, corner >> 1u));
    return vec4f(4.0 * at - 1.0, 0.0, 1.0);
}

@fragment
fn heat(@builtin(position) position: vec4f) -> @location(0) vec4f {
    let pixel = vec2u(position.xy);
    let cell = pixel / picture.cell;
    let within = pixel % picture.cell;
    if any(within == vec2u(0u)) {
        return vec4f(GAP, 1.0);
    }
    if picture.causal == 1u && cell.x > cell.y {
        return vec4f(EMPTY, 1.0);
    }
    let weight = weights[picture.first + cell.y * picture.tokens + cell.x];
    let last = textureDimensions(colours).x - 1u;
    let shade = u32(round(sqrt(clamp(weight, 0.0, 1.0)) * f32(last)));
    let colour = textureLoad(colours, vec2u(shade, 0u), 0).rgb;

    // Light letters on dark colours.
    let light = dot(colour, vec3f(0.299, 0.587, 0.114));
    let ink = select(vec3f(1.0), vec3f(0.0), light > 0.5);
    return vec4f(mix(colour, ink, coverage(within, u32(round(100.0 * weight)))), 1.0);
}

// How much of a pixel of the cell the number covers.
fn coverage(within: vec2u, number: u32) -> f32 {
    let count = 1u + u32(number >= 10u) + u32(number >= 100u);
    let size = vec2u(count, 1u) * picture.digit;
    let corner = (vec2u(picture.cell) - size) / 2u;
    let at = within - corner;
    // Left of the corner wraps around to large numbers.
    if any(at >= size) {
        return 0.0;
    }
    let place = count - 1u - at.x / picture.digit.x;
    var rest = number;
    for (var i = 0u; i < place; i++) {
        rest /= 10u;
    }
    let texel = vec2u(rest % 10u * picture.digit.x + at.x % picture.digit.x, at.y);
    return textureLoad(digits, texel, 0).r;
}
