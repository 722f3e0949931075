// The heads of a real model on the lesson's sentence.

import { newest } from './compute.js';
import { byId, html, say, set, svg } from './dom.js';
import { most, percent, tiny } from './figures.js';
import { Heat } from './heat.js';
import { safetensors } from './safetensors.js';

const LAYERS = [0, 2, 5];
const HEADS = 12;
const DIM = 32;
const WORD = 'it';
/** Where the lesson's word looks: layer, head, token. */
const CLAIMS = [
  [5, 11, 'animal'],
  [2, 1, 'tired'],
];
/** Height of a word in the drawing of the arcs, in its own units. */
const LINE = 24;
const WIDTH = 120;

export class Model {
  layer = 5;
  head = 11;
  steps = null;

  constructor(compute) {
    this.compute = compute;
    const choices = (id, values, choose) => {
      byId(id).append(...values.map((value) => html('option', { value }, String(value))));
      byId(id).addEventListener('change', () => choose(Number(byId(id).value)));
    };
    choices('layer', LAYERS, (layer) => this.look(layer, this.head));
    choices('head', Array.from({ length: HEADS }, (_, i) => i), (head) => this.look(this.layer, head));
    byId('model-claims').append(
      ...CLAIMS.map(([layer, head, word]) => {
        const button = html('button', { type: 'button' }, `“${WORD}” → “${word}”: layer ${layer}, head ${head}`);
        button.addEventListener('click', () => {
          this.query = this.words?.indexOf(WORD);
          this.look(layer, head);
        });
        return button;
      }),
    );
    this.update = newest(() => this.#compute());
    this.#choose();
  }

  /** Loads the numbers and computes from now on. */
  begin() {
    this.compute.addEventListener('change', () => this.update());
    this.#load();
  }

  /** Shows another head. */
  look(layer, head) {
    Object.assign(this, { layer, head });
    this.update();
  }

  ask(i) {
    this.query = i;
    this.#draw();
  }

  async #load() {
    try {
      const response = await fetch('minilm_lesson_sentence.safetensors');
      if (!response.ok) throw new Error(`status ${response.status}`);
      this.file = safetensors(await response.arrayBuffer());
    } catch (error) {
      say(byId('model-note'), `The model’s numbers could not be loaded: ${error.message}`);
      return;
    }
    this.words = JSON.parse(this.file.metadata.tokens);
    this.query = this.words.indexOf(WORD);
    this.heat = new Heat(byId('model-matrix'), this.words, (i) => this.ask(i), (weight) => (100 * weight).toFixed(0));
    this.#arcs();
    this.update();
  }

  /** Queries on the left, keys on the right, curves between. */
  #arcs() {
    const n = this.words.length;
    this.queries = this.words.map((word, i) => {
      const button = html('button', { type: 'button', 'aria-label': `${word}, token ${i + 1}`, 'aria-pressed': 'false' }, word);
      button.addEventListener('click', () => this.ask(i));
      return button;
    });
    this.keys = this.words.map((word) => html('li', {}, word));
    this.curves = this.words.map(() => svg('path', { fill: 'none' }));
    const size = { viewBox: `0 0 ${WIDTH} ${n * LINE}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' };
    byId('arcs').replaceChildren(
      html('div', { class: 'words', role: 'group', 'aria-label': 'The token that asks' }, ...this.queries),
      svg('svg', size, ...this.curves),
      html('ul', { class: 'words', 'aria-label': 'What it sees' }, ...this.keys),
    );
  }

  #choose() {
    byId('layer').value = this.layer;
    byId('head').value = this.head;
  }

  async #compute() {
    this.#choose();
    if (!this.file) return;
    const { layer } = this;
    if (this.steps?.layer !== layer || this.steps.engine !== this.compute.engine) {
      const n = this.words.length;
      // Heads lie side by side in a token, as the model's projections leave them.
      const form = { heads: HEADS, queries: n, keys: n, dim: DIM, tokenMajor: true };
      const parts = ['q', 'k', 'v'].map((part) => this.file.tensor(`layer${layer}.${part}`));
      const { engine } = this.compute;
      const steps = await this.compute.attend(form, ...parts);
      if (!steps) return;
      this.steps = { ...steps, layer, engine };
    }
    this.#draw();
  }

  #draw() {
    const { steps, head, query, words } = this;
    if (!steps || steps.layer !== this.layer) return;
    const n = words.length;
    const weights = steps.weights.slice(head * n * n, (head + 1) * n * n);
    this.heat.show(weights, query);
    const row = Array.from(weights.slice(query * n, (query + 1) * n));
    const top = most(row);
    const y = (i) => (i + 0.5) * LINE;
    row.forEach((weight, j) => {
      const middle = WIDTH / 2;
      set(this.curves[j], {
        d: `M0 ${y(query)} C${middle} ${y(query)} ${middle} ${y(j)} ${WIDTH} ${y(j)}`,
        'stroke-width': 0.5 + 11 * weight,
        'stroke-opacity': 0.15 + 0.85 * weight,
      });
      this.keys[j].style.setProperty('--weight', `${100 * weight}%`);
      say(this.keys[j], `${words[j]}${weight >= 0.005 ? ` ${percent(weight)}` : ''}`);
      set(this.queries[j], { 'aria-pressed': String(j === query) });
    });
    say(
      byId('model-most'),
      `Layer ${steps.layer}, head ${head}: “${words[query]}” attends most to “${words[top]}”, ${percent(row[top])}`,
    );
    const expected = this.file.tensor(`layer${steps.layer}.weights`);
    const off = expected.reduce((most, x, i) => Math.max(most, Math.abs(x - steps.weights[i])), 0);
    say(
      byId('model-note'),
      `${HEADS} heads over ${n} tokens; these weights differ from the model’s own, in f64, by ${tiny(off)} at most. Numbers in the table are percent.`,
    );
  }
}
