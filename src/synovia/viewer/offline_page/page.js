// The page: the clip with its time line, the camera, and handles that are dragged.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const canvas = $("view"), look = $("look"), back = $("back"), say = $("say");
const { up, ahead, frames, fps, size } = data, side = cross(up, ahead);
const embedded = window.self !== window.top;
const body = new Body(data.body), solver = new Solver(body, data.handles, size);
const canMove = solver.columns.length > 0;
const state = {
  clock: 0, playing: frames > 1, loop: true, speed: 1, first: 0, end: frames - 1, turn: 0.5, rise: 0.16, zoom: 1,
  q: null,  // joint values of the dragged pose; null while the clip is shown
  goals: new Map(),  // by handle: the position to which it was dragged
  stays: [],  // joints that keep their place: {row, place, turn}
  balance: null, liked: null, blend: null, dragged: null,
};
document.title = $("name").textContent = data.name;
document.body.classList.toggle("embedded", embedded);

async function unpacked() {
  const bytes = Uint8Array.from(atob(data.data), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Unpack the numbers of an array, row by row. They are stored by byte (lowest first), then by column, as differences of
// rows.
function numbers(raw, id) {
  const { at, bytes, rows, columns, differences } = data.arrays[id], count = rows * columns;
  const out = bytes === 1 ? new Uint8Array(count) : bytes === 2 ? new Uint16Array(count) : new Uint32Array(count);
  const wrap = bytes === 4 ? 0xffffffff : 2 ** (8 * bytes) - 1;
  for (let c = 0; c < columns; c++) {
    let above = 0;
    for (let r = 0; r < rows; r++) {
      let v = 0;
      for (let b = bytes - 1; b >= 0; b--) v = (v << 8) | raw[at + b * count + c * rows + r];
      above = differences ? (above + v) & wrap : v;
      out[r * columns + c] = above;
    }
  }
  return out;
}

let raw, drawing, q_of, surface, bones, marks, marked, path;

function motionOf() {
  const { low, steps, q } = data.motion, whole = numbers(raw, q), n = body.nq;
  return frame => {
    const at = Math.min(Math.floor(frame), frames - 1), next = Math.min(at + 1, frames - 1), out = [at, next].map(f => {
      const row = new Float64Array(n);
      for (let i = 0; i < n; i++) row[i] = low[i] + steps[i] * whole[f * n + i];
      return row;
    });
    return next === at || frame === at ? body.between(out[0], out[0], 0) : body.between(out[0], out[1], frame - at);
  };
}

async function surfaceOf() {
  const { rows, binds, parts } = data.surface, meshes = [], images = new Map();
  for (const part of parts) {
    const whole = numbers(raw, part.places), place = new Float32Array(whole.length);
    for (let i = 0; i < whole.length; i++) place[i] = part.low[i % 3] + part.span[i % 3] * whole[i] / 65535;
    const faces = numbers(raw, part.faces), count = place.length / 3;
    const tone = part.colours === undefined ? new Uint8Array(3 * count) : numbers(raw, part.colours);
    if (part.colours === undefined) for (let i = 0; i < tone.length; i++) tone[i] = part.image === undefined ? part.colour[i % 3] : 255 * part.tint[i % 3];
    let arrays = { place, faces, tone, normal: normalsOf(place, faces), bones: Uint16Array.from(numbers(raw, part.bones)), weights: numbers(raw, part.weights) };
    let image = null;
    if (part.image !== undefined) {
      if (!images.has(part.image)) images.set(part.image, drawing.imageOf(await createImageBitmap(new Blob([numbers(raw, part.image)], { type: "image/jpeg" }))));
      image = images.get(part.image);
      arrays = seamed(arrays, numbers(raw, part.corners));
    }
    meshes.push(drawing.mesh(arrays, { faceted: part.flat, image }));
  }
  const moves = drawing.moves(rows.length);
  return { meshes, moves, alpha: 1, shadow: true, place(frames) {
    rows.forEach((row, bone) => {
      const f = 12 * row, bind = binds[bone], to = 12 * bone;
      for (let i = 0; i < 3; i++) for (let j = 0; j < 4; j++)
        moves.data[to + 4 * i + j] = frames[f + 3 * i] * bind[j] + frames[f + 3 * i + 1] * bind[4 + j] + frames[f + 3 * i + 2] * bind[8 + j] + (j === 3 ? frames[f + 9 + i] : 0);
    });
  } };
}

// Return the same triangles with a separate vertex for each pair of vertex and texture coordinate.
function seamed(arrays, corners) {
  const known = new Map(), from = [], uv = [], faces = new Uint32Array(arrays.faces.length);
  for (let i = 0; i < faces.length; i++) {
    const key = `${arrays.faces[i]},${corners[2 * i]},${corners[2 * i + 1]}`;
    if (!known.has(key)) { known.set(key, from.length); from.push(arrays.faces[i]); uv.push(corners[2 * i] / 16384, corners[2 * i + 1] / 16384); }
    faces[i] = known.get(key);
  }
  const take = (values, width) => {
    const out = new values.constructor(width * from.length);
    from.forEach((v, i) => { for (let k = 0; k < width; k++) out[width * i + k] = values[width * v + k]; });
    return out;
  };
  return { place: take(arrays.place, 3), normal: take(arrays.normal, 3), bones: take(arrays.bones, 4), weights: take(arrays.weights, 4), tone: take(arrays.tone, 3), corner: new Float32Array(uv), faces };
}

// The position of a joint, or of a point [joint, x, y, z] in the frame of a joint; joint -1 is the world.
function at(frames, row) {
  const [joint, ...p] = Array.isArray(row) ? row : [row, 0, 0, 0];
  return joint < 0 ? p : placed(frames, joint, p);
}

function bonesOf() {
  const pieces = new Pieces(), { rods, balls } = data.bones;
  rods.forEach(([, , ra, rb, colour]) => pieces.rod(rb / (ra || 1), colour));
  balls.forEach(([, , colour]) => pieces.ball(colour));
  const moves = drawing.moves(pieces.count);
  const put = (k, x, y, z, p) => { for (let i = 0; i < 3; i++) moves.data.set([x[i], y[i], z[i], p[i]], 12 * k + 4 * i); };
  return { meshes: [pieces.mesh(drawing)], moves, alpha: 1, shadow: true, place(frames) {
    rods.forEach(([from, to, radius], k) => {
      const a = at(frames, from), along = minus(at(frames, to), a), z = unit(along);
      const x = unit(cross(Math.abs(z[0]) < 0.8 ? [1, 0, 0] : [0, 1, 0], z)), y = cross(z, x);
      put(k, scaled(x, radius), scaled(y, radius), along, a);
    });
    balls.forEach(([row, radius], k) => put(rods.length + k, [radius, 0, 0], [0, radius, 0], [0, 0, radius], at(frames, row)));
  } };
}

// Targets: balls, and the paths of those that move.
function marksOf() {
  if (!data.targets) return null;
  const { low, span, places, count, colour } = data.targets, whole = numbers(raw, places), rows = whole.length / (3 * count);
  marked = (frame, k) => {
    const from = Math.min(Math.floor(frame), rows - 1), to = Math.min(from + 1, rows - 1), part = frame - Math.floor(frame);
    return [0, 1, 2].map(i => low[i] + span / 4e9 * (whole[(from * count + k) * 3 + i] * (1 - part) + whole[(to * count + k) * 3 + i] * part));
  };
  const pieces = new Pieces(), soft = colour.map(v => 0.55 * v + 0.45 * 220);
  for (let k = 0; k < count; k++) pieces.ball(colour);
  if (rows > 2) for (let k = 0; k < count; k++) {
    const points = Array.from({ length: rows }, (_, r) => marked(r, k)), gap = (a, b) => Math.hypot(...minus(a, b));
    if (gap(points[rows - 1], points[0]) < 1.5 * gap(points[rows - 1], points[rows - 2])) points.push(points[0]);  // closed path
    pieces.tube(points, 0.0022 * size, soft);
  }
  const moves = drawing.moves(pieces.count), radius = 0.014 * size;
  for (let k = 0; k < pieces.count; k++) moves.data.set([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0], 12 * k);
  return { meshes: [pieces.mesh(drawing)], moves, alpha: 1, shadow: false, place(_, frame) {
    for (let k = 0; k < count; k++) {
      const p = marked(rows > 1 ? frame : 0, k);
      for (let i = 0; i < 3; i++) { moves.data.fill(0, 12 * k + 4 * i, 12 * k + 4 * i + 3); moves.data[12 * k + 5 * i] = radius; moves.data[12 * k + 4 * i + 3] = p[i]; }
    }
  } };
}

// --- camera -----------------------------------------------------------------------------------------------------------

function camera(middle) {
  const c = Math.cos(state.turn), s = Math.sin(state.turn), e = Math.cos(state.rise), f = Math.sin(state.rise);
  const behind = [0, 1, 2].map(i => e * (c * ahead[i] + s * side[i]) + f * up[i]);
  const right = unit(cross(up, behind)), top = cross(behind, right);
  const wide = innerWidth, tall = innerHeight, bar = Math.min($("bar").offsetHeight + 8, 0.5 * tall), head = Math.min(46, 0.1 * tall);
  const focal = 1.9 * Math.min(tall, 1.6 * wide), room = tall - bar - head;
  const fit = Math.max(data.tall * focal / (0.94 * room), data.wide * focal / (0.9 * wide)) + 0.5 * data.wide;
  const away = fit / state.zoom, eye = plus(middle, behind, away);
  const near = Math.max(0.02 * size, away - 6 * size), far = away + 8 * size, lift = (bar - head) / tall;
  const projection = new Float32Array([2 * focal / wide, 0, 0, 0, 0, 2 * focal / tall, 0, 0, 0, -lift, -(far + near) / (far - near), -1, 0, 0, -2 * far * near / (far - near), 0]);
  return { eye, right, top, back: behind, focal, away, matrix: product(projection, looking(right, top, behind, eye)) };
}

function onScreen(view, p) {
  const m = view.matrix, c = [0, 1, 3].map(i => m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2] + m[12 + i]);
  return { x: (0.5 + 0.5 * c[0] / c[2]) * innerWidth, y: (0.5 - 0.5 * c[1] / c[2]) * innerHeight, depth: c[2] };
}

function lightFrom(middle) {
  const key = unit(plus(plus(scaled(up, 1.15), ahead, 0.75), side, 0.5));
  const right = unit(cross(up, key)), top = cross(key, right), reach = 0.85 * size, flat = new Float32Array(16);
  flat[0] = flat[5] = 1 / reach; flat[10] = -1 / (2 * reach); flat[15] = 1;
  return { key, light: product(flat, looking(right, top, key, middle)) };
}

// --- what is dragged --------------------------------------------------------------------------------------------------

const handles = canMove ? data.handles.map((handle, k) => {
  const button = document.createElement("button"), label = document.createElement("span");
  button.type = "button";
  button.className = "handle";
  button.setAttribute("aria-label", `${handle.label}: drag it, or move it with the arrow keys`);
  label.textContent = handle.label;
  button.append(label);
  $("handles").append(button);
  button.onpointerdown = e => {
    if (e.button) return;
    e.preventDefault();
    button.focus({ preventScroll: true });
    button.setPointerCapture(e.pointerId);
    grab(k);
    const at = onScreen(shown.view, state.goals.get(k));
    state.dragged = { k, x: e.clientX - at.x, y: e.clientY - at.y };
  };
  button.onpointermove = e => { if (state.dragged && state.dragged.k === k) moveTo(k, e.clientX - state.dragged.x, e.clientY - state.dragged.y); };
  button.onpointerup = button.onpointercancel = () => { state.dragged = null; };
  button.onkeydown = e => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
    if (!step) return;
    e.preventDefault();
    e.stopPropagation();
    if (!state.goals.has(k)) grab(k);
    const by = 0.012 * size, p = state.goals.get(k);
    state.goals.set(k, plus(plus(p, shown.view.right, by * step[0]), e.shiftKey ? shown.view.back : shown.view.top, by * step[1]));
  };
  return { ...handle, button };
}) : [];

