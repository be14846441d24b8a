"use strict";
// The model's own arithmetic: raw values of one row -> predictor and its parts. It follows bases.py,
// terms/variables.py and effects/parts.py; nothing here knows of the page.

const ARRAYS = { f8: Float64Array, f4: Float32Array, i4: Int32Array };
// Subsets of one order that are taken apart one by one at every move of a slider, at most.
const MOST_SUBSETS = 200000;

/** The typed array that Python's `pack` wrote. */
function unpack(packed) {
  const kind = Object.keys(ARRAYS).find((key) => key in packed);
  const text = atob(packed[kind]);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[kind](bytes.buffer);
}

// Expressions: a closed list of functions, as in transforms.py -------------------------------------

const FUNCTIONS = {
  abs: Math.abs, cos: Math.cos, exp: Math.exp, expm1: Math.expm1, log: Math.log, log10: Math.log10,
  log1p: Math.log1p, log2: Math.log2, sin: Math.sin, sqrt: Math.sqrt, tanh: Math.tanh,
  negative: (x) => -x,
  add: (a, b) => a + b, subtract: (a, b) => a - b, multiply: (a, b) => a * b,
  divide: (a, b) => a / b, power: (a, b) => a ** b,
};

/** Value of an expression tree at a row, a Map of raw columns. */
function evaluateExpression(node, row) {
  if (node.function === "column") return row.get(node.arguments[0]);
  if (node.function === "number") return node.arguments[0];
  const values = node.arguments.map((argument) => evaluateExpression(argument, row));
  if (node.function === "C") return values[0];
  if (node.function === "point") return values;
  if (node.function === "center") return values[0] - node.state[0];
  if (node.function === "scale") return (values[0] - node.state[0]) / node.state[1];
  if (!Object.hasOwn(FUNCTIONS, node.function)) throw new Error(`Unknown function ${node.function}`);
  return FUNCTIONS[node.function](...values);
}

/** Powers of `poly()` by their three-term recurrence. */
function evaluatePoly(state, power, x) {
  const count = (state.length - 2) / 3;
  const z = (x - state[0]) / state[1];
  let before = 0, current = 1;
  for (let k = 0; k <= power; k++) {
    const next = (z - state[2 + k]) * current - state[2 + count + k] * before;
    before = current;
    current = next;
  }
  return current / state[2 + 2 * count + power];
}

// Bases: cardinal B-splines at the integers of a warped axis ----------------------------------------

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** Place of a raw value on the axis of a spline. */
function locate(basis, x) {
  const { axis, warped } = basis;
  const low = axis[0], high = axis[axis.length - 1];
  if (basis.kind === "cp") {
    const span = high - low;
    x = low + ((((x - low) % span) + span) % span);
  } else if (basis.extrapolation !== "linear" || basis.degree === 0) {
    x = clamp(x, low, high);
  }
  let first = 0, last = axis.length - 2;
  while (first < last) {
    const middle = (first + last + 1) >> 1;
    if (axis[middle] <= x) first = middle;
    else last = middle - 1;
  }
  const slope = (warped[first + 1] - warped[first]) / (axis[first + 1] - axis[first]);
  return clamp((warped[first] + (x - axis[first]) * slope) * basis.intervals, -1e12, 1e12);
}

/** Cardinal B-spline of degree 0 to 3 at a distance from its middle. */
function cardinal(offset, degree) {
  const v = Math.abs(offset);
  if (degree === 0) return v < 0.5 ? 1 : 0;
  if (degree === 1) return Math.max(1 - v, 0);
  if (degree === 2) return (Math.max(1.5 - v, 0) ** 2 - 3 * Math.max(0.5 - v, 0) ** 2) / 2;
  return (Math.max(2 - v, 0) ** 3 - 4 * Math.max(1 - v, 0) ** 3) / 6;
}

const cardinalSlope = (offset, degree) => cardinal(offset + 0.5, degree - 1) - cardinal(offset - 0.5, degree - 1);

/** Whether a value is an atom, but for rounding. */
const isAtom = (atom, value) => Math.abs(value - atom) <= 4 * Number.EPSILON * Math.abs(atom);

