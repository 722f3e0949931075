// The page for those who use it: by keyboard, by ear, on a phone, in the dark.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { figures, start, words } from './lesson.mjs';
import { becomes, desk, goTo, phone, reads, shown, visit } from './page.mjs';

const page = await visit({ webgpu: false });
const sections = ['model', 'cost', 'order', 'scale'];

/** Scrolls through the page until every section has computed. */
async function fill(page) {
  for (const id of sections) {
    await goTo(page, id);
  }
  await reads(page, 'model-note', /differ/);
  await reads(page, 'order-says', /every token/);
  await reads(page, 'scale-says', /^Over/);
  await page.evaluate(() => scrollTo({ top: 0, behavior: 'instant' }));
}

await reads(page, 'most', /Attends/);
await fill(page);

test('the keyboard reaches everything, in order, and shows where it is', async () => {
  await page.evaluate(() => document.activeElement.blur());
  const stops = [];
  for (;;) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(() => {
      const here = document.activeElement;
      const ring = here.labels?.[0]?.parentElement.id === 'queries' ? here.labels[0] : here;
      const grip = here.querySelector('.grip');
      const marked = grip
        ? getComputedStyle(grip).stroke !== 'none'
        : getComputedStyle(ring).outlineStyle !== 'none';
      const name = here.getAttribute('aria-label') ?? (here.id || here.dataset.key || here.textContent);
      return { name, marked, last: here.parentElement.id === 'model-claims' };
    });
    if (stop.last) break;
    assert.ok(stop.marked, `the focus on ${stop.name} is seen`);
    stops.push(stop.name);
    assert.ok(stops.length < 100);
  }
  assert.deepEqual(stops, [
    'Skip to the demo',
    'engine-gpu',
    ...['Steps', 'Demo', 'A real model', 'Cost', 'Order', 'Why divide?'],
    'query-2',
    'tab-keys',
    ...words.map((word, j) => `Key of ${word}, token ${j + 1}`),
    'Query of sat',
    'divide',
    'reset',
    ...words,
    'All weights of the six tokens',
    ...words,
  ]);
});

test('arrow keys choose the token that asks; the first link skips to the demo', async () => {
  await page.locator('#query-2').focus();
  await page.keyboard.press('ArrowRight');
  await becomes(() => shown(page), figures(start(), 3));
  await page.keyboard.press('ArrowLeft');
  await becomes(() => shown(page), figures(start(), 2));
  await page.locator('.skip').focus();
  await page.keyboard.press('Enter');
  await becomes(() => page.evaluate(() => location.hash), '#demo');
});

test('everything that can be reached has a role and a name', async () => {
  const client = await page.context().newCDPSession(page);
  const { nodes } = await client.send('Accessibility.getFullAXTree');
  const has = (node, property) =>
    node.properties?.some(({ name, value }) => name === property && value.value);
  const roles = [
    ...['button', 'checkbox', 'combobox', 'image', 'link', 'navigation', 'progressbar'],
    ...['radio', 'radiogroup', 'region', 'slider', 'tab', 'tablist', 'tabpanel'],
  ];
  const asked = nodes
    .filter((node) => !node.ignored && node.role.value !== 'RootWebArea')
    .filter((node) => has(node, 'focusable') || roles.includes(node.role.value));
  assert.ok(asked.length > 80, `${asked.length}`);
  for (const { role, name } of asked) {
    assert.ok(name?.value.trim(), `a ${role.value} without a name`);
    assert.notEqual(role.value, 'generic', name.value);
  }
  const sliders = asked.filter(({ role }) => role.value === 'slider');
  assert.equal(sliders.length, 7);
  const levels = await page
    .locator('h1, h2, h3')
    .evaluateAll((all) => all.map((heading) => Number(heading.tagName[1])));
  levels.forEach((level, i) => assert.ok(level <= (levels[i - 1] ?? 0) + 1, 'no heading level is skipped'));
  assert.equal(await page.locator('html').getAttribute('lang'), 'en');
});

for (const colorScheme of ['light', 'dark']) {
  test(`text is readable in ${colorScheme}`, async () => {
    await page.emulateMedia({ colorScheme });
    const poor = await page.evaluate(contrasts);
    assert.deepEqual(poor, []);
  });
}

