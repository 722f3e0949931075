// One buffer for all operands, read and written through the same binding, since two bindings of one
// buffer could not be mixed.

@group(0) @binding(10) var<storage, read_write> arena: array<u32>;