let shown = { view: null, frames: null };

// Begin to drag a handle: the clip stops, feet stay, and what was dragged before stays where it was put.
function grab(k) {
  handles.forEach(h => h.button.classList.remove("first"));
  if (!state.q) {
    toggle(false);
    state.q = current();
    state.blend = null;
    state.liked = state.q.slice();
    state.goals.clear();
    const frames = body.frames(state.q), low = data.floor + 0.16 * size;
    state.stays = handles.map((h, i) => ({ ...h, k: i })).filter(h => h.carries && (dot(at(frames, h.row), up) < low))
      .map(h => ({ k: h.k, row: h.row, place: at(frames, h.row), turn: [...frames.subarray(12 * h.row, 12 * h.row + 9)], weight: STAYS }));
    state.balance = balanceOn(frames);
    back.hidden = false;
  }
  state.goals.set(k, state.goals.get(k) || at(body.frames(state.q), handles[k].row));
}

// The centre of mass stays in a box on the floor around the standing feet and its place in the clip.
function balanceOn(frames) {
  if (!state.stays.length || !solver.mass) return null;
  const stands = body.parents.map((_, row) => row).filter(row => state.stays.some(stay => body.isAbove(stay.row, row)));
  return [ahead, side].map(axis => {
    const ends = stands.map(row => dot(axis, at(frames, row))), center = dot(axis, solver.center(frames)), wide = 0.018 * size;
    return { axis, low: Math.min(center, ...ends.map(v => v - wide)), high: Math.max(center, ...ends.map(v => v + wide)) };
  });
}