/** Correlations by distances in their unit, as in radial.py. */
const CORRELATIONS = {
  spherical: (r) => (r <= 1 ? 1 - 1.5 * r + 0.5 * r ** 3 : 0),
  exponential: (r, power) => Math.exp(-(r ** power)),
  matern_3: (r) => (1 + r) * Math.exp(-r),
  matern_5: (r) => (1 + r + r ** 2 / 3) * Math.exp(-r),
  matern_7: (r) => (1 + r + 0.4 * r ** 2 + r ** 3 / 15) * Math.exp(-r),
};

/** The function of a distance that a radial basis is made of, from its square. */
function radialKernel({ kernel, shape, power }, square) {
  const own = Math.max(square, 1e-300);
  if (kernel in CORRELATIONS) return CORRELATIONS[kernel](Math.sqrt(own) / shape, power);
  const found = (Math.floor(shape / 2 + 1) % 2 ? -1 : 1) * own ** (shape / 2);
  return kernel === "logarithm" ? (found * Math.log(own)) / 2 : found;
}

/** Functions of the distances of a point to knots, then polynomials. */
function evaluateRadial(basis, value) {
  const { radial } = basis, count = radial.centre.length, found = new Float64Array(basis.size);
  const place = Array.from(radial.centre, (centre, c) => {
    const raw = count > 1 ? value[c] : value;
    const own = basis.extrapolation === "linear" ? raw : clamp(raw, radial.ends[c], radial.ends[count + c]);
    return (own - centre) / radial.unit;
  });
  const { size } = basis;
  for (let k = 0; k < radial.knots.length / count; k++) {
    let square = 0;
    for (let c = 0; c < count; c++) square += (place[c] - radial.knots[k * count + c]) ** 2;
    const kernel = radialKernel(radial, square);
    for (let q = 0; q < size; q++) found[q] += kernel * radial.projection[k * size + q];
  }
  radial.powers.forEach((powers, t) => {
    const term = powers.reduce((product, power, c) => product * place[c] ** power, 1);
    for (let q = 0; q < size; q++) found[q] += term * radial.mixing[t * size + q];
  });
  return found;
}

/** All functions of a basis at a raw value or point, or at the index of a level. */
function evaluateBasis(basis, value) {
  const { size, degree, kind } = basis;
  if (basis.radial) return evaluateRadial(basis, value);
  if (kind === "linear") return [(value - basis.axis[0]) / basis.axis[1]];
  const found = new Float64Array(size);
  if (kind === "re" || kind === "mrf") {
    if (value >= 0) found[value] = 1;
    return found;
  }
  const splines = size - basis.atoms.length, atom = basis.atoms.findIndex((own) => isAtom(own, value));
  if (atom >= 0) {
    found[splines + atom] = 1;
    return found;
  }
  const place = locate(basis, value);
  if (degree === 0) {
    found[Math.min(Math.floor(place), size - 1)] = 1;
    return found;
  }
  const straight = kind === "ps" && basis.extrapolation === "linear";
  const inside = straight ? clamp(place, 0, basis.intervals) : place;
  // The slope of straight pieces jumps at the knots: take it in the middle of the last piece.
  const edge = degree === 1 ? 0.5 : 0;
  const at = clamp(place, edge, basis.intervals - edge);
  for (let i = 0; i < splines; i++) {
    const centre = i - (degree - 1) / 2;
    let offset = inside - centre;
    if (kind === "cp") offset -= size * Math.round(offset / size);
    found[i] = cardinal(offset, degree);
    if (place !== inside) found[i] += (place - inside) * cardinalSlope(at - centre, degree);
  }
  return found;
}

// The model ------------------------------------------------------------------------------------------

// As in families/links.py.
const INVERSE_LINKS = {
  identity: (eta) => eta,
  log: (eta) => Math.exp(clamp(eta, -300, 300)),
  logit: (eta) => (1 + Math.tanh(eta / 2)) / 2,
  probit: normalChance,
  cloglog: (eta) => -Math.expm1(-Math.exp(clamp(eta, -300, 300))),
  inverse: (eta) => (eta > 0 ? 1 / eta : Infinity),
  sqrt: (eta) => Math.max(eta, 0) ** 2,
  softplus: (eta) => Math.max(eta, 0) + Math.log1p(Math.exp(-Math.abs(Math.max(eta, -300)))),
  inverse_square: (eta) => (eta > 0 ? 1 / Math.sqrt(eta) : Infinity),
  cauchit: (eta) => 0.5 + Math.atan(eta) / Math.PI,
  log_above_2: (eta) => 2 + Math.exp(clamp(eta, -300, 300)),
  logit_1_2: (eta) => 1.01 + 0.98 * (1 + Math.tanh(eta / 2)) / 2,
};

