// Weights as a table of colours and numbers.

import { html, set, say } from './dom.js';

/** A row is a query, a column a key. `select(i)` is called when row i is chosen. */
export class Heat {
  constructor(table, words, select, write) {
    this.write = write;
    const head = html('tr', {}, html('td'), ...words.map((word) => html('th', { scope: 'col' }, word)));
    this.rows = words.map((word, i) => {
      const button = html('button', { type: 'button', 'aria-pressed': 'false' }, word);
      button.addEventListener('click', () => select(i));
      const cells = words.map(() => html('td', {}, '–'));
      const row = html('tr', {}, html('th', { scope: 'row' }, button), ...cells);
      for (const cell of cells) cell.addEventListener('click', () => select(i));
      return { row, button, cells };
    });
    table.replaceChildren(
      html('thead', {}, head),
      html('tbody', {}, ...this.rows.map(({ row }) => row)),
    );
  }

  /** `weights`, `[query, key]`. */
  show(weights, chosen) {
    const n = this.rows.length;
    this.rows.forEach(({ row, button, cells }, i) => {
      row.classList.toggle('chosen', i === chosen);
      set(button, { 'aria-pressed': String(i === chosen) });
      cells.forEach((cell, j) => {
        const weight = weights?.[i * n + j];
        say(cell, weight === undefined ? '–' : this.write(weight));
        cell.style.setProperty('--weight', `${100 * (weight ?? 0)}%`);
      });
    });
  }
}
