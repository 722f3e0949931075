"""PyTorch's attention on this machine's card, for `gpu-check.sh`.

    python3 gpu_check_torch.py [--cpu]

Says what it has, `{"about": TEXT}`, or what is missing, `{"missing": TEXT}`, and ends. Then answers
each line, a case, with a line: for each path of scaled_dot_product_attention `[MEDIAN, BEST, CALLS]`
in seconds, or why there is none.
"""

import json
import statistics
import sys
import time
import warnings

PATHS = {
    "flash": "FLASH_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "math": "MATH",
}
# The math path stores its scores, some of them twice and in f32.
MOST_SCORES_BYTES = 8 << 30


def timed(call):
    """Seconds of some calls: by the card's events, on the CPU by a clock."""
    events = device == "cuda"
    begun = time.perf_counter()
    while time.perf_counter() - begun < 0.06:
        call()
        if events:
            torch.cuda.synchronize()
    seconds, begun = [], time.perf_counter()
    while not seconds or time.perf_counter() - begun < 0.3 and len(seconds) < 500:
        if events:
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(9)]
            marks[0].record()
            for mark in marks[1:]:
                call()
                mark.record()
            torch.cuda.synchronize()
            seconds += [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]
        else:
            at = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - at)
    return [statistics.median(seconds), min(seconds), len(seconds)]


def short(error):
    """The first sentence of what went wrong."""
    text = " ".join(str(error).split()) or type(error).__name__
    return "no such path here" if "No viable backend" in text else text.split(". ")[0][:100]


def operands(case):
    kind = torch.float16 if case["half"] else torch.float32
    batch, dim = case["batch"], case["dim"]
    shapes = [
        (batch, case["heads"], case["rows"], dim),
        (batch, case["kv_heads"], case["keys"], dim),
        (batch, case["kv_heads"], case["keys"], dim),
    ]
    return [torch.randn(shape, device=device, dtype=kind) for shape in shapes]


def attempt(path, case, tensors):
    scores = 4 * case["batch"] * case["heads"] * case["rows"] * case["keys"]
    if path == "math" and scores > MOST_SCORES_BYTES:
        return f"its scores would take {scores >> 30} GiB"
    options = {"is_causal": case["causal"]}
    if case["heads"] != case["kv_heads"]:
        options["enable_gqa"] = True
    q, k, v = tensors

    def call():
        torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    try:
        with torch.inference_mode(), sdpa_kernel(getattr(SDPBackend, PATHS[path])):
            return timed(call)
    except Exception as error:  # a path that a card or a type does not have, or memory
        return short(error)


def main():
    global torch, sdpa_kernel, SDPBackend, device
    say = lambda value: print(json.dumps(value), flush=True)
    warnings.simplefilter("ignore")
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except Exception as error:  # an installed module may fail to load in any way
        return say({"missing": f"Python {sys.version.split()[0]} without PyTorch 2.3: {error}"})
    device = "cpu" if "--cpu" in sys.argv else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        return say({"missing": f"PyTorch {torch.__version__} sees no card (CUDA or ROCm)"})
    name = torch.cuda.get_device_name() if device == "cuda" else "the CPU"
    # As ours: products and sums of f32 in f32.
    torch.backends.cuda.matmul.allow_tf32 = False
    say({"about": f"PyTorch {torch.__version__} on {name}"})
    for line in sys.stdin:
        case = json.loads(line)
        try:
            tensors = operands(case)
            say({path: attempt(path, case, tensors) for path in PATHS})
        except Exception as error:  # memory, as a rule
            say({"all paths": short(error)})


main()
