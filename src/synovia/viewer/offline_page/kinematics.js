// Forward kinematics, joint limits and a small solver. Frames are 12 numbers a joint: rotation (9, by rows), position (3).
// Quaternions are x, y, z, w. A ball turns by q · exp(w), with w in the joint's own frame.

const FIXED = 0, HINGE = 1, SLIDE = 2, BALL = 3, FREE = 4;
const SIZES = [0, 1, 1, 4, 7];

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scaled = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const plus = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const unit = a => scaled(a, 1 / (Math.hypot(...a) || 1));
const clamp = (v, low, high) => Math.max(low, Math.min(high, v));

function times(a, b) {
  return [
    a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
    a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
    a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
    a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
  ];
}
const inverse = q => [-q[0], -q[1], -q[2], q[3]];
function exp(w) {
  const angle = Math.hypot(...w), s = angle > 1e-9 ? Math.sin(angle / 2) / angle : 0.5;
  return [w[0] * s, w[1] * s, w[2] * s, Math.cos(angle / 2)];
}
function log(q) {
  const sign = q[3] < 0 ? -1 : 1, s = Math.hypot(q[0], q[1], q[2]), angle = 2 * Math.atan2(s, sign * q[3]);
  return scaled(q, s > 1e-12 ? sign * angle / s : 2 * sign);
}
function mixed(a, b, part) {  // of two quaternions, on the shorter arc
  const s = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] < 0 ? -1 : 1;
  const m = a.map((v, i) => v * (1 - part) + s * b[i] * part), n = Math.hypot(...m) || 1;
  return m.map(v => v / n);
}
function matrixOf(q, out, at) {
  const [x, y, z, w] = q;
  out[at] = 1 - 2 * (y * y + z * z); out[at + 1] = 2 * (x * y - z * w); out[at + 2] = 2 * (x * z + y * w);
  out[at + 3] = 2 * (x * y + z * w); out[at + 4] = 1 - 2 * (x * x + z * z); out[at + 5] = 2 * (y * z - x * w);
  out[at + 6] = 2 * (x * z - y * w); out[at + 7] = 2 * (y * z + x * w); out[at + 8] = 1 - 2 * (x * x + y * y);
}
function rotationVector(target, frame) {  // of target · frameᵀ, both as nine numbers
  const m = new Array(9);
  for (let i = 0; i < 3; i++) for (let j = 0; j < 3; j++)
    m[3 * i + j] = target[3 * i] * frame[3 * j] + target[3 * i + 1] * frame[3 * j + 1] + target[3 * i + 2] * frame[3 * j + 2];
  const v = [m[7] - m[5], m[2] - m[6], m[3] - m[1]], sine = Math.hypot(...v) / 2, cosine = (m[0] + m[4] + m[8] - 1) / 2;
  return scaled(v, sine > 1e-9 ? Math.atan2(sine, cosine) / (2 * sine) : 0.5);
}

class Body {
  constructor(data) {
    Object.assign(this, data);
    this.count = this.parents.length;
    this.first = [];
    let next = 0;
    for (const kind of this.kinds) { this.first.push(next); next += SIZES[kind]; }
    this.nq = next;
    this.turn = new Float64Array(9);
    this.local = new Float64Array(12);
  }

  isAbove(row, of) { for (let at = of; at >= 0; at = this.parents[at]) if (at === row) return true; return false; }

  frames(q, out = new Float64Array(12 * this.count)) {
    const local = this.local, turn = this.turn;
    for (let row = 0; row < this.count; row++) {
      const rest = this.rest[row], kind = this.kinds[row], at = this.first[row];
      for (let i = 0; i < 12; i++) local[i] = rest[i];
      if (kind === SLIDE || kind === FREE) {
        const t = kind === SLIDE ? scaled(this.axes[row], q[at]) : [q[at], q[at + 1], q[at + 2]];
        for (let i = 0; i < 3; i++) local[9 + i] += rest[3 * i] * t[0] + rest[3 * i + 1] * t[1] + rest[3 * i + 2] * t[2];
      }
      if (kind === HINGE || kind === BALL || kind === FREE) {
        const k = kind === FREE ? at + 3 : at;
        matrixOf(kind === HINGE ? exp(scaled(this.axes[row], q[at])) : [q[k], q[k + 1], q[k + 2], q[k + 3]], turn, 0);
        for (let i = 0; i < 3; i++) for (let j = 0; j < 3; j++)
          local[3 * i + j] = rest[3 * i] * turn[j] + rest[3 * i + 1] * turn[3 + j] + rest[3 * i + 2] * turn[6 + j];
      }
      const to = 12 * row, from = 12 * this.parents[row];
      if (from < 0) { for (let i = 0; i < 12; i++) out[to + i] = local[i]; continue; }
      for (let i = 0; i < 3; i++) {
        const a = out[from + 3 * i], b = out[from + 3 * i + 1], c = out[from + 3 * i + 2];
        for (let j = 0; j < 3; j++) out[to + 3 * i + j] = a * local[j] + b * local[3 + j] + c * local[6 + j];
        out[to + 9 + i] = a * local[9] + b * local[10] + c * local[11] + out[from + 9 + i];
      }
    }
    return out;
  }

