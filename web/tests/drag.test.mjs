// Tips are moved by mouse, by keyboard and by touch; the figures follow.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { figures, lesson, start } from './lesson.mjs';
import { becomes, goTo, phone, pixel, place, reads, shown, tip, visit } from './page.mjs';

const page = await visit();
await reads(page, 'most', /Attends/);
const shows = (vectors, query) => becomes(() => shown(page), figures(vectors, query));
const reset = () => page.getByRole('button', { name: 'Reset' }).click();

/** Takes a tip with the mouse and leaves it, still held, at a point of the plane. */
async function carry(name, to) {
  await goTo(page, 'plane', 'center');
  await page.mouse.move(...(await pixel(page, await place(page, name))));
  await page.mouse.down();
  await page.mouse.move(...(await pixel(page, to)), { steps: 8 });
}

async function drag(name, to) {
  await carry(name, to);
  await page.mouse.up();
}

test('the key of cat, dragged to the far side, loses its weight', async () => {
  await drag('Key of cat', [-2.2, -1]);
  const moved = start();
  moved.k[1] = [-2.2, -1];
  await shows(moved);
  const got = await shown(page);
  assert.equal(got.percent[1], '0%');
  assert.equal(got.most, 'Attends most to mat, 71%');
  assert.deepEqual(await place(page, 'Key of cat'), [-2.2, -1]);
});

test('the query follows the mouse, and only the token that asks is moved', async () => {
  await reset();
  await drag('Query of sat', [-1, 2]);
  const moved = start();
  moved.q[2] = [-1, 2];
  await shows(moved);
  await page.locator('#query-1').check({ force: true });
  await shows(moved, 1);
  assert.deepEqual(await place(page, 'Query of cat'), lesson.q[1]);
});

test('beyond the plane a tip stays at its edge', async () => {
  await reset();
  await carry('Key of mat', [2.9, 2.9]);
  const [x, y] = await pixel(page, [9, 7]);
  await page.mouse.move(x, y);
  const moved = start();
  moved.k[5] = [3, 3];
  await shows(moved);
  await page.mouse.move(...(await pixel(page, [-60, 0.5])));
  await page.mouse.move(...(await pixel(page, [-60, -50])));
  moved.k[5] = [-3, -3];
  await shows(moved);
  // Back inside, the tip is under the pointer again.
  await page.mouse.move(...(await pixel(page, [1, 0.5])));
  await page.mouse.up();
  moved.k[5] = [1, 0.5];
  await shows(moved);
  // Let go, it stays.
  await page.mouse.move(...(await pixel(page, [2, 2])));
  await shows(moved);
});

test('taken beside its middle, a tip does not jump', async () => {
  await reset();
  await goTo(page, 'plane', 'center');
  const [x, y] = await pixel(page, await place(page, 'Key of on'));
  await page.mouse.move(x + 9, y - 7);
  await page.mouse.down();
  const [dx, dy] = await pixel(page, [-0.3, 1.1]);
  await page.mouse.move(dx + 9, dy - 7);
  await page.mouse.up();
  assert.deepEqual(await place(page, 'Key of on'), [-0.3, 1.1]);
});

test('a page that scrolls meanwhile keeps the tip under the pointer', async () => {
  await reset();
  await carry('Key of on', [0.5, -1]);
  const before = await page.evaluate(() => scrollY);
  await page.mouse.wheel(0, 60);
  await becomes(() => page.evaluate(() => scrollY), before + 60);
  const to = await pixel(page, [0.5, -2]);
  await page.mouse.move(...to);
  await page.mouse.up();
  assert.deepEqual(await place(page, 'Key of on'), [0.5, -2]);
  await page.evaluate((y) => scrollTo({ top: y, behavior: 'instant' }), before);
});

test('the right button drags nothing', async () => {
  await reset();
  await goTo(page, 'plane', 'center');
  await page.mouse.move(...(await pixel(page, await place(page, 'Key of sat'))));
  await page.mouse.down({ button: 'right' });
  await page.mouse.move(...(await pixel(page, [2, -2])));
  await page.mouse.up({ button: 'right' });
  assert.deepEqual(await place(page, 'Key of sat'), lesson.k[2]);
});

test('keys move a tip in steps, to the edge and home', async () => {
  await reset();
  const key = tip(page, 'Key of cat');
  const moved = start();
  const after = async (press, to) => {
    await key.press(press);
    moved.k[1] = to;
    assert.deepEqual(await place(page, 'Key of cat'), to, press);
  };
  await after('ArrowLeft', [2.1, 1]);
  await after('ArrowUp', [2.1, 1.1]);
  await after('ArrowRight', [2.2, 1.1]);
  await after('ArrowDown', [2.2, 1]);
  await after('Shift+ArrowDown', [2.2, 0.5]);
  await after('Shift+ArrowRight', [2.7, 0.5]);
  await after('Shift+ArrowRight', [3, 0.5]);
  await after('ArrowRight', [3, 0.5]);
  assert.equal(await key.getAttribute('aria-valuetext'), '(3.00, 0.50)');
  await shows(moved);
  await after('Home', [2.2, 1]);
  await shows(start());
  const before = await page.evaluate(() => scrollY);
  await after('ArrowDown', [2.2, 0.9]);
  assert.equal(await page.evaluate(() => scrollY), before, 'arrow keys on a tip do not scroll');
  // Other keys, and the browser's own shortcuts, are left alone.
  await after('Control+ArrowLeft', [2.2, 0.9]);
  await after('a', [2.2, 0.9]);
});

