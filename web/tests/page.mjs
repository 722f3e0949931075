// The page in a browser, as its tests see it.

import assert from 'node:assert/strict';
import { after, afterEach } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

import { open } from './browser.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
export const pictures = `${root}target/web/shots/`;

export const desk = { viewport: { width: 1280, height: 900 } };
export const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/**
 * After so many ms it hangs. No answer is judged by how soon it comes: a pipeline costs a software
 * adapter seconds, on a busy machine many.
 */
export const patience = 600_000;
const hangs = `it hangs: nothing else in ${patience / 60_000} minutes`;

const opened = [];

/**
 * Opens the page, until the end of a test or of all. After each test it must be free of errors, but
 * for those that match `allowed`.
 */
export async function visit({ test, allowed, before = () => {}, ...options } = {}) {
  const prepare = async (page) => {
    await page.addInitScript(watch);
    await before(page);
  };
  const { page, errors, close } = await open(`${root}web/dist`, { ...desk, ...options, before: prepare });
  page.setDefaultTimeout(patience);
  opened.push({ errors, allowed, close });
  test?.after(close);
  return page;
}

afterEach(() => {
  for (const { errors, allowed } of opened) {
    assert.deepEqual(
      errors.splice(0).filter((error) => !allowed?.test(error)),
      [],
      'errors of the page',
    );
  }
});

after(() => Promise.all(opened.map(({ close }) => close())));

/**
 * Runs on the page before its own scripts, as `window.seen`: the devices it opened, how often it
 * dispatched. `hold(name)` keeps the answers of a WebGPU function back until `release(name)`;
 * kernels whose label matches `silent` are not dispatched.
 */
function watch() {
  const gates = new Map();
  const seen = {
    devices: [],
    dispatches: 0,
    silent: null,
    hold(name) {
      const gate = {};
      gate.open = new Promise((resolve) => (gate.release = resolve));
      gates.set(name, gate);
    },
    release(name) {
      gates.get(name)?.release();
      gates.delete(name);
    },
  };
  window.seen = seen;
  if (!window.GPU) return;
  const wrap = (type, name, around) => {
    const real = type.prototype[name];
    type.prototype[name] = function (...args) {
      return around.call(this, () => real.apply(this, args), ...args);
    };
  };
  const gated = (type, name, then = (answer) => answer) =>
    wrap(type, name, async (real) => {
      await gates.get(name)?.open;
      return then(await real());
    });
  gated(GPU, 'requestAdapter');
  gated(GPUBuffer, 'mapAsync');
  gated(GPUQueue, 'onSubmittedWorkDone');
  gated(GPUAdapter, 'requestDevice', (device) => {
    seen.devices.push(device);
    return device;
  });
  wrap(GPUComputePassEncoder, 'setPipeline', function (real, pipeline) {
    this.kernel = pipeline.label;
    return real();
  });
  wrap(GPUComputePassEncoder, 'dispatchWorkgroups', function (real) {
    if (seen.silent?.test(this.kernel)) return;
    seen.dispatches += 1;
    real();
  });
}

/** Waits until `read()` gives what is expected. */
export async function becomes(read, expected) {
  const end = Date.now() + patience;
  for (;;) {
    const got = await read();
    if (isDeepStrictEqual(got, expected)) return;
    if (Date.now() > end) assert.deepEqual(got, expected, `${hangs} than ${JSON.stringify(got)}`);
    await pause(50);
  }
}

/** Waits until an element's text matches. */
export async function reads(page, id, pattern) {
  const end = Date.now() + patience;
  for (;;) {
    const text = await page.locator(`#${id}`).textContent();
    if (pattern.test(text)) return text;
    if (Date.now() > end) assert.match(text, pattern, `#${id}: ${hangs} than ${text}`);
    await pause(50);
  }
}

/** The demo's figures as the page shows them, as `figures` of lesson.mjs. */
export const shown = (page) =>
  page.evaluate(() => {
    const text = (element) => element.textContent.replaceAll('\u2212', '-').replaceAll('\u00a0', '');
    const texts = (within, selector) => [...within.querySelectorAll(selector)].map(text);
    const rows = [...document.querySelectorAll('#row tbody tr')];
    const matrix = [...document.querySelectorAll('#matrix tbody tr')];
    return {
      most: text(document.getElementById('most')),
      raw: rows.map((row) => text(row.querySelector('.dot'))),
      scaled: rows.map((row) => text(row.querySelector('.score'))),
      percent: rows.map((row) => text(row.querySelector('.percent'))),
      top: rows.findIndex((row) => row.classList.contains('top')),
      out: text(document.getElementById('output'))
        .replace(/.*\((.*)\)/, '$1')
        .split(', '),
      weights: matrix.map((row) => texts(row, 'tbody td')),
      chosen: matrix.findIndex((row) => row.classList.contains('chosen')),
    };
  });

/** The names of the arrows in the plane. */
export const arrows = (page) =>
  page
    .locator('#plane .arrow')
    .evaluateAll((all) =>
      all.filter((arrow) => getComputedStyle(arrow).visibility === 'visible').map((arrow) => arrow.ariaLabel),
    );

/** Until the page has drawn what its last scripts changed: a frame begins, the next one follows it. */
export const drawn = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Scrolls to an element at once. */
export const goTo = (page, id, block = 'start') =>
  page
    .locator(`#${id}`)
    .evaluate((element, block) => element.scrollIntoView({ block, behavior: 'instant' }), block);

/** An arrow's tip by what it is called: `tip(page, 'Key of cat')`. */
export const tip = (page, name) => page.locator(`#plane [role=slider][aria-label^="${name}"]`);

/** Where a tip is, in the plane's units. */
export async function place(page, name) {
  const text = await tip(page, name).getAttribute('aria-valuetext');
  return text.replaceAll('\u2212', '-').slice(1, -1).split(', ').map(Number);
}

/** Where a point of the plane is in the window, in pixels. */
export const pixel = (page, [x, y]) =>
  page.locator('#plane svg').evaluate(
    (plane, [x, y]) => {
      const point = new DOMPoint(x, -y).matrixTransform(plane.getScreenCTM());
      return [point.x, point.y];
    },
    [x, y],
  );