  // Interpolate between the joint values of two poses.
  between(a, b, part) {
    const out = new Float64Array(this.nq);
    for (let i = 0; i < this.nq; i++) out[i] = a[i] * (1 - part) + b[i] * part;
    this.kinds.forEach((kind, row) => {
      if (kind !== BALL && kind !== FREE) return;
      const at = this.first[row] + (kind === FREE ? 3 : 0);
      out.set(mixed([...a.slice(at, at + 4)], [...b.slice(at, at + 4)], part), at);
    });
    return out;
  }

  // The nearest rotation inside the limit of a ball: q = swing · twist, in the limit's frame.
  inside(limit, q) {
    const frame = limit.slice(0, 4), [xLow, xHigh, yLow, yHigh, low, high] = limit.slice(4);
    const own = times(times(inverse(frame), q), frame), n = Math.hypot(own[2], own[3]);
    const about = n > 1e-9 ? [0, 0, own[2] / n, own[3] / n] : [0, 0, 0, 1];
    const swing = log(times(own, inverse(about)));
    let twist = 2 * Math.atan2(about[2], about[3]);
    if (twist > Math.PI) twist -= 2 * Math.PI;
    if (twist <= -Math.PI) twist += 2 * Math.PI;
    const a = swing[0] < 0 ? xLow : xHigh, b = swing[1] < 0 ? yLow : yHigh;
    const out = (swing[0] / a) ** 2 + (swing[1] / b) ** 2 > 1;
    if (!out && twist >= low && twist <= high) return q;
    const [sx, sy] = out ? onEllipse(Math.abs(swing[0]), Math.abs(swing[1]), a, b) : swing;
    const kept = exp(out ? [Math.sign(swing[0]) * sx, Math.sign(swing[1]) * sy, 0] : [sx, sy, 0]);
    const angle = clamp(twist, low, high) / 2;
    return times(times(frame, times(kept, [0, 0, Math.sin(angle), Math.cos(angle)])), inverse(frame));
  }
}

// The nearest point on an ellipse with half-axes a and b in the first quadrant.
function onEllipse(x, y, a, b) {
  if (a < 1e-9 || b < 1e-9) return a < b ? [0, Math.min(y, b)] : [Math.min(x, a), 0];
  let t = 0;
  let low = -Math.min(a * a, b * b) + 1e-12, high = Math.hypot(a * x, b * y);
  for (let i = 0; i < 60; i++) {
    t = (low + high) / 2;
    const g = (a * x / (t + a * a)) ** 2 + (b * y / (t + b * b)) ** 2;
    if (g > 1) low = t; else high = t;
  }
  const p = [a * a * x / (high + a * a), b * b * y / (high + b * b)];
  const n = Math.max(1, Math.hypot(p[0] / a, p[1] / b));
  return p.map(v => v * (1 - 1e-9) / n);
}

// Solve A x = b in place for a symmetric positive definite A (m × m) and k columns of b.
function cholesky(A, m, b, k) {
  for (let j = 0; j < m; j++) {
    for (let i = 0; i < j; i++) { const f = A[j * m + i]; for (let r = j; r < m; r++) A[r * m + j] -= f * A[r * m + i]; }
    const d = Math.sqrt(Math.max(A[j * m + j], 1e-30));
    for (let r = j; r < m; r++) A[r * m + j] /= d;
  }
  for (let c = 0; c < k; c++) {
    for (let i = 0; i < m; i++) {
      let v = b[i * k + c];
      for (let j = 0; j < i; j++) v -= A[i * m + j] * b[j * k + c];
      b[i * k + c] = v / A[i * m + i];
    }
    for (let i = m - 1; i >= 0; i--) {
      let v = b[i * k + c];
      for (let j = i + 1; j < m; j++) v -= A[j * m + i] * b[j * k + c];
      b[i * k + c] = v / A[i * m + i];
    }
  }
}

