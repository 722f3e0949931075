// The lesson's six tokens and what follows from any six, in f64.

import { readFileSync } from 'node:fs';

export const lesson = JSON.parse(readFileSync(new URL('../../tests/data/demo.json', import.meta.url)));
export const words = lesson.tokens;

/** Vectors of the lesson, to be changed. */
export const start = () => structuredClone({ q: lesson.q, k: lesson.k, v: lesson.v });

const dot = (a, b) => a.reduce((sum, x, c) => sum + x * b[c], 0);

/** Two decimals, never a negative zero. */
export const decimals = (x) => x.toFixed(2).replace(/^-(0\.00)$/, '$1');
export const percent = (x) => `${(100 * x).toFixed(0)}%`;

/** Weights, `[query, key]`, and outputs, `[query, dim]`. */
export function attention({ q, k, v }, { divided = true, causal = false } = {}) {
  const scale = divided ? 1 / Math.sqrt(q[0].length) : 1;
  const weights = q.map((query, i) => {
    const powers = k.map((key, j) => (causal && j > i ? 0 : Math.exp(scale * dot(query, key))));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  });
  const out = weights.map((row) =>
    v[0].map((_, c) =>
      dot(
        row,
        v.map((value) => value[c]),
      ),
    ),
  );
  return { weights, out };
}

/** What the demo should show for one query. */
export function figures(vectors, query = 2, divided = true) {
  const { weights, out } = attention(vectors, { divided });
  const raw = vectors.k.map((key) => dot(vectors.q[query], key));
  const row = weights[query];
  const top = row.indexOf(Math.max(...row));
  return {
    most: `Attends most to ${words[top]}, ${percent(row[top])}`,
    raw: raw.map(decimals),
    scaled: raw.map((x) => (divided ? decimals(x / Math.sqrt(2)) : '–')),
    percent: row.map(percent),
    top,
    out: out[query].map(decimals),
    weights: weights.map((row) => row.map(decimals)),
    chosen: query,
  };
}
