// What the posterior of the coefficients says: standard errors of the predictor and of parts.

class Posterior {
  constructor(model, posterior) {
    this.model = model;
    this.dispersion = posterior.dispersion;
    this.intercept = posterior.intercept;
    this.size = posterior.size;
    this.linear = unpack(posterior.linear);
    this.groups = posterior.groups.map((group) => {
      if (group.kind === "factors") {
        const bands = group.bands.map(unpack);
        return { ...group, bands, centredBands: group.centred_bands?.map(unpack) ?? bands };
      }
      return group.kind === "products" ? { ...group, places: unpack(group.places) } : group;
    });
  }

  /** |R row|^2 of the linear block; of R the upper triangle is stored, row by row. */
  linearVariance(row) {
    const used = [...row.keys()].filter((k) => row[k] !== 0);
    let total = 0, start = 0;
    for (let i = 0; i < this.size; i++) {
      let sum = 0;
      for (const k of used) if (k >= i) sum += row[k] * this.linear[start + k - i];
      total += sum * sum;
      start += this.size - i;
    }
    return total;
  }

  /** Covariances of a member's factors at one of its values, Float64Array(F F).
   *
   * Of each pair f <= h the band of a matrix is stored, see bands.py: [a, o] belongs to the functions a and a + o. */
  factorCovariance(g, j, value, centred) {
    const { bases, bands, centredBands } = this.groups[g], { rank, members } = this.model.groups[g];
    const basis = this.model.variables[members[j]].bases[bases[j]], functions = evaluateBasis(basis, value);
    const band = (centred ? centredBands : bands)[j], { size } = basis;
    const width = band.length / ((size * rank * (rank + 1)) / 2), found = new Float64Array(rank * rank);
    for (let a = 0; a < size; a++)
      for (let o = 0; o < width && functions[a] !== 0; o++) {
        // Of few functions two meet at two offsets.
        const weight = o > 0 && size - o >= width ? 2 : 1;
        const product = weight * functions[a] * functions[(a + o) % size];
        if (product === 0) continue;
        let pair = 0;
        for (let f = 0; f < rank; f++)
          for (let h = f; h < rank; h++) found[f * rank + h] += product * band[(pair++ * size + a) * width + o];
      }
    for (let f = 0; f < rank; f++) for (let h = 0; h < f; h++) found[f * rank + h] = found[h * rank + f];
    return found;
  }

  /** Standard error of the predictor at a row. */
  errorAt(state) {
    const { model } = this, row = new Float64Array(this.size);
    if (this.intercept) row[0] = 1;
    let variance = 0;
    this.groups.forEach((own, g) => {
      const group = model.groups[g];
      if (own.kind === "products") {
        addFunctionProducts(row, own, group.members.map((v) => state.functions[v]));
      } else if (own.kind === "linear") {
        own.places.forEach((place, f) => {
          const product = state.raw[g].reduce((total, factors) => total * factors[f], 1);
          row[place] = (product - own.centre[f]) / own.scale[f];
        });
      } else if (own.kind === "factors") {
        const covariances = group.members.map((v, j) => this.factorCovariance(g, j, state.values[v], false));
        variance += varianceOfSum(state.raw[g], covariances, group);
      }
    });
    return Math.sqrt(Math.max(variance + this.linearVariance(row), 0));
  }

  /** Standard errors of the part of two variables on the product of their axes.
   *
   * Null where products of higher order have a share in it, by means that are uncertain themselves. */
  errorsOn(subset, axes) {
    if (!this.knows(subset)) return null;
    const { model } = this, [rows, columns] = axes.map((axis) => axis.length);
    const total = new Float64Array(rows * columns);
    const functions = axes.map((axis, a) => Array.from(axis, (value) => model.functionsAt(subset[a], value)));
    model.groups.forEach((group, g) => {
      const share = model.share(group, subset);
      if (share === null || this.groups[g].kind !== "factors") return;
      const factors = functions.map((own, a) => own.map((u) => model.factors(group, subset[a], u, true)));
      const spread = axes.map((axis, a) => {
        const j = group.place.get(subset[a]);
        return Array.from(axis, (value) => this.factorCovariance(g, j, value, true));
      });
      for (let i = 0; i < rows; i++)
        for (let k = 0; k < columns; k++)
          total[i * columns + k] += productVariance(share, factors[0][i], factors[1][k], spread[0][i], spread[1][k]);
    });
    const products = this.linearProducts(subset, functions);
    if (products !== null)
      for (let i = 0; i < total.length; i++) total[i] += this.linearVariance(products(i));
    return total.map((variance) => Math.sqrt(Math.max(variance, 0)));
  }