// Damped least squares with two priority levels: first balance and the feet that stay, then the dragged handles, near a
// preferred pose.
// Joint limits hold after every step: a direction that leaves one is held, and the step is computed again.
// The solver only finds a pose nearby, and proves nothing about targets that it misses.
class Solver {
  constructor(body, handles, size) {
    this.body = body;
    this.size = size;
    const carries = handles.filter(h => h.carries).map(h => h.row);
    const root = body.kinds.findIndex(kind => kind !== FIXED);
    this.columns = [];  // {row, kind, k, weight}: k is the component, 3 to 5 are those of a free joint's translation
    body.kinds.forEach((kind, row) => {
      const moved = handles.filter(h => body.isAbove(row, h.row)).length;
      if (!moved || body.coupled[row]) return;
      const weight = moved > 1 ? 0.6 : 1;
      if (kind === HINGE || kind === SLIDE) this.columns.push({ row, kind, k: 0, weight });
      if (kind === BALL) for (let k = 0; k < 3; k++) this.columns.push({ row, kind, k, weight });
      if (kind === FREE && row === root && carries.length)
        for (let k = 0; k < 6; k++) this.columns.push({ row, kind, k, weight: k < 3 ? 0.35 : 0.7 });
    });
    this.columns.forEach(column => { column.moves = body.parents.map((_, of) => body.isAbove(column.row, of)); });
    this.mass = body.masses.reduce((sum, m) => sum + m[0], 0);
    this.tips = handles;
    this.work = new Float64Array(12 * body.count);
  }

  center(frames) {
    let c = [0, 0, 0];
    this.body.masses.forEach(([mass, ...com], row) => {
      if (mass) c = plus(c, this.place(frames, row, com), mass / this.mass);
    });
    return c;
  }

  place(frames, row, p) {
    const at = 12 * row;
    return [0, 1, 2].map(i => frames[at + 3 * i] * p[0] + frames[at + 3 * i + 1] * p[1] + frames[at + 3 * i + 2] * p[2] + frames[at + 9 + i]);
  }

  // The world axis and the origin of each column; an axis of a translation has no origin.
  axes(frames) {
    const body = this.body;
    return this.columns.map(({ row, kind, k }) => {
      const at = 12 * row, column = (base, j) => [frames[base + j], frames[base + 3 + j], frames[base + 6 + j]];
      const origin = [frames[at + 9], frames[at + 10], frames[at + 11]];
      const along = v => [0, 1, 2].map(i => frames[at + 3 * i] * v[0] + frames[at + 3 * i + 1] * v[1] + frames[at + 3 * i + 2] * v[2]);
      if (kind === HINGE) return { axis: along(body.axes[row]), origin };
      if (kind === SLIDE) return { axis: scaled(along(body.axes[row]), this.size), origin: null };
      if (k < 3) return { axis: column(at, k), origin };
      const rest = body.rest[row], v = [rest[k - 3], rest[k], rest[k + 3]], above = 12 * body.parents[row];
      const axis = above < 0 ? v : [0, 1, 2].map(i => frames[above + 3 * i] * v[0] + frames[above + 3 * i + 1] * v[1] + frames[above + 3 * i + 2] * v[2]);
      return { axis: scaled(axis, this.size), origin: null };
    });
  }

  // Rows of the Jacobian and residuals of goals {row, place, turn (nine numbers), weight}.
  rows(frames, axes, goals, most) {
    const n = this.columns.length, J = [], e = [];
    const add = (residual, columnOf, weight) => {
      for (let i = 0; i < residual.length; i++) {
        const line = new Float64Array(n);
        for (let c = 0; c < n; c++) line[c] = weight * columnOf[c][i] * this.columns[c].weight;
        J.push(line); e.push(weight * residual[i]);
      }
    };
    const zero = [0, 0, 0];
    for (const goal of goals) {
      const at = 12 * goal.row, p = [frames[at + 9], frames[at + 10], frames[at + 11]];
      let error = scaled(minus(goal.place, p), 1 / this.size);
      const far = Math.hypot(...error);
      if (far > most) error = scaled(error, most / far);
      const moves = axes.map(({ axis, origin }, c) => !this.columns[c].moves[goal.row] ? zero :
        scaled(origin ? cross(axis, minus(p, origin)) : axis, 1 / this.size));
      add(error, moves, goal.weight ?? 1);
      if (goal.turn) add(rotationVector(goal.turn, frames.subarray(at, at + 9)),
        axes.map(({ axis, origin }, c) => origin && this.columns[c].moves[goal.row] ? axis : zero), 0.5 * (goal.weight ?? 1));
    }
    return { J, e };
  }

