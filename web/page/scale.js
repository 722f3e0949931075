// What the division by sqrt(d_k) does to the softmax.

import { newest } from './compute.js';
import { byId, html, say } from './dom.js';
import { decimals, percent } from './figures.js';
import { normal } from './random.js';

const DIM = 64;
const QUERIES = 64;
const KEYS = 16;

export class Scale {
  constructor(compute) {
    this.compute = compute;
    this.lines = Array.from({ length: KEYS }, (_, j) => {
      const cell = (name = '') => html('td', { class: name }, '–');
      const bars = [html('div', { class: 'bar' }), html('div', { class: 'bar' })];
      const holder = (bar) => html('td', { class: 'bars', 'aria-hidden': 'true' }, bar);
      const cells = [cell('dot'), cell('percent'), cell('percent')];
      byId('scale-table').tBodies[0].append(
        html('tr', {}, html('th', { scope: 'row' }, String(j + 1)), cells[0], holder(bars[0]), cells[1], holder(bars[1]), cells[2]),
      );
      return { cells, bars };
    });
    this.update = newest(() => this.#compute());
    byId('draw').addEventListener('click', () => this.#draw());
  }

  /** Computes from now on. */
  begin() {
    this.compute.addEventListener('change', () => this.update());
    this.#draw();
  }

  #draw() {
    this.operands = [normal(QUERIES * DIM), normal(KEYS * DIM), normal(KEYS * DIM)];
    this.update();
  }

  async #compute() {
    const { operands } = this;
    const form = { queries: QUERIES, keys: KEYS, dim: DIM };
    const divided = await this.compute.attend(form, ...operands);
    const undivided = divided && (await this.compute.attend({ ...form, undivided: true }, ...operands));
    if (!undivided) return;
    this.lines.forEach(({ cells, bars }, j) => {
      say(cells[0], decimals(divided.dots[j]));
      [undivided, divided].forEach(({ weights }, side) => {
        say(cells[side + 1], percent(weights[j]));
        bars[side].style.width = `${100 * weights[j]}%`;
      });
    });
    const [wide, narrow] = [spread(divided.dots), spread(divided.scores)].map((x) => x.toFixed(2));
    const [hard, soft] = [undivided, divided].map(({ weights }) => percent(meanLargest(weights)));
    say(
      byId('scale-says'),
      `Over ${QUERIES} queries: q·k spread by ${wide}, the largest weight is ${hard} on average; divided, they spread by ${narrow} and it is ${soft}.`,
    );
  }
}

/** Standard deviation. */
function spread(numbers) {
  const mean = numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
  return Math.sqrt(numbers.reduce((sum, x) => sum + (x - mean) ** 2, 0) / numbers.length);
}

/** The mean over all queries of the largest weight. */
function meanLargest(weights) {
  let sum = 0;
  for (let at = 0; at < weights.length; at += KEYS) sum += Math.max(...weights.slice(at, at + KEYS));
  return sum / (weights.length / KEYS);
}
