// Arrows from the origin whose tips can be dragged: by mouse, touch or keyboard.

import { set, svg } from './dom.js';
import { vector } from './figures.js';

/** The plane reaches so far on each side; tips are kept inside. */
export const REACH = 3;
/** Half the drawing's side. */
const EDGE = 3.45;
/** Tips snap to this, so that the figures shown are the exact ones. */
const GRID = 0.05;
const STEP = 0.1;
const LARGE_STEP = 0.5;

const clamped = (x) => Math.max(-REACH, Math.min(REACH, Math.round(x / GRID) * GRID));
/** Without the dust of binary fractions. */
const exact = (x) => Number(x.toFixed(2));
const onGrid = (at) => at.map((x) => exact(clamped(x)));

export class Plane {
  constructor(parent) {
    const lines = [];
    for (let i = -REACH; i <= REACH; i++) {
      const role = i === 0 ? 'axis' : 'grid';
      lines.push(svg('line', { x1: -REACH, x2: REACH, y1: i, y2: i, class: role }));
      lines.push(svg('line', { y1: -REACH, y2: REACH, x1: i, x2: i, class: role }));
    }
    const ticks = [-2, -1, 1, 2].flatMap((i) => [
      svg('text', { x: i, y: 0.24, class: 'tick' }, String(i)),
      svg('text', { x: -0.12, y: -i + 0.06, class: 'tick end' }, String(i)),
    ]);
    this.svg = svg(
      'svg',
      { viewBox: `${-EDGE} ${-EDGE} ${2 * EDGE} ${2 * EDGE}`, role: 'group', 'aria-label': 'The plane' },
      svg('g', { 'aria-hidden': 'true' }, ...lines, ...ticks),
    );
    parent.append(this.svg);
  }

  /** The point of the plane under a pointer. */
  at(event) {
    const { left, top, width, height } = this.svg.getBoundingClientRect();
    return [
      ((event.clientX - left) / width) * 2 * EDGE - EDGE,
      EDGE - ((event.clientY - top) / height) * 2 * EDGE,
    ];
  }

  /**
   * Adds an arrow. `moved(at)` is called with each new place of its tip; `home()` tells where it
   * began. Without `moved` it cannot be dragged.
   */
  arrow(kind, moved, home) {
    const arrow = new Arrow(this, kind, moved, home);
    this.svg.append(arrow.group);
    return arrow;
  }
}

class Arrow {
  at = [0, 0];
  /** The pointer that holds the tip. */
  held = null;

  constructor(plane, kind, moved, home) {
    Object.assign(this, { plane, moved, home });
    this.line = svg('line', { x1: 0, y1: 0 });
    this.head = svg('path', { d: 'M0 0 -.24 .1 -.24 -.1Z' });
    this.text = svg('text', {});
    this.grip = svg('circle', { r: 0.26, class: 'grip' });
    this.group = svg('g', { class: `arrow ${kind}` }, this.line, this.head, this.grip, this.text);
    if (!moved) {
      set(this.group, { role: 'img' });
      return;
    }
    set(this.group, {
      tabindex: 0,
      role: 'slider',
      'aria-roledescription': 'arrow tip',
      'aria-valuemin': -REACH,
      'aria-valuemax': REACH,
    });
    this.group.classList.add('movable');
    this.group.addEventListener('keydown', (event) => this.#key(event));
    this.grip.addEventListener('pointerdown', (event) => this.#grab(event));
    // A finger on a tip must not scroll; Chromium ignores touch-action inside a drawing.
    this.grip.addEventListener('touchstart', (event) => event.preventDefault(), { passive: false });
  }

  /** Draws the arrow; `label` is at its tip, `name` is what a screen reader says. */
  show(at, label, name) {
    this.at = at;
    const [x, y] = [at[0], -at[1]];
    const length = Math.hypot(x, y);
    const turn = (Math.atan2(y, x) * 180) / Math.PI;
    const reach = Math.max(0, length - 0.2) / (length || 1);
    set(this.line, { x2: x * reach, y2: y * reach });
    set(this.head, { transform: `translate(${x} ${y}) rotate(${turn})` });
    set(this.grip, { cx: x, cy: y });
    // Beyond the tip, but inside the drawing.
    const beyond = 1 + 0.3 / (length || 1);
    const inside = (to) => Math.max(-EDGE + 0.3, Math.min(EDGE - 0.15, to));
    set(this.text, { x: inside(x * beyond), y: inside(y * beyond + 0.09) });
    if (this.text.textContent !== label) this.text.textContent = label;
    set(this.group, { 'aria-label': this.moved ? name : `${name} ${vector(at)}` });
    if (this.moved) set(this.group, { 'aria-valuenow': at[0], 'aria-valuetext': vector(at) });
  }

  hide(hidden) {
    this.group.style.display = hidden ? 'none' : '';
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const step = event.shiftKey ? LARGE_STEP : STEP;
    const [x, y] = this.at;
    const to = {
      ArrowLeft: [x - step, y],
      ArrowRight: [x + step, y],
      ArrowUp: [x, y + step],
      ArrowDown: [x, y - step],
      Home: this.home(),
    }[event.key];
    if (!to) return;
    event.preventDefault();
    this.moved(onGrid(to));
  }

  #grab(event) {
    // A second finger does not take the tip from the first.
    if (event.button !== 0 || this.held !== null) return;
    event.preventDefault();
    this.held = event.pointerId;
    this.group.focus({ preventScroll: true });
    this.grip.setPointerCapture(event.pointerId);
    // The tip stays where it was under the pointer.
    const [x, y] = this.plane.at(event);
    const off = [this.at[0] - x, this.at[1] - y];
    const controller = new AbortController();
    const on = (type, then) => {
      const mine = (event) => event.pointerId === this.held && then(event);
      this.grip.addEventListener(type, mine, { signal: controller.signal });
    };
    on('pointermove', (event) => {
      const [x, y] = this.plane.at(event);
      this.moved(onGrid([x + off[0], y + off[1]]));
    });
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
      on(end, () => {
        this.held = null;
        controller.abort();
      });
    }
  }
}