  // The centre of mass on the floor and its Jacobian, two rows, as fractions of the body's size.
  balanceOf(frames, axes, across) {
    const masses = this.body.masses, centers = masses.map((m, row) => m[0] ? this.place(frames, row, m.slice(1)) : null);
    const J = across.map(() => new Float64Array(this.columns.length));
    axes.forEach(({ axis, origin }, c) => {
      let sum = [0, 0, 0];
      centers.forEach((center, row) => {
        if (center && this.columns[c].moves[row]) sum = plus(sum, origin ? cross(axis, minus(center, origin)) : axis, masses[row][0]);
      });
      across.forEach((v, i) => { J[i][c] = dot(v, sum) / this.mass / this.size * this.columns[c].weight; });
    });
    const center = this.center(frames);
    return { at: across.map(v => dot(v, center) / this.size), J };
  }

  // Apply a step to q; return the directions that left their limit: a column to hold, or a direction of a ball.
  apply(q, step, to) {
    const body = this.body, held = [];
    to.set(q);
    for (let c = 0; c < this.columns.length; c++) {
      const { row, kind, k } = this.columns[c], at = body.first[row], limit = body.limits[row];
      if (kind === HINGE || kind === SLIDE) {
        const wanted = q[at] + step[c] * (kind === SLIDE ? this.size : 1);
        to[at] = limit ? clamp(wanted, limit[0] ?? -Infinity, limit[1] ?? Infinity) : wanted;
        if (to[at] !== wanted) held.push({ c });
      } else if (k === 3) {
        const t = [step[c], step[c + 1], step[c + 2]];
        for (let i = 0; i < 3; i++) to[at + i] = q[at + i] + t[i] * this.size;
      } else if (k === 0) {
        const from = at + (kind === FREE ? 3 : 0);
        const turned = times([q[from], q[from + 1], q[from + 2], q[from + 3]], exp([step[c], step[c + 1], step[c + 2]]));
        const kept = limit ? body.inside(limit, turned) : turned, n = Math.hypot(...kept);
        to.set(kept.map(v => v / n), from);
        if (kept !== turned) held.push({ c, along: unit(log(times(inverse(kept), turned))) });
      }
    }
    return held;
  }

  // Take one step, and return the joint values.
  step(q, first, second, balance, liked) {
    const n = this.columns.length, body = this.body, frames = body.frames(q, this.work), axes = this.axes(frames);
    const upper = this.rows(frames, axes, first, 0.2), lower = this.rows(frames, axes, second, 0.1);
    const weighed = balance && this.balanceOf(frames, axes, balance.across), leant = [];
    const error = Math.hypot(...lower.e), posture = 2e-4, damping = 1e-4 + 0.02 * error * error;
    const pull = new Float64Array(n);
    if (liked) this.columns.forEach(({ row, kind, k }, c) => {
      const at = body.first[row];
      if (kind === HINGE) pull[c] = liked[at] - q[at];
      else if (kind === SLIDE) pull[c] = (liked[at] - q[at]) / this.size;
      else if (k >= 3) pull[c] = 0;
      else if (k === 0) {
        const from = at + (kind === FREE ? 3 : 0);
        const w = log(times(inverse([...q.slice(from, from + 4)]), [...liked.slice(from, from + 4)]));
        for (let i = 0; i < 3; i++) pull[c + i] = w[i];
      }
    });
    const held = [];
    const to = new Float64Array(q.length), step = new Float64Array(n);
    for (let round = 0; round < 6; round++) {
      const drop = line => {
        const out = Float64Array.from(line);
        for (const { c, along } of held) {
          if (!along) { out[c] = 0; continue; }
          const s = out[c] * along[0] + out[c + 1] * along[1] + out[c + 2] * along[2];
          for (let i = 0; i < 3; i++) out[c + i] -= s * along[i];
        }
        return out;
      };
      const tips = leant.map(({ normal }) => weighed.J[0].map((v, c) => normal[0] * v + normal[1] * weighed.J[1][c]));
      const x = this.optimum([...upper.J, ...tips].map(drop), [...upper.e, ...leant.map(l => l.gap)], lower.J.map(drop), lower.e, drop(pull), posture, damping);
      let most = 0;
      for (let c = 0; c < n; c++) most = Math.max(most, Math.abs(x[c] * this.columns[c].weight));
      const scale = most > 0.3 ? 0.3 / most : 1;
      for (let c = 0; c < n; c++) step[c] = x[c] * this.columns[c].weight * scale;
      const found = this.apply(q, step, to);
      const fresh = found.filter(h => !held.some(o => o.c === h.c && (!h.along || dot(o.along, h.along) > 0.9)));
      const edge = weighed && leant.length < 2 && outside(balance.hull, weighed.at.map((v, i) => weighed.J[i].reduce((sum, w, c) => sum + scale * w * x[c], v)));
      if (!fresh.length && !edge) break;
      held.push(...fresh);
      if (edge && !leant.some(l => l.normal === edge.normal))
        leant.push({ normal: edge.normal, gap: edge.limit - edge.normal[0] * weighed.at[0] - edge.normal[1] * weighed.at[1] });
    }
    return to;
  }

