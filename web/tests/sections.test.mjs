// A real model's heads, the order of the tokens, and the scale of the dot products.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { safetensors } from '../page/safetensors.js';
import { attention, decimals, lesson, start, words } from './lesson.mjs';
import { becomes, goTo, reads, tip, visit } from './page.mjs';

const sentence = () => {
  const { buffer, byteOffset, length } = readFileSync(
    new URL('../../tests/data/minilm_lesson_sentence.safetensors', import.meta.url),
  );
  return safetensors(buffer.slice(byteOffset, byteOffset + length));
};

const page = await visit();
await reads(page, 'engine-text', /^Computed on WebGPU/);
const pick = (name) => page.getByRole('button', { name });
const choice = (name) => page.getByRole('combobox', { name, exact: true });
/** A table's body as text, ASCII minus and no gap before the percent sign. */
const cells = (id) =>
  page.locator(`#${id} tbody tr`).evaluateAll((rows) => {
    const text = (cell) => cell.textContent.replaceAll('\u2212', '-').replaceAll('\u00a0', '');
    return rows.map((row) => [...row.cells].map(text));
  });

test('“it” looks at “animal” in one head and at “tired” in another', async () => {
  await goTo(page, 'model');
  const most = (pattern) => reads(page, 'model-most', pattern);
  await most(/^Layer 5, head 11: “it” attends most to “animal”, 67.%$/);
  await pick('“it” → “tired”: layer 2, head 1').click();
  await most(/^Layer 2, head 1: “it” attends most to “tired”, 71.%$/);
  assert.equal(await choice('Layer').inputValue(), '2');
  assert.equal(await choice('Head').inputValue(), '1');
  await reads(
    page,
    'model-note',
    /these weights differ from the model’s own, in f64, by [1-9]e−[678] at most/,
  );
  await pick('“it” → “animal”: layer 5, head 11').click();
  await most(/^Layer 5, head 11: “it” attends most to “animal”, 67.%$/);
  // Another token, by the drawing and by the table.
  await page
    .getByRole('group', { name: 'The token that asks' })
    .last()
    .getByRole('button', { name: 'tired' })
    .click();
  await most(/^Layer 5, head 11: “tired”/);
  await page.locator('#model-matrix').getByRole('button', { name: 'street' }).click();
  await most(/^Layer 5, head 11: “street”/);
  const arcs = page.locator('#arcs button[aria-pressed=true]');
  assert.deepEqual(await arcs.allTextContents(), ['street']);
});

test('every head of every layer shows the model’s own weights', async () => {
  const file = sentence();
  const n = JSON.parse(file.metadata.tokens).length;
  for (const layer of [0, 2, 5]) {
    const weights = file.tensor(`layer${layer}.weights`);
    await choice('Layer').selectOption(String(layer));
    for (let head = 0; head < 12; head++) {
      await choice('Head').selectOption(String(head));
      await reads(page, 'model-most', new RegExp(`^Layer ${layer}, head ${head}: `));
      const shown = (await cells('model-matrix')).flatMap((row) => row.slice(1).map(Number));
      const want = weights.slice(head * n * n, (head + 1) * n * n);
      assert.equal(shown.length, n * n);
      const off = shown.map((x, at) => Math.abs(x - 100 * want[at]));
      assert.ok(Math.max(...off) <= 0.501, `layer ${layer}, head ${head}: ${Math.max(...off)}`);
    }
  }
});

