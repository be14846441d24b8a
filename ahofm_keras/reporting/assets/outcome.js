// What all predictors together say of the response, by tables that Python made: its mean, the
// probabilities of classes, and intervals of new observations. Nothing here knows of the page.

/** Cubic through the four points of an even axis that are nearest to x: [first point, weights]. */
function cubicWeights([low, high, points], x) {
  if (points < 4) return [0, [1]];
  const at = ((x - low) / (high - low)) * (points - 1);
  const first = clamp(Math.floor(at) - 1, 0, points - 4), t = at - first;
  const weights = [0, 1, 2, 3].map((k) =>
    [0, 1, 2, 3].reduce((product, j) => (j === k ? product : (product * (t - j)) / (k - j)), 1));
  return [first, weights];
}

/** Whether a grid reaches as far as some predictors. */
const holds = (axes, links) =>
  axes.every(([low, high, points], k) => points === 1 || (links[k] >= low && links[k] <= high));

/** A table on a grid at some predictors; `start` is where the table begins among several. */
function lookUp(values, axes, links, start = 0) {
  const along = axes.map((axis, k) => cubicWeights(axis, links[k]));
  const sum = (k, offset) => {
    if (k === along.length) return values[start + offset];
    const [first, weights] = along[k];
    return weights.reduce((total, weight, j) => total + weight * sum(k + 1, offset * axes[k][2] + first + j), 0);
  };
  return sum(0, 0);
}

/** The place in a rising function where it has a value, by halving. */
function solve(rising, value, low, high) {
  for (let i = 0; i < 48; i++) {
    const middle = (low + high) / 2;
    if (rising(middle) < value) low = middle;
    else high = middle;
  }
  return high;
}

// Gaussian quadrature for a predictor with a normal posterior: [standard deviations, weight].
const THREE_NODES = [[-Math.sqrt(3), 1 / 6], [0, 2 / 3], [Math.sqrt(3), 1 / 6]];
const SEVEN_NODES = [
  [-3.750439717725742, 0.000548268855972], [-2.366759410734541, 0.030757123967586], [-1.154405394739968, 0.240123178605013],
  [0, 16 / 35],
  [1.154405394739968, 0.240123178605013], [2.366759410734541, 0.030757123967586], [3.750439717725742, 0.000548268855972],
];

/** Intervals of a new observation: quantiles at normal scores on a grid of the predictors. */
class Spread {
  constructor({ axes, scores, values, ...told }) {
    Object.assign(this, { axes, scores, values: unpack(values), ...told });
    this.size = axes.reduce((product, [, , points]) => product * points, 1);
  }

  /** Quantiles at all scores, rising; beyond the grid those at its end. */
  curve(links) {
    const inside = links.map((link, k) => clamp(link, this.axes[k][0], this.axes[k][1]));
    return this.scores.map((_, s) => lookUp(this.values, this.axes, inside, s * this.size));
  }

  /** The quantile of a score, by a cubic through the nearest ones. */
  quantile(curve, score) {
    const { scores } = this, axis = [scores[0], scores[scores.length - 1], scores.length];
    return lookUp(curve, [axis], [score]);
  }

  /** The ends between which a new observation lies with the probability of the score; null where they are not known.
   *
   * Predictors are uncertain by their standard errors: distributions are mixed over them. */
  interval(links, errors, score) {
    if (!holds(this.axes, links)) return null;
    const uncertain = errors.map((error, k) => error > 0 && this.axes[k][2] > 1);
    const rule = uncertain.filter(Boolean).length > 2 ? THREE_NODES : SEVEN_NODES;
    let nodes = [{ links, weight: 1 }];
    uncertain.forEach((own, k) => {
      if (own) nodes = nodes.flatMap((node) => rule.map(([z, weight]) =>
        ({ links: node.links.map((link, i) => (i === k ? link + z * errors[k] : link)), weight: node.weight * weight })));
    });
    const curves = nodes.map((node) => ({ weight: node.weight, curve: this.curve(node.links) }));
    return [-score, score].map((side) => this.finish(this.mixed(curves, side)));
  }

  /** The quantile of a mixture. */
  mixed(curves, score) {
    const own = curves.map(({ curve }) => this.quantile(curve, score));
    const [low, high] = [Math.min(...own), Math.max(...own)], { scores } = this, last = scores.length - 1;
    const chance = (y) => curves.reduce((total, { weight, curve }) => {
      const at = y <= curve[0] ? scores[0] : y >= curve[last] ? scores[last]
        : solve((z) => this.quantile(curve, z), y, ...this.around(curve, y));
      return total + weight * normalChance(at);
    }, 0);
    return high > low ? solve(chance, normalChance(score), low, high) : high;
  }

  /** Two neighbouring scores with a value between their quantiles. */
  around(curve, y) {
    let first = 0, last = curve.length - 1;
    while (last - first > 1) {
      const middle = (first + last) >> 1;
      if (curve[middle] <= y) first = middle;
      else last = middle;
    }
    return [this.scores[first], this.scores[last]];
  }

  /** From a number of the table to one of the response. */
  finish(value) {
    let found = this.log ? Math.exp(value) : value;
    if (this.whole) found = Math.ceil(found - 1e-5);
    if (this.least !== null) found = Math.max(found, this.least);
    return this.most === null ? found : Math.min(found, this.most);
  }
}

class Outcome {
  constructor({ axes, classes, mean, spread, trials, quantiles }) {
    const read = (table) => (table === null ? null : { log: table.log, values: unpack(table.values) });
    Object.assign(this, { axes, trials, quantiles });
    this.classes = classes.map(read);
    this.table = read(mean);
    this.spread = spread === null ? null : new Spread(spread);
  }

  /** The mean of the response at predictors; null where it is not known. */
  mean(links) {
    return this.value(this.table, links);
  }

  /** Probabilities of all classes at predictors; null where they are not known. */
  chances(links) {
    const found = this.classes.map((table) => this.value(table, links));
    return found.includes(null) ? null : found;
  }

  /** The fitted quantiles, by their words, from the parameters. */
  levels(parameters) {
    return this.quantiles.map(({ name, sums, middle }) =>
      ({ name, middle, value: sums.reduce((total, [place, sign]) => total + sign * parameters[place], 0) }));
  }

  value(table, links) {
    if (table === null || !holds(this.axes, links)) return null;
    const found = lookUp(table.values, this.axes, links);
    return table.log ? Math.exp(found) : found;
  }
}
