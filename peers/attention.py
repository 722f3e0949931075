"""PyTorch and onnxruntime on the CPU, for `peers`.

    python3 attention.py THREADS

Says what it has (`note TEXT` and `peer KEY NAME`, then `ready`), then answers a line with a line:

    check KEY KIND ROWS KEYS HEADS DIM CAUSAL          ok LARGEST_ERROR
    time  KEY KIND ROWS KEYS HEADS DIM CAUSAL CALLS    ok SECONDS ... (of each call)

KIND is prefill or decode, CAUSAL 0 or 1. The first call of a shape is the first call of a peer:
a session is made in it. An answer that is not `ok` says what went wrong.
"""

import sys
import time

import wire

TORCH = {"torch-math": "MATH", "torch-flash": "FLASH_ATTENTION"}
ONNX = {"onnx-matmul": "FusedMatMul Softmax MatMul", "onnx-fused": "MultiHeadAttention"}


class Case:
    """Operands from the standard normal distribution, [head, token, dim]."""

    def __init__(self, kind, rows, keys, heads, dim, causal):
        self.rows, self.keys, self.heads, self.dim = rows, keys, heads, dim
        self.causal = causal
        random = np.random.default_rng(3)
        shapes = [(heads, tokens, dim) for tokens in (rows, keys, keys)]
        self.q, self.k, self.v = (random.standard_normal(s, np.float32) for s in shapes)
        self.scale = dim**-0.5

    def error(self, answer):
        """The largest error of an answer [head, row, dim] in a few rows of every head."""
        if answer.shape != self.q.shape or not np.isfinite(answer).all():
            return float("inf")
        most = 0.0
        for i in sorted({0, 1, self.rows // 3, self.rows // 2, self.rows - 1}):
            if i >= self.rows:
                continue
            seen = i + 1 if self.causal else self.keys
            q, k, v = (x.astype(np.float64) for x in (self.q, self.k[:, :seen], self.v[:, :seen]))
            s = self.scale * np.einsum("hd,hjd->hj", q[:, i], k)
            p = np.exp(s - s.max(axis=1, keepdims=True))
            o = np.einsum("hj,hjd->hd", p / p.sum(axis=1, keepdims=True), v)
            most = max(most, float(np.abs(answer[:, i] - o).max()))
        return most


def torch_call(case, key):
    """scaled_dot_product_attention on one path."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.from_numpy(x[None]) for x in (case.q, case.k, case.v))
    backend = getattr(SDPBackend, TORCH[key])

    def call():
        with torch.inference_mode(), sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case.causal)

    return call, lambda o: o[0].numpy()


def onnx_call(case, key, threads):
    """A session of one small model, its operands and its output bound once."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Its threads would go on spinning in the next peer's time.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    fused = key == "onnx-fused"
    model = wire.fused(case) if fused else wire.matmul(case)
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model, options, providers=providers)
    operands = {"q": case.q, "k": case.k, "v": case.v}
    if fused:  # [batch, token, head * dim]
        operands = {n: x.transpose(1, 0, 2).reshape(1, x.shape[1], -1) for n, x in operands.items()}
    elif case.causal:
        mask = np.full((case.rows, case.keys), -np.inf, np.float32)
        operands["mask"] = np.triu(mask, 1)
    shape = operands["q"].shape
    output = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, np.float32)
    binding = session.io_binding()
    # The binding points into these arrays: they live as long as the call.
    operands = {name: np.ascontiguousarray(x) for name, x in operands.items()}
    for name, x in operands.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("o", output)

    def call():
        session.run_with_iobinding(binding)
        return output

    def answer(o):
        o = o.numpy()
        if fused:
            o = o.reshape(case.rows, case.heads, case.dim).transpose(1, 0, 2)
        return o

    call.operands = operands
    return call, answer


class Server:
    def __init__(self, threads):
        self.threads = threads
        self.shape, self.case, self.calls = None, None, {}

    def made(self, key):
        """The peer's call on the present case."""
        if key not in self.calls:
            self.calls[key] = (
                torch_call(self.case, key)
                if key in TORCH
                else onnx_call(self.case, key, self.threads)
            )
        return self.calls[key]

    def answer(self, words):
        verb, key, kind, *numbers = words
        rows, keys, heads, dim, causal = map(int, numbers[:5])
        shape = (kind, rows, keys, heads, dim, bool(causal))
        if shape != self.shape:
            self.shape, self.case, self.calls = shape, Case(*shape), {}
        if verb == "check":
            call, answer = self.made(key)
            return [self.case.error(answer(call()))]
        seconds = []
        for _ in range(int(numbers[5])):
            begun = time.perf_counter()
            self.made(key)[0]()
            seconds.append(time.perf_counter() - begun)
        return seconds


def optional(name):
    """A module, or None and a note."""
    try:
        return __import__(name)
    except Exception as error:  # an installed module may fail to load in any way
        why = "missing" if isinstance(error, ModuleNotFoundError) else "does not load"
        print(f"note Python: {name} {why}")
        return None


def main():
    global np, torch, onnxruntime
    threads = int(sys.argv[1])
    np = optional("numpy")
    # Without numpy nothing could be checked.
    torch = np and optional("torch")
    onnxruntime = np and optional("onnxruntime")
    print(f"note Python {sys.version.split()[0]}, {threads} threads")
    if torch:
        torch.set_num_threads(threads)
        print(f"note PyTorch {torch.__version__}")
        for key, path in TORCH.items():
            print(f"peer {key} PyTorch, CPU, {path}")
    if onnxruntime:
        print(f"note onnxruntime {onnxruntime.__version__}")
        for key, nodes in ONNX.items():
            print(f"peer {key} onnxruntime, CPU, {nodes}")
    print("ready", flush=True)
    server = Server(threads)
    for line in sys.stdin:
        try:
            print("ok", *server.answer(line.split()), flush=True)
        except Exception as error:  # one peer's failure is an answer, not the end
            print("failed:", " ".join(str(error).split()) or type(error).__name__, flush=True)


main()
