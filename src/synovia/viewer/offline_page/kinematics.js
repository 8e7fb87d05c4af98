// Forward kinematics, joint limits and a small solver. Frames are 12 numbers a joint: rotation (9, by rows), position (3).
// Quaternions are x, y, z, w. A ball turns by q · exp(w), with w in the joint's own frame.

const FIXED = 0, HINGE = 1, SLIDE = 2, BALL = 3, FREE = 4;
const SIZES = [0, 1, 1, 4, 7];

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scaled = (a, s) => a.map(v => v * s);
const plus = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const unit = a => scaled(a, 1 / (Math.hypot(...a) || 1));
const clamp = (v, low, high) => Math.max(low, Math.min(high, v));
function inner(a, b) { let s = 0; for (let i = 0; i < a.length; i++) s += a[i] * b[i]; return s; }
const STAYS = 10, POSTURE = 5e-5;  // weights: of feet and balance that stay, of the preferred pose; 1 for dragged handles

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
  return scaled(q.slice(0, 3), s > 1e-12 ? sign * angle / s : 2 * sign);
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

// A vector, and a point, in the frame of a joint.
const turned = (frames, row, v) => [0, 3, 6].map(i => frames[12 * row + i] * v[0] + frames[12 * row + i + 1] * v[1] + frames[12 * row + i + 2] * v[2]);
const placed = (frames, row, p) => turned(frames, row, p).map((v, i) => v + frames[12 * row + 9 + i]);

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

// Solve A x = b in place for a symmetric positive definite A (rows) by elimination; the solution replaces b.
function eliminate(A, b) {
  const m = b.length;
  for (let i = 0; i < m; i++) for (let r = i + 1; r < m; r++) {
    const f = A[r][i] / A[i][i];
    if (!f) continue;
    for (let k = i; k < m; k++) A[r][k] -= f * A[i][k];
    b[r] -= f * b[i];
  }
  for (let i = m - 1; i >= 0; i--) {
    for (let k = i + 1; k < m; k++) b[i] -= A[i][k] * b[k];
    b[i] /= A[i][i];
  }
}

// Damped least squares: each step minimises |J x - e|² + ridge |x - pull|², where J is the Jacobian of the goals, e has
// their errors, and pull leads to a preferred pose. Feet that stay, and lost balance, weigh more than dragged handles.
// A joint that would leave its limit is held there, and the step is computed again.
// The solver only finds a pose nearby, and proves nothing about targets that it misses.
class Solver {
  constructor(body, handles, size) {
    this.body = body;
    this.size = size;
    const root = body.kinds.findIndex(kind => kind !== FIXED), stands = handles.some(h => h.carries);
    this.columns = [];  // {row, kind, k, weight, moves}: k is the component, 3 to 5 are those of a free joint's translation
    body.kinds.forEach((kind, row) => {
      const moved = handles.filter(h => body.isAbove(row, h.row)).length, moves = body.parents.map((_, of) => body.isAbove(row, of));
      if (!moved || body.coupled[row] || (kind === FREE && !(row === root && stands))) return;
      for (let k = 0; k < [0, 1, 1, 3, 6][kind]; k++)
        this.columns.push({ row, kind, k, moves, weight: kind === FREE ? (k < 3 ? 0.35 : 0.7) : moved > 1 ? 0.6 : 1 });
    });
    this.mass = body.masses.reduce((sum, m) => sum + m[0], 0);
    this.work = new Float64Array(12 * body.count);
  }

  center(frames) {
    return this.body.masses.reduce((sum, [mass, ...com], row) => mass ? plus(sum, placed(frames, row, com), mass / this.mass) : sum, [0, 0, 0]);
  }

  // The world axis and the origin of each column; an axis of a translation has no origin.
  axes(frames) {
    const body = this.body, unitOf = k => [0, 1, 2].map(i => i === k % 3 ? 1 : 0);
    return this.columns.map(({ row, kind, k }) => {
      if (kind === SLIDE || k > 2) {
        const rest = body.rest[row], own = kind === SLIDE ? body.axes[row] : unitOf(k), above = body.parents[row];
        const along = [0, 1, 2].map(i => dot(rest.slice(3 * i, 3 * i + 3), own));
        return { axis: scaled(above < 0 ? along : turned(frames, above, along), this.size), origin: null };
      }
      return { axis: turned(frames, row, kind === HINGE ? body.axes[row] : unitOf(k)), origin: placed(frames, row, [0, 0, 0]) };
    });
  }

  // Rows of the Jacobian and errors of goals {row, place, turn (nine numbers), weight}, as fractions of the body's size.
  rows(frames, goals, balance) {
    const axes = this.axes(frames), J = [], e = [], columns = this.columns;
    const velocity = (c, row, p) => !columns[c].moves[row] ? [0, 0, 0] : axes[c].origin ? cross(axes[c].axis, minus(p, axes[c].origin)) : axes[c].axis;
    const add = (error, of, weight) => error.forEach((value, i) => {
      J.push(Float64Array.from(axes, (_, c) => weight * columns[c].weight * of[c][i]));
      e.push(weight * value);
    });
    for (const { row, place, turn, weight } of goals) {
      const p = placed(frames, row, [0, 0, 0]), error = scaled(minus(place, p), 1 / this.size);
      add(scaled(error, Math.min(1, 0.1 / (Math.hypot(...error) || 1))), axes.map((_, c) => scaled(velocity(c, row, p), 1 / this.size)), weight);
      if (turn) add(rotationVector(turn, frames.subarray(12 * row, 12 * row + 9)), axes.map(({ axis, origin }, c) => origin && columns[c].moves[row] ? axis : [0, 0, 0]), 0.5 * weight);
    }
    return { J, e, leans: balance ? this.leans(frames, balance, velocity) : [] };
  }

