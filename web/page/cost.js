// What attention costs in this browser as the tokens double.

import { chart } from './chart.js';
import { byId, html, say, set } from './dom.js';
import { bytes } from './figures.js';
import { normal } from './random.js';

const TOKENS = [64, 128, 256, 512, 1024, 2048, 4096];
const METHODS = ['staged', 'fused'];
const DIM = 64;
/**
 * Runs behind one time, the median: a few, or two if they are slow, then as many as fit, in ms. One
 * would not do: other kernels may be compiled meanwhile.
 */
const [LEAST, FEW, SLOW] = [2, 3, 4000];
const [RUNS, BUDGET] = [9, 600];
/** A run that would take longer than this is left out, in ms. */
const PATIENCE = 30000;
/** Stored scores are planned, not run, up to so many tokens to see where they stop fitting. */
const MOST_PLANNED = 1 << 20;

export class Cost {
  constructor(compute) {
    this.compute = compute;
    this.lines = TOKENS.map((tokens) => {
      const cells = Array.from({ length: 6 }, () => html('td', {}, '–'));
      byId('cost-table').tBodies[0].append(html('tr', {}, html('th', { scope: 'row' }, String(tokens)), ...cells));
      return cells;
    });
    this.#clear();
    byId('cost-run').addEventListener('click', () => this.#run());
    byId('cost-stop').addEventListener('click', () => this.#stop('Stopped.'));
    byId('cost-heads').addEventListener('change', () => this.#stop('Not run yet.', true));
    compute.addEventListener('change', () => {
      const { state } = compute;
      const why = { cpu: 'This needs WebGPU: the CPU reference has no kernels to time.', lost: 'The device was lost.' };
      // Another device has other times.
      this.#stop(why[state] ?? 'Not run yet.', state === 'webgpu');
    });
  }

  #clear() {
    this.results = TOKENS.map(() => ({}));
    this.limit = null;
    this.#draw();
    say(byId('cost-limit'), '\u00a0');
  }

  /** Ends a measurement; what is running on the GPU ends by itself. */
  #stop(word, clear = false) {
    if (this.running) this.running.abort();
    this.running = null;
    byId('cost-run').disabled = this.compute.state !== 'webgpu';
    passFocus('cost-stop', 'cost-run');
    byId('cost-stop').disabled = true;
    if (clear) this.#clear();
    set(byId('cost-state'), { 'aria-live': 'polite' });
    say(byId('cost-state'), word);
  }

  async #run() {
    const running = (this.running = new AbortController());
    const { engine } = this.compute;
    const heads = Number(byId('cost-heads').value);
    const stopped = () => running.signal.aborted;
    byId('cost-stop').disabled = false;
    passFocus('cost-run', 'cost-stop');
    byId('cost-run').disabled = true;
    // The end is announced, not every step to it.
    set(byId('cost-state'), { 'aria-live': 'off' });
    byId('cost-progress').value = 0;
    this.#clear();
    say(byId('cost-state'), 'Planning …');
    try {
      await this.#limits(engine, heads);
      for (const [i, tokens] of TOKENS.entries()) {
        for (const method of METHODS) {
          if (stopped()) return;
          say(byId('cost-state'), `${tokens} tokens, ${method} …`);
          await pause();
          this.results[i][method] = await this.#measure(engine, heads, i, method, stopped);
          if (stopped()) return;
          byId('cost-progress').value += 1;
          this.#draw();
        }
      }
      this.#stop(`Done on ${this.compute.adapter}.`);
    } catch (error) {
      if (!stopped()) this.#stop(`Ended: ${error.message ?? error}`);
    }
  }

  /** Time in ms and memory in bytes, or why there is none. */
  async #measure(engine, heads, i, method, stopped) {
    const before = this.results[i - 1]?.[method];
    if (before?.why || 4 * before?.time > PATIENCE) return { why: before.why ?? 'too slow' };
    let run;
    try {
      run = await engine.prepare(heads, TOKENS[i], method === 'fused', normal(3 * heads * TOKENS[i] * DIM));
    } catch (error) {
      return { why: String(error.message ?? error) };
    }
    try {
      await run.once();
      if (stopped()) return {};
      await run.check();
      const times = [];
      let spent = 0;
      const enough = () => {
        if (times.length < FEW) return times.length >= LEAST && spent > SLOW;
        return times.length >= RUNS || spent > BUDGET;
      };
      while (!enough()) {
        const begin = performance.now();
        await run.once();
        times.push(performance.now() - begin);
        spent += times.at(-1);
        if (stopped()) return {};
      }
      times.sort((a, b) => a - b);
      return { time: times[(times.length - 1) >> 1], bytes: run.bytes };
    } finally {
      run.free();
    }
  }

  /** Where stored scores stop fitting: found by planning alone. */
  async #limits(engine, heads) {
    const largest = engine.largest_binding;
    for (let tokens = TOKENS[0]; tokens <= MOST_PLANNED; tokens *= 2) {
      try {
        await engine.memory(heads, tokens, false);
      } catch (error) {
        this.limit = { y: largest, text: `largest buffer here: ${bytes(largest)}` };
        const fused = await engine.memory(heads, tokens, true);
        const scores = bytes(4 * heads * tokens * tokens);
        say(
          byId('cost-limit'),
          `At ${tokens} tokens the stored scores stop fitting: ${scores}, and this device’s largest buffer is ${bytes(largest)}. The fused kernel needs ${bytes(fused)} there.`,
        );
        return;
      }
    }
  }

  #draw() {
    this.lines.forEach((cells, i) => {
      const texts = METHODS.flatMap((method) => {
        const { time, why } = this.results[i][method] ?? {};
        const before = this.results[i - 1]?.[method]?.time;
        return [time ? milliseconds(time) : (why && 'none') || '–', time && before ? (time / before).toFixed(1) : '–'];
      });
      for (const method of METHODS) texts.push(this.results[i][method]?.bytes ? bytes(this.results[i][method].bytes) : '–');
      cells.forEach((cell, c) => {
        say(cell, texts[c]);
        cell.title = (c < 4 && this.results[i][METHODS[c >> 1]]?.why) || '';
      });
    });
    const line = (part) => METHODS.map((name) => ({
      name,
      points: TOKENS.map((tokens, i) => [tokens, this.results[i][name]?.[part] ?? 0]),
    }));
    byId('cost-time').replaceChildren(...chart('Time', TOKENS, line('time'), (ms) => `${milliseconds(ms)} ms`));
    byId('cost-memory').replaceChildren(...chart('Memory', TOKENS, line('bytes'), bytes, this.limit));
  }
}

const milliseconds = (ms) => (ms < 10 ? ms.toFixed(1) : ms.toFixed(0));

/** What is to be disabled hands on the focus, which would be lost with it. */
function passFocus(from, to) {
  if (document.activeElement === byId(from)) byId(to).focus();
}

/** Lets the page draw. */
const pause = () => new Promise((done) => setTimeout(done));
