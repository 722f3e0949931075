// A small chart, both axes logarithmic: twice the tokens are one step to the right, twice the
// amount is one step up.

import { html, svg } from './dom.js';

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [360, 240, 64, 34, 14, 20];

/**
 * `lines`: `{ name, points: [[x, y], ...] }`; `mark`: a level `{ y, text }`, drawn across;
 * `write(y)`: a level in words; `xs`, all tokens in order.
 */
export function chart(title, xs, lines, write, mark) {
  const ys = lines.flatMap(({ points }) => points.map(([, y]) => y)).filter((y) => y > 0);
  const empty = ys.length === 0;
  if (empty) ys.push(1, 2);
  const [low, high] = [Math.floor(Math.log2(Math.min(...ys))), Math.ceil(Math.log2(Math.max(...ys, mark?.y ?? 0)) + 0.01)];
  const across = (x) => LEFT + (Math.log2(x / xs[0]) / Math.log2(xs.at(-1) / xs[0])) * (WIDTH - LEFT - RIGHT);
  const up = (y) => HEIGHT - BOTTOM - ((Math.log2(y) - low) / (high - low)) * (HEIGHT - BOTTOM - TOP);
  const parts = [];
  const every = Math.ceil((high - low) / 6);
  for (let level = low; level <= high; level += every) {
    const y = up(2 ** level);
    parts.push(svg('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }));
    parts.push(svg('text', { x: LEFT - 6, y: y + 4, class: 'end' }, empty ? '' : write(2 ** level)));
  }
  for (const x of xs.filter((_, i) => i % 2 === 0)) {
    parts.push(svg('text', { x: across(x), y: HEIGHT - BOTTOM + 16, class: 'middle' }, String(x)));
  }
  parts.push(svg('text', { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 3, class: 'middle' }, 'tokens'));
  if (mark) {
    parts.push(svg('line', { class: 'mark', x1: LEFT, x2: WIDTH - RIGHT, y1: up(mark.y), y2: up(mark.y) }));
    parts.push(svg('text', { x: LEFT + 4, y: up(mark.y) + 13, class: 'marked' }, mark.text));
  }
  for (const { name, points } of lines) {
    const at = points.filter(([, y]) => y > 0).map(([x, y]) => [across(x), up(y)]);
    parts.push(svg('polyline', { class: `line ${name}`, points: at.map((p) => p.join(',')).join(' ') }));
    parts.push(...at.map(([cx, cy]) => svg('circle', { class: `dot ${name}`, cx, cy, r: 3.5 })));
  }
  const legend = lines.map(({ name }) => html('span', { class: `key ${name}` }, name));
  return [
    html('p', { class: 'charttitle' }, title, ...legend),
    svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${title}; the same figures are in the table` }, ...parts),
  ];
}