  // min |J2 x - e2|² + posture |x - pull|² + damping |x|², over the x that minimise |J1 x - e1|.
  optimum(J1, e1, J2, e2, pull, posture, damping) {
    const n = pull.length, m1 = J1.length, m2 = J2.length, ridge = posture + damping;
    const inner = (a, b) => { let s = 0; for (let i = 0; i < n; i++) s += a[i] * b[i]; return s; };
    let x = new Float64Array(n), like = Float64Array.from(pull, v => v * posture / ridge), lines = J2;
    if (m1) {
      const A = new Float64Array(m1 * m1), k = m2 + 2, b = new Float64Array(m1 * k);
      for (let i = 0; i < m1; i++) {
        for (let j = 0; j <= i; j++) A[i * m1 + j] = A[j * m1 + i] = inner(J1[i], J1[j]);
        A[i * m1 + i] += 1e-7;
        for (let j = 0; j < m2; j++) b[i * k + j] = inner(J1[i], J2[j]);
        b[i * k + m2] = e1[i];
        b[i * k + m2 + 1] = inner(J1[i], like);
      }
      cholesky(A, m1, b, k);
      const off = (line, c, sign) => { for (let i = 0; i < m1; i++) { const f = sign * b[i * k + c]; for (let j = 0; j < n; j++) line[j] += f * J1[i][j]; } };
      lines = J2.map((line, c) => { const out = Float64Array.from(line); off(out, c, -1); return out; });
      off(x, m2, 1);
      off(like, m2 + 1, -1);
    }
    for (let j = 0; j < n; j++) x[j] += like[j];
    if (!m2) return x;
    const A = new Float64Array(m2 * m2), r = new Float64Array(m2);
    for (let i = 0; i < m2; i++) {
      for (let j = 0; j <= i; j++) A[i * m2 + j] = A[j * m2 + i] = inner(lines[i], lines[j]);
      A[i * m2 + i] += ridge;
      r[i] = e2[i] - inner(J2[i], x);
    }
    cholesky(A, m2, r, 1);
    for (let i = 0; i < m2; i++) for (let j = 0; j < n; j++) x[j] += r[i] * lines[i][j];
    return x;
  }

  // Take several steps, then some that only move the feet back to their places.
  solve(q, first, second, balance, liked, steps = 12) {
    for (let i = 0; i < steps; i++) q = this.step(q, first, second, balance, liked);
    if (first.length) for (let i = 0; i < 4; i++) q = this.step(q, first, [], balance, null);
    return q;
  }
}

// The convex hull of points of the plane as half planes {normal, limit}: inside where normal · p <= limit.
function hullOf(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]), half = list => {
    const out = [];
    for (const p of list) {
      while (out.length > 1) {
        const [a, b] = out.slice(-2);
        if ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 1e-12) break;
        out.pop();
      }
      out.push(p);
    }
    return out.slice(0, -1);
  };
  const corners = [...half(sorted), ...half(sorted.reverse())];
  return corners.map((a, i) => {
    const b = corners[(i + 1) % corners.length], n = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const normal = [(b[1] - a[1]) / n, (a[0] - b[0]) / n];
    return { normal, limit: normal[0] * a[0] + normal[1] * a[1] };
  });
}

// The half plane that a point leaves farthest; null inside the hull.
function outside(hull, p) {
  let most = 1e-5, found = null;
  for (const one of hull) {
    const out = one.normal[0] * p[0] + one.normal[1] * p[1] - one.limit;
    if (out > most) { most = out; found = one; }
  }
  return found;
}