function moveTo(k, x, y) {
  const view = shown.view, p = state.goals.get(k), here = onScreen(view, p), s = here.depth / view.focal;
  state.goals.set(k, plus(plus(p, view.right, (x - here.x) * s), view.top, (here.y - y) * s));
}

function pull() {
  const stays = state.stays.filter(s => !state.goals.has(s.k)), dragged = [];
  state.goals.forEach((place, k) => {
    const stay = state.stays.find(s => s.k === k), now = state.dragged && state.dragged.k === k;
    dragged.push({ row: handles[k].row, place, turn: stay && stay.turn, weight: now || !state.dragged ? 1 : 0.8 });
  });
  state.q = solver.solve(state.q, stays, dragged, state.balance, state.liked, 6);
  const frames = body.frames(state.q);
  let text = "", missed = null;
  state.goals.forEach((place, k) => {
    const gap = Math.hypot(...minus(at(frames, handles[k].row), place)), far = gap > 0.012 * size;
    handles[k].button.classList.toggle("missed", far);
    if (far && (!missed || k === (state.dragged || {}).k)) missed = `${handles[k].label} stops ${lengthText(gap)} short: limits or reach.`;
  });
  text = missed || (state.stays.length ? "Feet stay, balance and joint limits hold." : "Joint limits hold.");
  if (say.textContent !== text) say.textContent = text;
  say.classList.toggle("missed", Boolean(missed));
}

