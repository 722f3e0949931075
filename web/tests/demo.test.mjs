// The demo shows the lesson's figures, whoever asks, computed by the kernels.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decimals, figures, lesson, start, words } from './lesson.mjs';
import { arrows, becomes, reads, shown, tip, visit } from './page.mjs';

const page = await visit();
const shows = (vectors, query, divided) => becomes(() => shown(page), figures(vectors, query, divided));
const choose = (i) => page.locator(`#query-${i}`).check({ force: true });
const divide = page.getByRole('checkbox', { name: /^Divide by/ });

test('the first figures are those that the lesson prints', async () => {
  await reads(page, 'engine-text', /^Computed on WebGPU: ./);
  const got = await shown(page);
  const { printed } = lesson;
  assert.equal(got.most, 'Attends most to cat, 76%');
  assert.deepEqual(got.raw, printed.raw_sat);
  assert.deepEqual(got.scaled, printed.scaled_sat);
  assert.deepEqual(got.percent, printed.percent_sat);
  assert.deepEqual(got.out, printed.out_sat);
  assert.deepEqual(got.weights, printed.weights);
  assert.equal(words[got.top], 'cat');
  assert.equal(words[got.chosen], 'sat');
  assert.equal(await page.locator('#most').textContent(), 'Attends most to cat, 76\u00a0%');
});

test('bars are as long as the weights', async () => {
  const widths = await page
    .locator('#row .bar')
    .evaluateAll((bars) =>
      bars.map((bar) => bar.getBoundingClientRect().width / bar.parentElement.clientWidth),
    );
  const row = lesson.computed.weights[2];
  const largest = Math.max(...widths) / Math.max(...row);
  widths.forEach((width, j) => assert.ok(Math.abs(width - largest * row[j]) < 0.005, words[j]));
});

test('every token can ask', async () => {
  for (const i of words.keys()) {
    await choose(i);
    await shows(start(), i);
    assert.equal(await page.locator('#row caption').textContent(), `What ${words[i]} sees`);
    const got = await shown(page);
    const { out, argmax } = lesson.computed;
    assert.deepEqual(got.out, out[i].map(decimals));
    assert.equal(words[got.top], argmax[i]);
    assert.equal(await tip(page, `Query of ${words[i]}`).count(), 1);
  }
});

test('a row of the matrix becomes the query, by its name and by its cells', async () => {
  await page.locator('#matrix tbody button').nth(5).click();
  await shows(start(), 5);
  assert.ok(await page.locator('#query-5').isChecked());
  await page.locator('#matrix tbody tr').nth(1).locator('td').nth(3).click();
  await shows(start(), 1);
  assert.ok(await page.locator('#query-1').isChecked());
  const pressed = await page.locator('#matrix button[aria-pressed=true]').allTextContents();
  assert.deepEqual(pressed, ['cat']);
});

test('a row writes its dot product out, under the pointer and in focus', async () => {
  await choose(2);
  await shows(start(), 2);
  const written = () => page.locator('#written-out').textContent();
  const row = (word) => page.locator(`#row tr[data-key="${word}"]`);
  await row('cat').hover();
  const largest = 'q_sat · k_cat = 2.40 × 2.20 + 0.60 × 1.00 = 5.88';
  assert.equal(await written(), largest);
  await row('the').hover();
  assert.equal(await written(), 'q_sat · k_the = 2.40 × (−1.40) + 0.60 × (−0.20) = −3.48');
  await page.locator('h1').hover();
  assert.equal(await written(), largest, 'the largest, if none is pointed at');
  await row('mat').focus();
  assert.equal(await written(), 'q_sat · k_mat = 2.40 × 1.80 + 0.60 × (−0.90) = 3.78');
  assert.equal(await row('mat').getAttribute('aria-describedby'), 'written-out');
});

test('without the division the largest weight grows', async () => {
  await divide.uncheck();
  await shows(start(), 2, false);
  const got = await shown(page);
  assert.deepEqual(got.percent, lesson.scaling_off.sat.percent);
  assert.equal(got.most, 'Attends most to cat, 87%');
  assert.deepEqual(got.weights[4], lesson.scaling_off.weights[4].map(decimals));
  assert.deepEqual(got.out, lesson.scaling_off.sat.out.map(decimals));
  await divide.check();
  await shows(start());
});

test('the second tab shows the values and their mix', async () => {
  const tabs = page.getByRole('tab');
  const selected = () => tabs.evaluateAll((all) => all.map((tab) => tab.ariaSelected));
  await tabs.filter({ hasText: 'Values and output' }).click();
  const values = words.map((word, j) => `Value of ${word}, token ${j + 1}`);
  assert.deepEqual(await arrows(page), [...values, 'Output of sat (1.54, 0.48)']);
  assert.deepEqual(await selected(), ['false', 'true']);
  const label = await page.getByRole('tabpanel').getAttribute('aria-labelledby');
  assert.equal(await page.locator(`#${label}`).textContent(), 'Values and output');
  await page.locator('#row tr[data-key="cat"]').hover();
  assert.equal(await page.locator('#written-out').textContent(), 'weight × v_cat = 0.76 × (2.00, 1.00)');
  assert.equal(await page.locator('#output').textContent(), 'o_sat = (1.54, 0.48)');

  // Weights do not depend on the values; outputs do.
  const moved = start();
  moved.v[1] = [2.1, 1.5];
  await tip(page, 'Value of cat').press('ArrowRight');
  await tip(page, 'Value of cat').press('Shift+ArrowUp');
  await shows(moved);

  await tabs.nth(1).press('ArrowLeft');
  assert.deepEqual(await selected(), ['true', 'false']);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-keys');
  const keys = words.map((word, j) => `Key of ${word}, token ${j + 1}`);
  assert.deepEqual(await arrows(page), [...keys, 'Query of sat']);
});

test('reset brings everything back', async () => {
  await tip(page, 'Key of cat').press('ArrowLeft');
  await divide.uncheck();
  await choose(5);
  await page.getByRole('button', { name: 'Reset' }).click();
  await shows(start());
  assert.ok(await divide.isChecked());
});

test('the figures are what the kernels wrote, and the two ways are compared', async () => {
  const dispatches = () => page.evaluate(() => window.seen.dispatches);
  const moved = start();
  const step = async (key) => {
    const before = await dispatches();
    await tip(page, 'Key of cat').press(key);
    return before;
  };
  moved.k[1] = [2.1, 1];
  const before = await step('ArrowLeft');
  await shows(moved);
  // Three calls: scores, softmax and values for the dot products and again for the weights, flash.
  assert.ok((await dispatches()) - before >= 7, 'each step is dispatched');
  await reads(page, 'agreement', /^Computed twice, by staged kernels, .*: outputs differ by (0|[1-9]e−[789]) at most\.$/);

  const silence = (source) =>
    page.evaluate((source) => (window.seen.silent = source && new RegExp(source)), source);
  await silence('flash');
  await step('ArrowRight');
  await reads(page, 'agreement', /differ by [1-9]e[+−][01] at most/);
  await silence('.');
  await step('ArrowUp');
  await reads(page, 'most', /Attends most to The, 0/);
  await silence(null);
  moved.k[1] = [2.2, 1.0];
  await step('ArrowDown');
  await shows(moved);
});