  knows(subset) {
    return this.model.groups.every((group, g) => group.order === subset.length || this.groups[g].kind !== "factors"
      || this.model.share(group, subset) === null);
  }

  /** Rows of the linear block that make up the part of two variables, where it has some. */
  linearProducts(subset, functions) {
    const { model } = this, columns = functions[1].length, found = [];
    model.groups.forEach((group, g) => {
      const share = model.share(group, subset), own = this.groups[g];
      if (share === null) return;
      if (own.kind === "linear") {
        const factors = functions.map((at, a) => at.map((u) => model.factors(group, subset[a], u, true)));
        const rest = share.map((value, f) => value / group.scale[f]);
        found.push((row, i, k) => own.places.forEach((place, f) => {
          row[place] += (rest[f] / own.scale[f]) * factors[0][i][f] * factors[1][k][f];
        }));
      } else if (own.kind === "products") {
        const centred = functions.map((at, a) => {
          const { means } = model.variables[subset[a]];
          return at.map((u) => u.map((value, m) => value - means[m]));
        });
        found.push((row, i, k) => addFunctionProducts(row, own, group.members.map((v) => {
          const a = subset.indexOf(v);
          return a < 0 ? model.variables[v].means : centred[a][a === 0 ? i : k];
        })));
      }
    });
    if (!found.length) return null;
    return (index) => {
      const row = new Float64Array(this.size), i = Math.floor(index / columns), k = index % columns;
      for (const add of found) add(row, i, k);
      return row;
    };
  }
}

/** Add the products of one function of each margin to a row of the linear block, the last margin fastest. */
function addFunctionProducts(row, { places, columns }, functions) {
  let products = [1];
  columns.forEach(([start, stop], j) => {
    const own = functions[j].slice(start, stop), before = products;
    products = new Float64Array(before.length * own.length);
    before.forEach((product, a) => own.forEach((value, b) => { products[a * own.length + b] = product * value; }));
  });
  places.forEach((place, q) => { row[place] += products[q]; });
}

/** Var(sum_f scale_f e_d(phi_f)) of independent random factors: moments T_ab of e_a and e_b. */
function varianceOfSum(means, covariances, group) {
  const { order, rank, scale } = group;
  let total = 0;
  for (let f = 0; f < rank; f++)
    for (let h = f; h < rank; h++) {
      const T = Array.from({ length: order + 1 }, () => new Float64Array(order + 1));
      T[0][0] = 1;
      means.forEach((own, j) => {
        const second = own[f] * own[h] + covariances[j][f * rank + h];
        for (let a = order; a >= 0; a--)
          for (let b = order; b >= 0; b--) {
            if (a) T[a][b] += own[f] * T[a - 1][b];
            if (b) T[a][b] += own[h] * T[a][b - 1];
            if (a && b) T[a][b] += second * T[a - 1][b - 1];
          }
      });
      const covariance = T[order][order] - T[order][0] * T[0][order];
      total += (f === h ? 1 : 2) * scale[f] * scale[h] * covariance;
    }
  return total;
}

/** Var(sum_f share_f phi_f psi_f) of two independent vectors of random factors. */
function productVariance(share, first, second, firstSpread, secondSpread) {
  const rank = share.length;
  let total = 0;
  for (let f = 0; f < rank; f++)
    for (let h = 0; h < rank; h++) {
      const a = first[f] * first[h], b = second[f] * second[h];
      const both = (a + firstSpread[f * rank + h]) * (b + secondSpread[f * rank + h]);
      total += share[f] * share[h] * (both - a * b);
    }
  return total;
}