test('while the GPU is slow, no step is lost, the arrow follows, and the last place counts', async () => {
  await reset();
  await shows(start());
  await page.evaluate(() => window.seen.hold('mapAsync'));
  const key = tip(page, 'Key of cat');
  for (let step = 1; step <= 5; step++) {
    await key.press('ArrowLeft');
    assert.deepEqual(await place(page, 'Key of cat'), [Number((2.2 - 0.1 * step).toFixed(1)), 1]);
  }
  await drag('Key of sat', [0.4, -1.2]);
  assert.deepEqual(await place(page, 'Key of sat'), [0.4, -1.2]);
  await page.locator('#query-0').check({ force: true });
  assert.equal(await page.locator('#row caption').textContent(), 'What The sees');
  await page.evaluate(() => window.seen.release('mapAsync'));
  const moved = start();
  moved.k[1] = [1.7, 1];
  moved.k[2] = [0.4, -1.2];
  await shows(moved, 0);
});

test('what changed is announced once, when the tip is still', async () => {
  await reset();
  await shows(start());
  await reads(page, 'said', /^sat attends most to cat, 76.%\. Output \(1\.54, 0\.48\)\.$/);
  // How long a tip is still is up to the test: between two answers of a slow GPU it is.
  await page.evaluate(() => {
    window.setTimeout = (call) => {
      window.still = call;
      return 1;
    };
    window.clearTimeout = () => (window.still = () => {});
    window.told = [];
    const said = document.getElementById('said');
    new MutationObserver(() => window.told.push(said.textContent)).observe(said, { childList: true });
  });
  await tip(page, 'Key of cat').evaluate((key) => {
    const press = { key: 'ArrowLeft', shiftKey: true };
    for (let step = 0; step < 8; step++) key.dispatchEvent(new KeyboardEvent('keydown', press));
  });
  const moved = start();
  moved.k[1] = [-1.8, 1];
  await shows(moved);
  assert.equal((await page.evaluate(() => window.told)).length, 0);
  await page.evaluate(() => window.still());
  await reads(page, 'said', /^sat attends most to mat/);
  assert.equal((await page.evaluate(() => window.told)).length, 1);
  assert.equal(await page.locator('#said').getAttribute('role'), 'status');
});

/** Touches of some fingers: `touch(type, ...points)`; a move without one of them lifts it. */
async function fingers(page) {
  const client = await page.context().newCDPSession(page);
  return (type, ...points) => {
    const touchPoints = points.map(([x, y], id) => ({ x, y, id }));
    return client.send('Input.dispatchTouchEvent', { type, touchPoints });
  };
}

test('a finger drags a tip on a phone, a second finger does not disturb it', async (t) => {
  const page = await visit({ test: t, webgpu: false, ...phone });
  await reads(page, 'most', /Attends/);
  await goTo(page, 'plane', 'center');
  const touch = await fingers(page);
  const before = await page.evaluate(() => scrollY);
  const from = await pixel(page, lesson.k[1]);
  const to = await pixel(page, [-2.2, -1]);
  const half = from.map((x, c) => (x + to[c]) / 2);
  await touch('touchStart', from);
  await touch('touchMove', half);
  await touch('touchMove', to);
  assert.equal(await page.evaluate(() => scrollY), before, 'a tip that is dragged does not scroll');
  assert.deepEqual(await place(page, 'Key of cat'), [-2.2, -1]);

  // A second finger on the same tip.
  const near = to.map((x) => x + 6);
  await touch('touchStart', to, near);
  await touch(
    'touchMove',
    to,
    near.map((x) => x + 60),
  );
  assert.deepEqual(await place(page, 'Key of cat'), [-2.2, -1]);
  const end = await pixel(page, [-2.2, 1]);
  await touch('touchMove', end);
  assert.deepEqual(await place(page, 'Key of cat'), [-2.2, 1], 'the first finger still holds it');
  await touch('touchEnd');

  const moved = start();
  moved.k[1] = [-2.2, 1];
  await becomes(() => shown(page), figures(moved));

  // Two fingers, two tips.
  const [a, b] = [await pixel(page, lesson.k[5]), await pixel(page, lesson.k[0])];
  await touch('touchStart', a);
  await touch('touchStart', a, b);
  await touch('touchMove', await pixel(page, [2, 2]), await pixel(page, [-1, -2]));
  await touch('touchEnd');
  moved.k[5] = [2, 2];
  moved.k[0] = [-1, -2];
  await becomes(() => shown(page), figures(moved));
});

test('a finger beside the tips scrolls the page', async (t) => {
  const page = await visit({ test: t, webgpu: false, ...phone });
  await reads(page, 'most', /Attends/);
  await goTo(page, 'plane', 'center');
  const touch = await fingers(page);
  const [x, y] = await pixel(page, [0.5, -2.5]);
  const before = await page.evaluate(() => scrollY);
  await touch('touchStart', [x, y]);
  for (let step = 1; step <= 8; step++) await touch('touchMove', [x, y - 15 * step]);
  await touch('touchEnd');
  await becomes(() => page.evaluate((before) => scrollY > before + 50, before), true);
});