function lengthText(d) {
  if (!data.unit) return d.toPrecision(3);
  const metres = d * data.unit;
  return metres >= 1 ? `${metres.toFixed(2)} m` : `${(100 * metres).toFixed(0)} cm`;
}

function release() {
  if (!state.q) return;
  state.blend = { q: state.q, left: 1 };
  state.q = null;
  state.goals.clear();
  handles.forEach(h => h.button.classList.remove("missed"));
  say.classList.remove("missed");
  say.textContent = "";
  back.hidden = true;
}

// --- frames -----------------------------------------------------------------------------------------------------------

function current() {
  const q = q_of(state.clock);
  if (!state.blend) return q;
  const t = state.blend.left;
  return body.between(q, state.blend.q, t * t * (3 - 2 * t));
}

// The path of a body over the floor, smoothed so that the camera moves evenly.
function pathOf() {
  const moving = Math.max(body.kinds.findIndex(kind => kind !== FIXED), 0), half = Math.round(0.4 * fps), points = [];
  for (let f = 0; f < frames; f++) {
    const p = at(body.frames(q_of(f)), moving);
    points.push(minus(p, scaled(up, dot(p, up))));
  }
  return points.map((_, f) => {
    const near = points.slice(Math.max(f - half, 0), f + half + 1);
    return scaled(near.reduce((sum, p) => plus(sum, p), [0, 0, 0]), 1 / near.length);
  });
}

