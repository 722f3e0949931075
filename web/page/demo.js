// The lesson's demo: six tokens, two numbers a vector.

import { newest } from './compute.js';
import { byId, html, say, set } from './dom.js';
import { decimals, most, percent, products, tiny, vector } from './figures.js';
import { Heat } from './heat.js';
import { Plane } from './plane.js';

/** What is announced waits until the tips have been still for so long, in ms. */
const STILL = 600;

export class Demo extends EventTarget {
  #answer;
  query = 2;
  key = null;
  steps = null;
  values = false;

  /** `start` holds `tokens` and `q`, `k`, `v`, a vector each. */
  constructor(start, compute) {
    super();
    Object.assign(this, { start, compute });
    this.words = start.tokens;
    this.#reset();
    this.#picker();
    this.#plane();
    this.#table();
    this.heat = new Heat(byId('matrix'), this.words, (i) => this.ask(i), decimals);
    byId('divide').addEventListener('change', () => this.update());
    byId('reset').addEventListener('click', () => {
      this.#reset();
      byId('divide').checked = true;
      this.ask(2);
    });
    this.#answer = newest(() => this.#compute());
    this.#draw();
    compute.addEventListener('change', () => this.update());
  }

  /** Makes a token the one that asks. */
  ask(i) {
    this.query = i;
    this.key = null;
    this.update();
  }

  /** Shows what changed at once, and its figures when they are computed. */
  update() {
    this.#draw();
    this.#answer();
  }

  /** One part, `q`, `k` or `v`, as `[token, dim]`. */
  flat(part) {
    return this.vectors[part].flat();
  }