/** The normal distribution function: a series in the middle, a continued fraction in the tails. */
function normalChance(x) {
  const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI), size = Math.abs(x);
  if (size < 4) {
    let term = x, sum = x;
    for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) sum += term *= (x * x) / k;
    return 0.5 + density * sum;
  }
  let fraction = size;
  for (let k = 40; k > 0; k--) fraction = size + k / fraction;
  return x < 0 ? density / fraction : 1 - density / fraction;
}

/** e_order of the columns of a matrix given by rows: Float64Array(F). */
function elementarySymmetric(rows, order, rank) {
  const state = Array.from({ length: order + 1 }, (_, a) => new Float64Array(rank).fill(a ? 0 : 1));
  for (const row of rows)
    for (let a = order; a > 0; a--)
      for (let f = 0; f < rank; f++) state[a][f] += row[f] * state[a - 1][f];
  return state[order];
}

/** All subsets of 0 .. count - 1 of a size, one after another in one array. */
function combinations(count, size) {
  const found = new Int32Array(choose(count, size) * size), place = Array.from({ length: size }, (_, t) => t);
  for (let start = 0; start < found.length; start += size) {
    found.set(place, start);
    let t = size - 1;
    while (t >= 0 && place[t] === count - size + t) t--;
    if (t < 0) break;
    place[t]++;
    for (let next = t + 1; next < size; next++) place[next] = place[next - 1] + 1;
  }
  return found;
}

function choose(n, k) {
  let total = 1;
  for (let i = 0; i < k; i++) total *= (n - i) / (i + 1);
  return k > n ? 0 : Math.round(total);
}

class Model {
  constructor(arithmetic, link) {
    this.constant = arithmetic.constant;
    this.rawConstant = arithmetic.raw_constant;
    this.heldRange = arithmetic.held_range;
    this.offsets = arithmetic.offsets;
    this.largestOrder = arithmetic.largest_order;
    this.inverseLink = INVERSE_LINKS[link];
    this.variables = arithmetic.variables.map((variable) => ({
      ...variable,
      isCategory: variable.levels.length > 0,
      isPoint: variable.coordinates.length > 1,
      bases: variable.bases.map((basis) => ({
        ...basis, axis: unpack(basis.axis), warped: unpack(basis.warped),
        transform: basis.transform && unpack(basis.transform),
        radial: basis.radial && Object.fromEntries(Object.entries(basis.radial).map(([key, own]) =>
          [key, typeof own === "object" && !Array.isArray(own) ? unpack(own) : own])),
      })),
      means: unpack(variable.means),
      atoms: [...new Set(variable.bases.flatMap((basis) => basis.atoms))].sort((a, b) => a - b),
    }));
    this.groups = arithmetic.groups.map((group) => this.readGroup(group));
    this.plans = new Map();
  }

  readGroup(group) {
    const scale = unpack(group.scale), means = unpack(group.means), rank = scale.length;
    const place = new Map(group.members.map((variable, j) => [variable, j]));
    return {
      order: group.order, members: group.members, place, rank, scale, held: group.held,
      weights: group.weights.map(unpack),
      means: group.members.map((_, j) => means.subarray(j * rank, (j + 1) * rank)),
      hasMeans: means.some((mean) => mean !== 0),
    };
  }

  // Values of single variables

  /** Value of a variable at a row: a number, a point, or the index of a level (-1: none of them). */
  valueAt(v, row) {
    const variable = this.variables[v];
    const value = evaluateExpression(variable.expression, row);
    return variable.isCategory ? variable.levels.indexOf(value) : value;
  }

  /** Rising points of an axis, those that are atoms moved a little: curves show what is around these. */
  besideAtoms(v, axis) {
    const { atoms } = this.variables[v], last = axis.length - 1, beside = 1e-9 * (axis[last] - axis[0]);
    return axis.map((x, i) => (atoms.some((atom) => isAtom(atom, x)) ? x + (i < last ? beside : -beside) : x));
  }

