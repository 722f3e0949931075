// Lengths, bounds of packed sequences, slopes and sinks, each from its own first word on.

@group(0) @binding(18) var<storage, read> tables: array<u32>;
