// The cache's lengths and tables, read and written.

@group(0) @binding(23) var<storage, read_write> words: array<u32>;