  /** The functions u of a variable at one of its values. */
  functionsAt(v, value) {
    const variable = this.variables[v], found = [];
    for (const basis of variable.bases) {
      const values = evaluateBasis(basis, value);
      if (basis.transform === null) {
        found.push(...values);
        continue;
      }
      const width = basis.transform.length / basis.size;
      const own = new Float64Array(width);
      for (let i = 0; i < values.length; i++)
        if (values[i] !== 0) for (let r = 0; r < width; r++) own[r] += values[i] * basis.transform[i * width + r];
      found.push(...own);
    }
    for (const product of variable.products) {
      let total = 1;
      for (const component of product) {
        if ("level" in component) total *= (component.level < 0 ? value >= 0 : value === component.level) ? 1 : 0;
        else total *= "poly" in component ? evaluatePoly(component.poly, component.power, value) : value;
      }
      found.push(total);
    }
    return found;
  }

  /** Factors of a group from the functions of one of its variables. */
  factors(group, v, functions, centred) {
    const j = group.place.get(v), { rank } = group, weights = group.weights[j];
    const found = new Float64Array(rank);
    for (let m = 0; m < functions.length; m++)
      if (functions[m] !== 0) for (let f = 0; f < rank; f++) found[f] += functions[m] * weights[m * rank + f];
    if (centred) for (let f = 0; f < rank; f++) found[f] -= group.means[j][f];
    return found;
  }

  // One row

  /** Everything about a row: values and functions of variables, factors, predictor, mean. */
  at(row) {
    const values = this.variables.map((_, v) => this.valueAt(v, row));
    const functions = this.variables.map((_, v) => this.functionsAt(v, values[v]));
    const raw = this.groups.map((group) => group.members.map((v) => this.factors(group, v, functions[v], false)));
    let link = this.rawConstant, held = 0;
    this.groups.forEach((group, g) => {
      const totals = elementarySymmetric(raw[g], group.order, group.rank);
      for (let f = 0; f < group.rank; f++) {
        if (group.held) held += group.scale[f] * totals[f];
        else link += group.scale[f] * totals[f];
      }
    });
    // What holds the sum in the range that it had on the training rows.
    const limit = this.heldRange === null ? 0 : clamp(held, ...this.heldRange) - held;
    link += held + limit;
    const offsets = this.offsets.map((offset) => evaluateExpression(offset.expression, row));
    for (const offset of offsets) link += offset;
    return { values, functions, raw, offsets, limit, link, mean: this.inverseLink(link) };
  }

  /** The parts of a row by order: subsets one after another and their values.
   *
   * Orders of too many subsets are left out. */
  partsAt(state) {
    const found = [];
    for (let order = 1; order <= this.largestOrder; order++) {
      const plan = this.plan(order);
      if (plan === null) continue;
      const values = new Float64Array(plan.subsets.length / order);
      for (const entry of plan.entries) addProducts(entry, this.centredFactors(state, entry.g), order, values);
      found.push({ order, subsets: plan.subsets, values });
    }
    return found;
  }

  /** The part of one subset of a row. */
  partAt(state, subset) {
    let total = 0;
    this.groups.forEach((group, g) => {
      const share = this.share(group, subset);
      if (share === null) return;
      const places = subset.map((v) => group.place.get(v));
      for (let f = 0; f < group.rank; f++)
        total += places.reduce((product, j) => product * (state.raw[g][j][f] - group.means[j][f]), share[f]);
    });
    return total;
  }

  /** Centred factors of all members of a group at a row, one after another. */
  centredFactors(state, g) {
    const group = this.groups[g], found = new Float64Array(group.members.length * group.rank);
    state.raw[g].forEach((own, j) => own.forEach((factor, f) => {
      found[j * group.rank + f] = factor - group.means[j][f];
    }));
    return found;
  }

  // Parts of subsets

  /** What multiplies the product of a subset's factors, Float64Array(F), or null. */
  share(group, subset) {
    const missing = group.order - subset.length;
    if (missing < 0 || !subset.every((v) => group.place.has(v))) return null;
    if (missing === 0) return group.scale;
    if (!group.hasMeans) return null;
    const others = group.members.filter((v) => !subset.includes(v)).map((v) => group.means[group.place.get(v)]);
    if (others.length < missing) return null;
    return elementarySymmetric(others, missing, group.rank).map((mean, f) => mean * group.scale[f]);
  }

  /** All subsets of an order with a part, and how they are computed; null where they are too many. */
  plan(order) {
    if (!this.plans.has(order)) this.plans.set(order, this.makePlan(order));
    return this.plans.get(order);
  }