  #reset() {
    const copy = (part) => this.start[part].map((vector) => [...vector]);
    this.vectors = { q: copy('q'), k: copy('k'), v: copy('v') };
  }

  async #compute() {
    const n = this.words.length;
    const form = { queries: n, keys: n, dim: 2, undivided: !byId('divide').checked };
    const steps = await this.compute.attend(form, this.flat('q'), this.flat('k'), this.flat('v'));
    if (!steps) return;
    this.steps = { ...steps, divided: !form.undivided, vectors: structuredClone(this.vectors) };
    this.#draw();
    this.#announce();
    this.dispatchEvent(new Event('computed'));
  }

  #picker() {
    this.radios = this.words.map((word, i) => {
      const radio = html('input', { type: 'radio', name: 'query', value: i, id: `query-${i}` });
      radio.addEventListener('change', () => this.ask(i));
      byId('queries').append(html('label', { for: radio.id }, radio, word));
      return radio;
    });
  }

  #plane() {
    const plane = new Plane(byId('plane'));
    const move = (part, i) => (at) => {
      this.vectors[part][i()] = at;
      this.update();
    };
    const movable = (kind, part, i) =>
      plane.arrow(kind, move(part, i), () => this.start[part][i()]);
    const each = (kind, part) => this.words.map((_, i) => movable(kind, part, () => i));
    this.arrows = { k: each('key', 'k'), v: each('value', 'v') };
    this.arrows.q = movable('query', 'q', () => this.query);
    this.arrows.o = plane.arrow('output');
    const tabs = [byId('tab-keys'), byId('tab-values')];
    const show = (tab) => {
      this.values = tab === tabs[1];
      for (const each of tabs) set(each, { 'aria-selected': String(each === tab), tabindex: each === tab ? 0 : -1 });
      set(byId('panel-plane'), { 'aria-labelledby': tab.id });
      this.key = null;
      this.#draw();
    };
    for (const tab of tabs) {
      tab.addEventListener('click', () => show(tab));
      tab.addEventListener('keydown', ({ key }) => {
        const to = { ArrowLeft: 0, ArrowRight: 1, Home: 0, End: 1 }[key];
        if (to === undefined) return;
        tabs[to].focus();
        show(tabs[to]);
      });
    }
  }

  #table() {
    this.lines = this.words.map((word, j) => {
      const cell = (name) => html('td', { class: name }, '–');
      const bar = html('div', { class: 'bar' });
      const cells = { dot: cell('dot'), score: cell('score'), percent: cell('percent') };
      const line = html(
        'tr',
        { tabindex: 0, 'data-key': word, 'aria-describedby': 'written-out' },
        html('th', { scope: 'row' }, word),
        cells.dot,
        cells.score,
        html('td', { class: 'bars', 'aria-hidden': 'true' }, bar),
        cells.percent,
      );
      const point = (key) => () => {
        this.key = key;
        this.#draw();
      };
      line.addEventListener('pointerenter', point(j));
      line.addEventListener('focus', point(j));
      line.addEventListener('pointerleave', point(null));
      line.addEventListener('blur', point(null));
      byId('row').tBodies[0].append(line);
      return { line, bar, ...cells };
    });
  }

  #draw() {
    const { words, query, values, steps } = this;
    const word = words[query];
    this.radios[query].checked = true;
    say(document.querySelector('[data-query]'), word);

    // The plane follows the pointer; the figures follow when they are computed.
    const { q, k, v } = this.vectors;
    this.arrows.q.show(q[query], `q ${word}`, `Query of ${word}`);
    this.arrows.q.hide(values);
    const label = (part, j) => `${part} ${words[j]}`;
    this.arrows.k.forEach((arrow, j) => {
      arrow.show(k[j], label('k', j), `Key of ${words[j]}, token ${j + 1}`);
      arrow.hide(values);
    });
    this.arrows.v.forEach((arrow, j) => {
      arrow.show(v[j], label('v', j), `Value of ${words[j]}, token ${j + 1}`);
      arrow.hide(!values);
    });
    this.arrows.o.hide(!values || !steps);
    this.heat.show(steps?.weights, query);
    if (!steps) return;

    const row = this.row();
    this.arrows.o.show(row.output, `o ${word}`, `Output of ${word}`);
    const top = most(row.weights);
    this.lines.forEach(({ line, bar, dot, score, percent: share }, j) => {
      say(dot, decimals(row.dots[j]));
      say(score, steps.divided ? decimals(row.scores[j]) : '–');
      say(share, percent(row.weights[j]));
      bar.style.width = `${100 * row.weights[j]}%`;
      line.classList.toggle('top', j === top);
      this.arrows.k[j].group.style.setProperty('--weight', row.weights[j]);
      this.arrows.v[j].group.style.setProperty('--weight', row.weights[j]);
    });
    say(byId('most'), `Attends most to ${words[top]}, ${percent(row.weights[top])}`);
    say(byId('written-out'), this.#writtenOut(row, this.key ?? top));
    say(byId('output'), `o_${word} = ${vector(row.output)}`);
    say(byId('agreement'), agreement(this.compute, steps));
  }

  /** The query's own part of the last steps. */
  row() {
    const n = this.words.length;
    const { dots, scores, weights, output } = this.steps;
    const of = (all, width) => Array.from(all.slice(this.query * width, (this.query + 1) * width));
    return { dots: of(dots, n), scores: of(scores, n), weights: of(weights, n), output: of(output, 2) };
  }

  #writtenOut(row, j) {
    const { q, k, v } = this.steps.vectors;
    const [query, key] = [this.words[this.query], this.words[j]];
    if (this.values) {
      return `weight × v_${key} = ${decimals(row.weights[j])} × ${vector(v[j])}`;
    }
    return `q_${query} · k_${key} = ${products(q[this.query], k[j])} = ${decimals(row.dots[j])}`;
  }

  #announce() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const row = this.row();
      const top = most(row.weights);
      const [query, key] = [this.words[this.query], this.words[top]];
      say(byId('said'), `${query} attends most to ${key}, ${percent(row.weights[top])}. Output ${vector(row.output)}.`);
    }, STILL);
  }
}

/** What the two ways of computing the output say of each other. */
function agreement({ state }, { difference }) {
  const ways = state === 'webgpu' ? 'Staged and fused kernels' : 'Reference and fused twin';
  return `${ways}: outputs differ by ${tiny(difference)} at most.`;
}

