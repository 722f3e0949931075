// Projection of tokens: Y = X W + b (+ R).
//
// Workgroup: a tile of PROJECT_TILE tokens and PROJECT_TILE outputs.
// Thread:    (x, y): 4 tokens 4 y ..; the outputs of quad x.
// Memory:    `x_tile` [token, quad] and `w_tile` [input, quad] hold PROJECT_QUADS of the input dims.
// Grid:      output tiles, then token tiles.
// Twin:      cpu/project.rs, project()
//
// Proof (compiled without runtime checks). Loads test token, input and output against the sizes
// whose extents `ProjectionPlan::bind` checks; the tiles' indices are below their lengths as
// token < PROJECT_TILE, quad < PROJECT_QUADS or PROJECT_THREADS. Stores test token and quad. Loops
// rise by a constant to a bound fixed before the loop. Barriers are under uniform conditions only.

const INVOCATIONS = PROJECT_THREADS * PROJECT_THREADS;
const INPUT_STRIDE = PROJECT_QUADS + 1u;  // padded against bank conflicts

var<workgroup> x_tile: array<vec4<f32>, PROJECT_TILE * INPUT_STRIDE>;
var<workgroup> w_tile: array<vec4<f32>, 4u * PROJECT_QUADS * PROJECT_THREADS>;

fn put_token(token: u32, quad: u32, sum: vec4<f32>) {
    if (token < projection.tokens && 4u * quad < projection.output) {
        store_y(token, quad, sum + load_b(quad) + load_residual(token, quad));
    }
}

@compute @workgroup_size(INVOCATIONS)
fn project(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let group = id.x + size.x * (id.y + size.y * id.z);
    if (group >= projection.groups) {
        return;
    }
    let first_token = group / projection.output_tiles * PROJECT_TILE;
    let first_quad = group % projection.output_tiles * PROJECT_THREADS;
    let x = local % PROJECT_THREADS;
    let y = local / PROJECT_THREADS;

    var y0 = vec4(0.0);
    var y1 = vec4(0.0);
    var y2 = vec4(0.0);
    var y3 = vec4(0.0);
    for (var first = 0u; first < projection.input; first += 4u * PROJECT_QUADS) {
        workgroupBarrier();
        for (var at = local; at < PROJECT_TILE * PROJECT_QUADS; at += INVOCATIONS) {
            let token = first_token + at / PROJECT_QUADS;
            let quad = at % PROJECT_QUADS;
            var value = vec4(0.0);
            if (token < projection.tokens && first + 4u * quad < projection.input) {
                value = load_x(token, first / 4u + quad);
            }
            x_tile[at / PROJECT_QUADS * INPUT_STRIDE + quad] = value;
        }
        for (var at = local; at < 4u * PROJECT_QUADS * PROJECT_THREADS; at += INVOCATIONS) {
            let input = first + at / PROJECT_THREADS;
            let quad = first_quad + at % PROJECT_THREADS;
            var value = vec4(0.0);
            if (input < projection.input && 4u * quad < projection.output) {
                value = load_w(input, quad);
            }
            w_tile[at] = value;
        }
        workgroupBarrier();
        // Y += X W, four input dims at a time
        for (var quad = 0u; quad < PROJECT_QUADS; quad++) {
            let a = x_tile[4u * y * INPUT_STRIDE + quad];
            let b = x_tile[(4u * y + 1u) * INPUT_STRIDE + quad];
            let c = x_tile[(4u * y + 2u) * INPUT_STRIDE + quad];
            let d = x_tile[(4u * y + 3u) * INPUT_STRIDE + quad];
            let w0 = w_tile[4u * quad * PROJECT_THREADS + x];
            let w1 = w_tile[(4u * quad + 1u) * PROJECT_THREADS + x];
            let w2 = w_tile[(4u * quad + 2u) * PROJECT_THREADS + x];
            let w3 = w_tile[(4u * quad + 3u) * PROJECT_THREADS + x];
            y0 += a.x * w0 + a.y * w1 + a.z * w2 + a.w * w3;
            y1 += b.x * w0 + b.y * w1 + b.z * w2 + b.w * w3;
            y2 += c.x * w0 + c.y * w1 + c.z * w2 + c.w * w3;
            y3 += d.x * w0 + d.y * w1 + d.z * w2 + d.w * w3;
        }
    }
    let token = first_token + 4u * y;
    put_token(token, first_quad + x, y0);
    put_token(token + 1u, first_quad + x, y1);
    put_token(token + 2u, first_quad + x, y2);
    put_token(token + 3u, first_quad + x, y3);
}