  makePlan(order) {
    const own = this.groups.map((group, g) => ({ group, g }))
      .filter(({ group }) => group.order === order || (group.order > order && group.hasMeans));
    let most = 0;
    for (const { group } of own) most += choose(group.members.length, order);
    if (most > MOST_SUBSETS) return null;
    const index = new Map(), subsets = new Int32Array(most * order), count = this.variables.length;
    const entries = own.map(({ group, g }) => {
      const sorted = [...group.members].sort((a, b) => a - b), places = combinations(sorted.length, order);
      const { rank } = group, targets = new Int32Array(places.length / order);
      const shares = group.order > order ? new Float64Array(targets.length * rank) : null;
      for (let k = 0; k < targets.length; k++) {
        const subset = Array.from(places.subarray(k * order, (k + 1) * order), (place) => sorted[place]);
        const key = subset.reduce((sum, v) => sum * count + v, 0);
        if (!index.has(key)) {
          subsets.set(subset, index.size * order);
          index.set(key, index.size);
        }
        targets[k] = index.get(key);
        subset.forEach((v, t) => { places[k * order + t] = group.place.get(v) * rank; });
        if (shares !== null) shares.set(this.share(group, subset) ?? new Float64Array(rank), k * rank);
      }
      return { g, places, targets, shares, scale: group.scale };
    });
    return { subsets: subsets.slice(0, index.size * order), entries };
  }

  /** The part of a subset on the product of axes, of which two at most have several values. */
  partOn(subset, axes) {
    const long = axes.map((_, a) => a).filter((a) => axes[a].length > 1);
    const [first, second] = [long[0], long[1]];
    const rows = first === undefined ? 1 : axes[first].length;
    const columns = second === undefined ? 1 : axes[second].length;
    const total = new Float64Array(rows * columns);
    const functions = axes.map((axis, a) => Array.from(axis, (value) => this.functionsAt(subset[a], value)));
    for (const group of this.groups) {
      const share = this.share(group, subset);
      if (share === null) continue;
      const factors = functions.map((own, a) => own.map((u) => this.factors(group, subset[a], u, true)));
      const fixed = Float64Array.from(share);
      factors.forEach((own, a) => {
        if (a !== first && a !== second) for (let f = 0; f < group.rank; f++) fixed[f] *= own[0][f];
      });
      for (let i = 0; i < rows; i++)
        for (let k = 0; k < columns; k++) {
          let sum = 0;
          for (let f = 0; f < group.rank; f++) {
            sum += fixed[f] * (first === undefined ? 1 : factors[first][i][f])
              * (second === undefined ? 1 : factors[second][k][f]);
          }
          total[i * columns + k] += sum;
        }
    }
    return total;
  }

  /** The sum of the parts of a subset and of all that are smaller, on the product of axes. */
  jointOn(subset, axes) {
    const sizes = axes.map((axis) => axis.length);
    const total = new Float64Array(sizes.reduce((a, b) => a * b, 1));
    for (let size = 1; size <= subset.length; size++) {
      const chosen = combinations(subset.length, size);
      for (let start = 0; start < chosen.length; start += size) {
        const within = Array.from(chosen.subarray(start, start + size));
        const own = this.partOn(within.map((a) => subset[a]), within.map((a) => axes[a]));
        for (let i = 0; i < total.length; i++) total[i] += own[project(i, sizes, within)];
      }
    }
    return total;
  }
}

/** Add the products of centred factors of a group to the parts of its subsets. */
function addProducts(entry, factors, order, values) {
  const { places, targets, shares, scale } = entry, rank = scale.length;
  for (let k = 0; k < targets.length; k++) {
    let sum = 0;
    for (let f = 0; f < rank; f++) {
      let product = shares === null ? scale[f] : shares[k * rank + f];
      for (let t = 0; t < order; t++) product *= factors[places[k * order + t] + f];
      sum += product;
    }
    values[targets[k]] += sum;
  }
}

/** Index into the product of some axes, of a point of the product of all. */
function project(index, sizes, within) {
  const digits = [];
  for (let a = sizes.length - 1; a >= 0; a--) {
    digits[a] = index % sizes[a];
    index = Math.floor(index / sizes[a]);
  }
  return within.reduce((sum, a) => sum * sizes[a] + digits[a], 0);
}