function draw() {
  const q = state.q || current(), now = body.frames(q);
  let middle = data.middle;
  if (data.follows) {
    const from = Math.floor(state.clock), part = state.clock - from, next = Math.min(from + 1, frames - 1);
    middle = plus(plus(scaled(path[from], 1 - part), path[next], part), up, dot(data.middle, up));
  }
  const view = camera(middle), { key, light } = lightFrom(plus(middle, up, 0));
  shown = { view, frames: now };
  const foot = plus(middle, up, data.floor - dot(middle, up));
  const seen = look.value, groups = [], lightPage = !matchMedia("(prefers-color-scheme: dark)").matches;
  const both = seen === "both" && data.surface.parts.length, skin = data.surface.parts.length && seen !== "bones";
  bones.shadow = !skin || !data.whole;
  surface.alpha = both ? 0.5 : 1;
  if (marks) groups.push(marks);
  if (!skin || both || !data.whole) groups.push(bones);
  if (skin) groups.push(surface);
  groups.forEach(group => group.place(now, state.clock));
  drawing.draw(groups, {
    ...view, key, light, up, ground: data.floor, size,
    floor: { middle: foot, a: ahead, b: side, ink: lightPage ? [0.35, 0.42, 0.52] : [0.62, 0.68, 0.78], shift: [dot(foot, ahead), dot(foot, side)], cell: size / 7 },
  });
  handles.forEach((h, k) => {
    const p = onScreen(view, state.q && state.dragged && state.dragged.k === k && state.goals.has(k) ? state.goals.get(k) : at(now, h.row));
    h.button.style.transform = `translate(${p.x.toFixed(1)}px, ${p.y.toFixed(1)}px)`;
    h.button.hidden = p.depth < 0.02 * size;
    h.button.classList.toggle("held", Boolean(state.dragged && state.dragged.k === k));
  });
}

