// What the order of the tokens changes: nothing, unless a mask brings it in.

import { newest } from './compute.js';
import { byId, html, say } from './dom.js';
import { tiny, vector } from './figures.js';

/** Differences up to this are the roundings of sums in another order. */
const ROUNDING = 1e-5;

export class Order {
  constructor(demo, compute) {
    Object.assign(this, { demo, compute });
    const n = demo.words.length;
    this.places = Array.from({ length: n }, (_, i) => i);
    this.lines = demo.words.map((word) => {
      const cells = Array.from({ length: 4 }, () => html('td', {}, '–'));
      byId('order-table').tBodies[0].append(html('tr', {}, html('th', { scope: 'row' }, word), ...cells));
      return cells;
    });
    this.update = newest(() => this.#compute());
    byId('shuffle').addEventListener('click', () => {
      this.places = shuffled(this.places);
      this.update();
    });
    byId('unshuffle').addEventListener('click', () => {
      this.places.sort((a, b) => a - b);
      this.update();
    });
    byId('order-causal').addEventListener('change', () => this.update());
    this.places = shuffled(this.places);
  }

  /** Computes from now on. */
  begin() {
    this.demo.addEventListener('computed', () => this.update());
    this.update();
  }

  async #compute() {
    const n = this.places.length;
    const causal = byId('order-causal').checked;
    const form = { queries: n, keys: n, dim: 2, causal };
    const parts = ['q', 'k', 'v'].map((part) => structuredClone(this.demo.vectors[part]));
    // Place i of the shuffled sequence holds token order[i].
    const order = [...this.places];
    const first = await this.compute.attend(form, ...parts.map((part) => part.flat()));
    const second =
      first && (await this.compute.attend(form, ...parts.map((part) => order.flatMap((token) => part[token]))));
    if (!second) return;
    const at = (output, place) => Array.from(output.slice(2 * place, 2 * place + 2));
    let largest = 0;
    this.lines.forEach((cells, token) => {
      const place = order.indexOf(token);
      const [a, b] = [at(first.output, token), at(second.output, place)];
      const difference = Math.max(...a.map((x, c) => Math.abs(x - b[c])));
      largest = Math.max(largest, difference);
      const texts = [`${token + 1} → ${place + 1}`, vector(a), vector(b), written(difference)];
      cells.forEach((cell, c) => say(cell, texts[c]));
    });
    const words = order.map((token) => this.demo.words[token]).join(' ');
    const verdict =
      largest <= ROUNDING ? 'every token keeps its output.' : `outputs change by up to ${written(largest)}.`;
    say(byId('order-says'), `“${words}”${causal ? ', causal' : ''}: ${verdict}`);
  }
}

const written = (difference) => (difference < 1e-3 ? tiny(difference) : difference.toFixed(2));

/** Another order than the one given. */
function shuffled(order) {
  const next = [...order];
  for (let i = next.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [next[i], next[j]] = [next[j], next[i]];
  }
  return next.every((token, i) => token === order[i]) ? shuffled(order) : next;
}
