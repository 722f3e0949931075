// Random numbers.

/** `n` numbers, normal(0, 1) (Box and Muller). */
export function normal(n) {
  const numbers = new Float32Array(n);
  for (let i = 0; i < n; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - Math.random()));
    const angle = 2 * Math.PI * Math.random();
    numbers[i] = radius * Math.cos(angle);
    if (i + 1 < n) numbers[i + 1] = radius * Math.sin(angle);
  }
  return numbers;
}
