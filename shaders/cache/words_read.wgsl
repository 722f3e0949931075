// The cache's lengths and tables, read.

@group(0) @binding(22) var<storage, read> words: array<u32>;
