"""Two small ONNX models, written field by field: onnxruntime alone has nothing to make models with.

Numbers of fields are those of onnx.proto3.
"""

import struct

FLOAT = 1
VERSION = 17


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def sub(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    if isinstance(value, float):
        return sub(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    return sub(1, name) + number(3, value) + number(20, 2)


def node(kind, inputs, output, domain="", **attributes):
    names = b"".join(sub(1, name) for name in inputs) + sub(2, output)
    values = b"".join(sub(5, attribute(*pair)) for pair in attributes.items())
    return sub(1, names + sub(3, output) + sub(4, kind) + values + sub(7, domain))


def value(field, name, shape):
    dims = b"".join(sub(1, number(1, n)) for n in shape)
    return sub(field, sub(1, name) + sub(2, sub(1, number(1, FLOAT) + sub(2, dims))))


def model(nodes, inputs, output):
    values = b"".join(value(11, *pair) for pair in inputs.items())
    graph = b"".join(nodes) + sub(2, "attention") + values + value(12, "o", output)
    operators = [sub(8, sub(1, domain) + number(2, version))
                 for domain, version in [("", VERSION), ("com.microsoft", 1)]]
    return number(1, 8) + sub(7, graph) + b"".join(operators)


def matmul(case):
    """softmax(scale q k^T + mask) v, [head, token, dim]. The product with k transposed and scaled
    is the node that onnxruntime itself would make of Transpose, MatMul and Mul."""
    keys = (case.heads, case.keys, case.dim)
    inputs = {"q": case.q.shape, "k": keys, "v": keys}
    product = node("FusedMatMul", ["q", "k"], "s", "com.microsoft", alpha=case.scale, transB=1)
    nodes, scores = [product], "s"
    if case.causal:
        inputs["mask"] = (case.rows, case.keys)
        nodes.append(node("Add", ["s", "mask"], "masked"))
        scores = "masked"
    nodes += [node("Softmax", [scores], "p", axis=2), node("MatMul", ["p", "v"], "o")]
    return model(nodes, inputs, case.q.shape)


def fused(case):
    """onnxruntime's own operator, [batch, token, head * dim]."""
    q, kv = ((1, tokens, case.heads * case.dim) for tokens in (case.rows, case.keys))
    attend = node("MultiHeadAttention", ["q", "k", "v"], "o", "com.microsoft",
                  num_heads=case.heads, unidirectional=int(case.causal))
    return model([attend], {"q": q, "k": kv, "v": kv}, q)
