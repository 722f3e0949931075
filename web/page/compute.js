// Where the page computes: on WebGPU, else on the CPU reference, both in the same wasm.

import init, { Call, Engine } from './wgpu_attention_web.js';

/** Emits `change` when another engine computes, or when none does. */
export class Compute extends EventTarget {
  /** `loading`, `opening`, `webgpu`, `cpu`, `lost` or `failed`. */
  state = 'loading';
  /** Why there is no WebGPU, or no engine at all. */
  why = '';
  /** The adapter's name. */
  adapter = '';
  engine = null;
  #loaded = null;
  #replace = () => {};
  #replaced = null;

  /** Loads the wasm and opens a WebGPU device; without one, the CPU reference serves. */
  async open() {
    this.#become('loading', null);
    try {
      await (this.#loaded ??= init());
    } catch (error) {
      this.#loaded = null;
      return this.#become('failed', null, String(error.message ?? error));
    }
    if (!navigator.gpu) return this.useCpu('This browser has no WebGPU');
    this.#become('opening', null);
    // A browser that takes long may answer when nobody waits any more.
    const asked = this.#replaced;
    try {
      const engine = await Engine.webgpu();
      const adapter = engine.adapter || (await described());
      if (this.#replaced !== asked) return engine.free();
      engine.lost().then((reason) => {
        if (this.engine === engine) this.#become('lost', null, reason);
      });
      this.adapter = adapter;
      this.#become('webgpu', engine);
    } catch (error) {
      // wgpu lists every back end that it was built without: only the outcome matters here.
      if (this.#replaced === asked) this.useCpu('This browser offers no WebGPU adapter');
      console.info(error.message);
    }
  }

  /** The CPU reference from now on. */
  useCpu(why = '') {
    this.#become('cpu', Engine.cpu(), why);
  }

  /**
   * All steps of one call, as arrays. `form`: `heads`, `queries`, `keys`, `dim`, and by choice
   * `undivided`, `causal`, `tokenMajor`. Null if the engine was changed meanwhile.
   */
  async attend(form, q, k, v) {
    const { engine } = this;
    if (!engine) return null;
    let call = new Call(form.heads ?? 1, form.queries, form.keys, form.dim);
    if (form.undivided) call = call.undivided();
    if (form.causal) call = call.causal();
    if (form.tokenMajor) call = call.token_major();
    try {
      const parts = [q, k, v].map((part) => Float32Array.from(part));
      // An engine that is slow or gone must not hold up the next one.
      const steps = await Promise.race([engine.attend(call, ...parts), this.#replaced]);
      if (this.engine !== engine) return null;
      const { dots, scores, weights, output, difference } = steps;
      steps.free();
      return { dots, scores, weights, output, difference };
    } catch (error) {
      if (this.engine !== engine) return null;
      this.#become('lost', null, firstSentence(error));
      return null;
    }
  }

  #become(state, engine, why = '') {
    Object.assign(this, { state, engine, why });
    this.#replace();
    this.#replaced = new Promise((resolve) => (this.#replace = resolve));
    this.dispatchEvent(new Event('change'));
  }
}

/** What the browser itself says of the adapter: wgpu only passes its description on. */
async function described() {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  const { vendor, architecture, device, description } = adapter?.info ?? {};
  return description || [vendor, architecture, device].filter(Boolean).join(' ') || 'unnamed adapter';
}

const firstSentence = (error) => String(error.message ?? error).split('. ')[0];

/**
 * Runs `work` for the newest arguments only: calls that come while it runs replace each other, and
 * the last of them runs next.
 */
export function newest(work) {
  let waiting = null;
  let running = false;
  return async (...args) => {
    waiting = args;
    if (running) return;
    running = true;
    while (waiting) {
      const now = waiting;
      waiting = null;
      await work(...now);
    }
    running = false;
  };
}
