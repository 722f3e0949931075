// Reads safetensors: an 8-byte length, a JSON header, and the tensors' bytes.

/** `tensor(name)` as numbers, and the file's `metadata`. */
export function safetensors(buffer) {
  const view = new DataView(buffer);
  const length = Number(view.getBigUint64(0, true));
  const { __metadata__: metadata, ...tensors } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const kinds = { F32: Float32Array, F64: Float64Array };
  const tensor = (name) => {
    const { dtype, data_offsets: [begin, end] } = tensors[name];
    // A copy: numbers in the file may lie at any address.
    return new kinds[dtype](buffer.slice(8 + length + begin, 8 + length + end));
  };
  return { metadata, tensor };
}