/** Text that stands out less than WCAG AA asks: 4.5 to 1, and 3 to 1 for what is drawn. */
function contrasts() {
  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const over = (...layers) => {
    for (const layer of layers) {
      context.fillStyle = layer;
      context.fillRect(0, 0, 1, 1);
    }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((x) => ((x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const grounds = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.unshift(getComputedStyle(at).backgroundColor);
    return layers;
  };
  const ratio = (element, colour) => {
    const behind = grounds(element);
    const [a, b] = [light(over(...behind, colour)), light(over(...behind))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const poor = [];
  const ask = (element, colour, least, what) => {
    const got = ratio(element, colour);
    if (got < least) poor.push(`${what}: ${got.toFixed(2)}`);
  };
  const text = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const heat = [...document.querySelectorAll('#matrix tbody td')].slice(0, 5);
  heat.forEach((cell, i) => cell.style.setProperty('--weight', `${25 * i}%`));
  let count = 0;
  for (const element of document.body.querySelectorAll('*')) {
    if (!text(element) || element.disabled || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement;
    ask(
      element,
      drawn ? style.fill : style.color,
      4.5,
      `${element.tagName} “${element.textContent.slice(0, 20)}”`,
    );
    count += 1;
  }
  if (count < 300) poor.push(`only ${count} texts found`);
  for (const selector of ['.arrow path', '.chart .line', '#reset', '#layer', '.chips label']) {
    for (const element of document.querySelectorAll(selector)) {
      const style = getComputedStyle(element);
      const colour = { path: style.fill, polyline: style.stroke }[element.tagName] ?? style.borderTopColor;
      const around = element instanceof SVGElement ? element : element.parentElement;
      ask(around, colour, 3, selector);
    }
  }
  const ring = getComputedStyle(document.body).getPropertyValue('--accent');
  ask(document.body, ring, 3, 'the ring of the focus');
  return poor;
}

test('nothing moves for those who ask for less motion', async () => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  const style = await page.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior);
  assert.equal(style, 'auto');
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  await page.emulateMedia({ reducedMotion: 'no-preference' });
});

test('without JavaScript the page says what it lacks', async (t) => {
  const still = await visit({ test: t, webgpu: false, javaScriptEnabled: false });
  const seen = await still
    .locator('noscript p')
    .evaluate((text) => [text.checkVisibility(), text.textContent]);
  assert.ok(seen[0]);
  assert.match(seen[1], /^This page needs JavaScript/);
  await still.getByRole('heading', { name: 'Four steps' }).waitFor();
});

for (const width of [1280, 390, 320]) {
  test(`at ${width} px nothing is wider than the window, and figures that change move nothing`, async (t) => {
    const size = width === 1280 ? desk : phone;
    const page = await visit({ test: t, webgpu: false, ...size, viewport: { width, height: 800 } });
    await reads(page, 'most', /Attends/);
    await fill(page);
    const wide = await page.evaluate((width) => {
      const main = document.querySelector('main').getBoundingClientRect();
      const beyond = [...document.body.querySelectorAll('*')].filter((element) => {
        const within = element.parentElement.closest('.scroll, .unseen, .chips label, select, svg');
        if (within || element.matches('.skip') || !element.checkVisibility()) return false;
        const { right, left } = element.getBoundingClientRect();
        return right > main.right + 0.5 || left < main.left - 0.5;
      });
      return [
        document.documentElement.scrollWidth - width,
        ...beyond.map((element) => element.outerHTML.slice(0, 80)),
      ];
    }, width);
    assert.deepEqual(wide, [0]);

    const small = await page
      .locator('button:visible, select, .check, .chips label, nav a')
      .evaluateAll((all) =>
        all.filter((one) => one.getBoundingClientRect().height < 24).map((one) => one.textContent),
      );
    assert.deepEqual(small, [], 'targets for fingers');

    const tops = () =>
      page.evaluate(() => {
        const ids = ['written-out', 'output', 'agreement', 'matrix', 'model'];
        return ids.map((id) => document.getElementById(id).offsetTop);
      });
    const first = await tops();
    for (const i of words.keys()) {
      await page.locator(`#query-${i}`).evaluate((radio) => radio.click());
      await becomes(() => shown(page), figures(start(), i));
      for (const row of await page.locator('#row tbody tr').all()) {
        await row.evaluate((row) => row.focus({ preventScroll: true }));
        assert.deepEqual(await tops(), first, await page.locator('#written-out').textContent());
      }
    }
    await page.locator('#tab-values').evaluate((tab) => tab.click());
    assert.deepEqual(await tops(), first, 'the values');
  });
}