let last = 0, drawn = "", slow = 0, ratio = Math.min(devicePixelRatio || 1, 2);
function tick(now) {
  const seconds = Math.min((now - last) / 1000, 0.1);
  last = now;
  if (state.playing) advance(seconds * fps * state.speed);
  if (state.blend) { state.blend.left -= seconds / 0.5; if (state.blend.left <= 0) state.blend = null; }
  if (state.q) pull();
  const key = [state.clock, state.turn, state.rise, state.zoom, innerWidth, innerHeight, look.value, ratio, matchMedia("(prefers-color-scheme: dark)").matches, state.q ? state.q.join() : state.blend && state.blend.left, state.dragged && [...(state.goals.get(state.dragged.k) || [])].join()].join();
  if (key !== drawn) {
    drawn = key;
    slow = seconds > 0.06 ? slow + 1 : 0;
    if (slow > 20 && ratio > 0.75) { ratio = Math.max(0.75, ratio * 0.75); slow = 0; }
    const width = Math.round(innerWidth * ratio), height = Math.round(innerHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    timeline.at(state.clock, state.playing);
    draw();
  }
  requestAnimationFrame(tick);
}

function advance(by) {
  const { first, end } = state, to = state.clock + by;
  if (state.loop) state.clock = first + ((to - first) % (end - first) + end - first) % (end - first);
  else { state.clock = clamp(to, first, end); toggle(by > 0 ? to < end : to > first); }
}
function toggle(on) {
  if (on && !state.loop && state.clock === (state.speed > 0 ? state.end : state.first)) state.clock = state.speed > 0 ? state.first : state.end;
  state.playing = on && frames > 1;
  timeline.at(state.clock, state.playing);
}
back.onclick = () => { release(); toggle(true); };

const does = {
  go(frame) { toggle(false); state.clock = frame; },
  step(by) { does.go(clamp(Math.round(state.clock) + by, state.first, state.end)); },
  mark(last) {
    const now = Math.round(state.clock);
    if (last) does.range(Math.min(state.first, Math.max(now - 1, 0)), Math.max(now, 1));
    else does.range(Math.min(now, frames - 2), Math.max(state.end, Math.min(now + 1, frames - 1)));
  },
  play(on) { state.speed = Math.abs(state.speed); toggle(Boolean(on)); },
  stop() { does.go(state.first); },
  loop(on) { state.loop = Boolean(on); },
  speed(factor) { state.speed = factor; },
  shuttle(way) {
    const pace = Math.abs(state.speed), same = state.playing && way * state.speed > 0;
    state.speed = way ? way * Math.min(same ? 2 * pace : pace, 4) : Math.min(pace, 1);
    toggle(way !== 0);
  },
  range(first, end) { [state.first, state.end] = [first, end]; state.clock = clamp(state.clock, first, end); },
};
const timeline = new TimeLine($("bar"), (name, ...given) => { release(); does[name](...given); about(); });
timeline.more.append(look);
timeline.extra.append(back);
function about() {
  if (frames > 1) timeline.show({ last: frames - 1, fps, first: state.first, end: state.end, loop: state.loop, speed: Math.abs(state.speed), feet: data.feet });
  timeline.at(state.clock, state.playing);
}
const fingers = new Map();
canvas.onpointerdown = e => { fingers.set(e.pointerId, [e.clientX, e.clientY]); canvas.setPointerCapture(e.pointerId); };
canvas.onpointerup = canvas.onpointercancel = e => fingers.delete(e.pointerId);
canvas.onpointermove = e => {
  const was = fingers.get(e.pointerId);
  if (!was) return;
  const other = [...fingers].find(([id]) => id !== e.pointerId), now = [e.clientX, e.clientY];
  if (other) {
    const gap = p => Math.hypot(p[0] - other[1][0], p[1] - other[1][1]) || 1;
    state.zoom = clamp(state.zoom * gap(now) / gap(was), 0.3, 6);
  } else {
    state.turn -= (now[0] - was[0]) * 0.008;
    state.rise = clamp(state.rise + (now[1] - was[1]) * 0.006, -0.25, 1.4);
  }
  fingers.set(e.pointerId, now);
};
// In a frame of another page, a plain wheel scrolls that page.
canvas.addEventListener("wheel", e => {
  if (embedded && !e.ctrlKey && document.activeElement === document.body) return;
  e.preventDefault();
  state.zoom = clamp(state.zoom * Math.exp(-e.deltaY * 0.001), 0.3, 6);
}, { passive: false });
addEventListener("keydown", e => {
  const onControl = ["SELECT", "BUTTON", "INPUT"].includes(e.target.tagName) && !e.target.classList.contains("handle");
  if (e.key === "Escape") { release(); return; }
  if (!onControl && timeline.key(e)) e.preventDefault();
});

async function begin() {
  try {
    drawing = new Drawing(canvas);
    raw = await unpacked();
    q_of = frames ? motionOf() : () => Float64Array.from(data.motion.rest);
    surface = await surfaceOf();
    bones = bonesOf();
    marks = marksOf();
    path = data.follows ? pathOf() : null;
  } catch (error) {
    say.textContent = error.message;
    say.classList.add("missed");
    return;
  }
  if (!data.surface.parts.length) look.hidden = true;
  about();
  if (handles.length) {
    say.textContent = "Drag a ring: the body follows. Drag beside the body to turn it.";
    handles[0].button.classList.add("first");
  }
  requestAnimationFrame(now => { last = now; tick(now); });
}
begin();
