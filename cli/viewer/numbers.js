// Numbers as people read them.

/** A number of JSON, which writes what it has no number for as "inf", "-inf" or "nan". */
function numberOf(value) {
  return { inf: Infinity, "-inf": -Infinity, nan: NaN }[value] ?? Number(value);
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; Math.abs(value) >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  const size = Math.abs(value);
  return `${value.toFixed(unit === 0 ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0)} ${units[unit]}`;
}

function seconds(value) {
  if (value < 1e-3) return `${(value * 1e6).toFixed(0)} µs`;
  return value < 1 ? `${(value * 1e3).toFixed(1)} ms` : `${value.toFixed(1)} s`;
}

function percent(share) { return `${(100 * share).toFixed(1)} %`; }

function count(value) { return String(value).replace(/\B(?=(\d{3})+$)/g, " "); }

/** As many digits as asked for, without trailing zeros: 0.25, 1e-7, inf. */
function digits(value, most = 3) {
  const number = numberOf(value);
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "nan" : number > 0 ? "inf" : "-inf";
  return String(Number(number.toPrecision(most)));
}

function plural(number, one, many = one + "s") { return `${count(number)} ${number === 1 ? one : many}`; }

/** Amounts by their unit: a function from a number to text. */
function inUnit(unit) { return { seconds, bytes, share: percent, count }[unit] ?? digits; }