  // The centre of mass along each axis of the box in which it stays: its row, its place, and the ends of the box.
  leans(frames, balance, velocity) {
    const parts = this.body.masses.flatMap(([mass, ...com], row) => mass ? [{ mass, row, p: placed(frames, row, com) }] : []);
    const center = this.center(frames), scale = STAYS / this.size;
    const moves = this.columns.map(({ weight }, c) => parts.reduce((sum, { mass, row, p }) => plus(sum, velocity(c, row, p), weight * mass / this.mass), [0, 0, 0]));
    return balance.map(({ axis, low, high }) => ({ line: moves.map(v => scale * dot(axis, v)), at: scale * dot(axis, center), low: scale * low, high: scale * high }));
  }

  // Apply a step to q; return the directions that left their limit: the first column of a joint, and a vector in its columns.
  apply(q, step, to) {
    const body = this.body, held = [];
    to.set(q);
    this.columns.forEach(({ row, kind, k }, c) => {
      const at = body.first[row], limit = body.limits[row];
      if (kind === HINGE || kind === SLIDE) {
        const wanted = q[at] + step[c] * (kind === SLIDE ? this.size : 1);
        to[at] = limit ? clamp(wanted, limit[0] ?? -Infinity, limit[1] ?? Infinity) : wanted;
        if (to[at] !== wanted) held.push({ c, along: [1] });
      } else if (k > 2) to[at + k - 3] = q[at + k - 3] + step[c] * this.size;
      else if (k === 0) {
        const from = at + (kind === FREE ? 3 : 0), moved = times([...q.slice(from, from + 4)], exp([step[c], step[c + 1], step[c + 2]]));
        const kept = limit ? body.inside(limit, moved) : moved;
        to.set(scaled(kept, 1 / Math.hypot(...kept)), from);
        if (kept !== moved) held.push({ c, along: unit(log(times(inverse(kept), moved))) });
      }
    });
    return held;
  }

  // The step of each column that leads to the preferred pose.
  pull(q, liked) {
    const body = this.body, out = new Float64Array(this.columns.length);
    this.columns.forEach(({ row, kind, k, weight }, c) => {
      const at = body.first[row];
      if (kind === HINGE || kind === SLIDE) out[c] = (liked[at] - q[at]) / (kind === SLIDE ? this.size : 1) / weight;
      else if (k === 0) {
        const from = at + (kind === FREE ? 3 : 0);
        out.set(scaled(log(times(inverse([...q.slice(from, from + 4)]), [...liked.slice(from, from + 4)])), 1 / weight), c);
      }
    });
    return out;
  }

  step(q, goals, balance, liked) {
    const { J, e, leans } = this.rows(this.body.frames(q, this.work), goals, balance), held = [];
    const ridge = 3e-4 + 0.02 * Math.min(inner(e, e), 1), pull = scaled(this.pull(q, liked), POSTURE / ridge);
    const to = new Float64Array(q.length), free = line => {
      const out = Float64Array.from(line);
      for (const { c, along } of held) {
        const s = inner(along, out.subarray(c));
        along.forEach((v, i) => { out[c + i] -= s * v; });
      }
      return out;
    };
    for (let round = 0; round < 6; round++) {
      const lines = J.map(free), x = free(pull);
      const y = e.map((v, i) => v - inner(lines[i], x));
      eliminate(lines.map((a, i) => lines.map((b, j) => inner(a, b) + (i === j ? ridge : 0))), y);
      lines.forEach((line, i) => line.forEach((v, c) => { x[c] += y[i] * v; }));
      const falls = leans.filter(({ line, at, low, high }) => {
        const to = at + inner(line, x);
        return !J.includes(line) && (to < low || to > high) && J.push(line) && e.push(clamp(to, low, high) - at);
      });
      this.columns.forEach(({ weight }, c) => { x[c] *= weight; });
      const found = this.apply(q, scaled(x, 0.3 / Math.max(0.3, ...x.map(Math.abs))), to);
      const fresh = found.filter(h => !held.some(o => o.c === h.c && inner(h.along, o.along) > 0.9));
      if (!fresh.length && !falls.length) break;
      held.push(...fresh);
    }
    return to;
  }

  // Take some steps, then a few that only bring feet and balance back.
  solve(q, stays, dragged, balance, liked, steps = 12) {
    for (let i = 0; i < steps; i++) q = this.step(q, [...stays, ...dragged], balance, liked);
    if (stays.length) for (let i = 0; i < 4; i++) q = this.step(q, stays, balance, q);
    return q;
  }
}