test('shuffled tokens take their outputs along, but not under the causal mask', async () => {
  await goTo(page, 'order');
  await reads(page, 'order-says', /every token keeps its output\.$/);
  const says = (pattern) => reads(page, 'order-says', pattern);
  const inOrder = lesson.computed.out.map((out) => `(${out.map(decimals).join(', ')})`);
  const shuffled = await cells('order-table');
  assert.deepEqual(
    shuffled.map((row) => row[2]),
    inOrder,
  );
  assert.deepEqual(
    shuffled.map((row) => row[3]),
    inOrder,
  );
  for (const row of shuffled) assert.match(row[4], /^(0|[1-9]e-[789])$/);
  const places = (rows) => rows.map((row) => Number(row[1].split(' → ')[1]) - 1);
  assert.deepEqual(places(shuffled).toSorted(), [0, 1, 2, 3, 4, 5]);

  await pick('Shuffle').click();
  await becomes(async () => places(await cells('order-table')).join() !== places(shuffled).join(), true);
  await says(/every token keeps its output\.$/);
  const heading = await page.locator('#order-says').textContent();
  const at = places(await cells('order-table'));
  const sequence = at.map((_, place) => words[at.indexOf(place)]);
  assert.ok(heading.startsWith(`“${sequence.join(' ')}”: `), heading);

  await page.getByLabel('Causal mask').check();
  await says(/, causal: outputs change by up to \d\.\d\d\.$/);
  const order = at.map((_, place) => at.indexOf(place));
  const { q, k, v } = start();
  const moved = (part) => order.map((token) => part[token]);
  const { out } = attention({ q: moved(q), k: moved(k), v: moved(v) }, { causal: true });
  const causal = await cells('order-table');
  const vector = (numbers) => `(${numbers.map(decimals).join(', ')})`;
  assert.deepEqual(
    causal.map((row) => row[2]),
    lesson.causal.out.map(vector),
  );
  assert.deepEqual(
    causal.map((row) => row[3]),
    at.map((place) => vector(out[place])),
  );

  await pick('In order').click();
  await says(/^“The cat sat on the mat”, causal: every token keeps its output\.$/);
  await page.getByLabel('Causal mask').uncheck();
  await says(/^“The cat sat on the mat”: every token keeps its output\.$/);
});

test('the order follows what is dragged in the demo', async () => {
  await tip(page, 'Key of cat').press('Shift+ArrowLeft');
  const moved = start();
  moved.k[1] = [1.7, 1];
  const outputs = attention(moved).out.map((out) => `(${out.map(decimals).join(', ')})`);
  await becomes(async () => (await cells('order-table')).map((row) => row[2]), outputs);
  await pick('Reset').click();
});

test('random vectors of 64 numbers spread by 8, and by 1 when divided', async () => {
  await goTo(page, 'scale');
  const says = new RegExp(
    '^Over 64 queries: q·k spread by (\\S+), the largest weight is (\\d+).% on average; ' +
      'divided, they spread by (\\S+) and it is (\\d+).%\\.$',
  );
  const read = async () =>
    says
      .exec(await reads(page, 'scale-says', says))
      .slice(1)
      .map(Number);
  const first = await cells('scale-table');
  const check = ([wide, hard, narrow, soft]) => {
    // 64 queries share 16 keys: five standard deviations of such a draw.
    assert.ok(Math.abs(wide - 8) < 2.5, `${wide}`);
    assert.ok(Math.abs(narrow - wide / 8) < 0.01, `${narrow}`);
    const { unscaled, scaled } = lesson.saturation_d64['16'];
    assert.ok(Math.abs(hard - 100 * unscaled.mean_max_weight) < 12, `${hard}`);
    assert.ok(Math.abs(soft - 100 * scaled.mean_max_weight) < 12, `${soft}`);
  };
  check(await read());
  await pick('Draw new numbers').click();
  await becomes(async () => (await cells('scale-table')).join() !== first.join(), true);
  check(await read());
  const rows = await cells('scale-table');
  const dots = rows.map((row) => Number(row[1]));
  for (const [column, scale] of [
    [3, 1],
    [5, 1 / 8],
  ]) {
    const powers = dots.map((dot) => Math.exp(scale * dot));
    const sum = powers.reduce((a, b) => a + b);
    rows.forEach((row, j) => {
      const percent = (100 * powers[j]) / sum;
      assert.ok(Math.abs(parseFloat(row[column]) - percent) < 1.1, `${row} ${percent}`);
    });
  }
});
