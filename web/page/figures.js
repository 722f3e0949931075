// How numbers are written: as the lesson writes them.

/** Two decimals; a dash for what is hidden. */
export function decimals(x) {
  if (x === -Infinity) return '–';
  const text = x.toFixed(2);
  return text === '-0.00' ? '0.00' : text.replace('-', '−');
}

export const percent = (weight) => `${(100 * weight).toFixed(0)}\u00a0%`;

export const vector = (numbers) => `(${Array.from(numbers, decimals).join(', ')})`;

/** One significant digit, for differences. */
export const tiny = (x) => (x === 0 ? '0' : x.toExponential(0).replace('-', '−'));

/** Bytes in the unit that leaves few digits. */
export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) [n, unit] = [n / 1024, unit + 1];
  return `${n < 10 && unit > 0 ? n.toFixed(1) : n.toFixed(0)}\u00a0${units[unit]}`;
}

/** The index of the largest. */
export const most = (numbers) => numbers.reduce((at, x, i) => (x > numbers[at] ? i : at), 0);

/** x q.k written out: 2.40 × 2.20 + 0.60 × 1.00. */
export function products(a, b) {
  const factor = (x) => (x < 0 ? `(${decimals(x)})` : decimals(x));
  return a.map((x, i) => `${factor(x)} × ${factor(b[i])}`).join(' + ');
}
