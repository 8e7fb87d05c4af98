// Mechanisms with loops by closed-chain-ik, for loops_peers.py --node FOLDER.
//
// Reads tasks {model, targets, starts, tolerance} as JSON on standard input; writes {q, times} of each, times in µs.
// A loop of points is a closure joint that turns freely; one of a distance is a rod: a link between two such joints.
import fs from 'node:fs';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const folder = path.resolve(process.argv[2]), most = Number(process.argv[3]);
const CLOSED = await import(pathToFileURL(path.join(folder, 'node_modules/closed-chain-ik/src/core/index.js')).href);
const { mat4, quat } = await import(pathToFileURL(path.join(folder, 'node_modules/gl-matrix/esm/index.js')).href);
const { Joint, Link, Goal, Solver, DOF } = CLOSED;
const TURNS = [DOF.EX, DOF.EY, DOF.EZ];

/** Put a frame where a transform (rows) has it. */
function put(frame, T) {
  const columns = mat4.fromValues(...[0, 1, 2, 3].flatMap((c) => [0, 1, 2, 3].map((r) => T[r][c])));
  const turn = mat4.getRotation(quat.create(), columns);
  frame.setPosition(T[0][3], T[1][3], T[2][3]);
  frame.setQuaternion(...turn);
}

/** Turn a joint that turns freely, by the angles that it uses: about x, then y, then z of the world. */
function turnTo(joint, [x, y, z, w]) {
  const sine = Math.max(-1, Math.min(1, 2 * (w * y - z * x)));
  const angles = [Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), Math.asin(sine), Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))];
  angles.forEach((angle, k) => joint.setDoFValue(DOF.EX + k, angle));
}

/** A link at a point of another one. */
function fixedAt(link, point) {
  const held = new Joint(), end = new Link();
  held.setDoF();
  end.setPosition(...point);
  link.addChild(held);
  held.addChild(end);
  return end;
}

function bodyOf({ joints, loops, goal }, tolerance) {
  const root = new Link(), links = [], moved = [];
  for (const one of joints) {
    const joint = new Joint(), link = new Link();
    put(joint, one.rest);
    if (one.kind === 'FIXED') joint.setDoF();
    if (one.kind === 'FREE') joint.setDoF(DOF.X, DOF.Y, DOF.Z, ...TURNS);
    let sign = 1;
    if (one.kind === 'HINGE' || one.kind === 'SLIDE') {
      const axis = one.axis.findIndex((x) => Math.abs(Math.abs(x) - 1) < 1e-9);
      if (axis < 0) throw new Error('an axis that is not one of its frame');
      sign = Math.sign(one.axis[axis]);
      const dof = axis + (one.kind === 'HINGE' ? 3 : 0);
      joint.setDoF(dof);
      const ends = [one.low[0] ?? -Infinity, one.high[0] ?? Infinity].map((x) => sign * x).sort((a, b) => a - b);
      joint.setMinLimits(ends[0]);
      joint.setMaxLimits(ends[1]);
    }
    (one.parent < 0 ? root : links[one.parent]).addChild(joint);
    joint.addChild(link);
    links.push(link);
    moved.push({ joint, sign, one });
  }
  const rods = [];
  const linkOf = (row) => (row < 0 ? root : links[row]);
  for (const [a, p, b, r, kind, far] of loops) {
    let from = linkOf(a), at = p;
    if (kind === 'distance') {
      const ball = new Joint(), rod = new Link();
      ball.setDoF(DOF.EX, DOF.EY);  // a rod that spun about itself would not converge
      ball.setPosition(...p);
      from.addChild(ball);
      ball.addChild(rod);
      rods.push({ ball, a, p, b, r });
      [from, at] = [rod, [0, 0, far]];
    }
    const pin = new Joint();
    pin.setDoF(...TURNS);
    pin.setPosition(...at);
    from.addChild(pin);
    pin.makeClosure(fixedAt(linkOf(b), r));
  }
  const end = fixedAt(links[goal[0]], goal[1]);
  const aim = new Goal();
  aim.setGoalDoF(DOF.X, DOF.Y, DOF.Z);
  aim.makeClosure(end);
  root.updateMatrixWorld(true);
  const solver = new Solver([root, aim]);
  Object.assign(solver, {
    maxIterations: most, translationConvergeThreshold: tolerance, rotationConvergeThreshold: 1e-3, stallThreshold: 1e-12,
    divergeThreshold: 1e3, restPoseFactor: 0, translationErrorClamp: 0.5, rotationErrorClamp: 0.5,
  });
  const place = new Float64Array(3);
  const spot = (row, point) => {
    const T = linkOf(row).matrixWorld;
    return [0, 1, 2].map((i) => T[i] * point[0] + T[4 + i] * point[1] + T[8 + i] * point[2] + T[12 + i]);
  };
  return {
    start(q) {
      for (const { joint, sign, one } of moved) {
        if (one.kind === 'HINGE' || one.kind === 'SLIDE') joint.setDoFValues(sign * q[one.at]);
        if (one.kind === 'FREE') {
          joint.setDoFValues(q[one.at], q[one.at + 1], q[one.at + 2], 0, 0, 0);
          turnTo(joint, q.slice(one.at + 3, one.at + 7));
        }
      }
      root.updateMatrixWorld(true);
      for (const { ball, a, p, b, r } of rods) {  // rods begin along the line between their ends
        const from = spot(a, p), to = spot(b, r), T = linkOf(a).matrixWorld;
        const away = [0, 1, 2].map((i) => to[i] - from[i]);
        const local = [0, 1, 2].map((i) => T[4 * i] * away[0] + T[4 * i + 1] * away[1] + T[4 * i + 2] * away[2]);
        ball.setDoFValues(Math.asin(-local[1] / Math.hypot(...local)), Math.atan2(local[0], local[2]));
      }
      root.updateMatrixWorld(true);
    },
    solve(target) {
      aim.setPosition(...target);
      aim.updateMatrixWorld();
      solver.solve();
    },
    q(count) {
      root.updateMatrixWorld(true);
      const out = new Array(count).fill(0);
      for (const { joint, sign, one } of moved) {
        if (one.kind === 'HINGE' || one.kind === 'SLIDE') out[one.at] = sign * joint.getDoFValue(joint.dof[0]);
        if (one.kind === 'FREE') {
          joint.getDoFPosition(place);
          joint.updateDoFMatrix();
          const turn = mat4.getRotation(quat.create(), joint.matrixDoF);  // getDoFQuaternion reads radians as degrees
          [...place, ...turn].forEach((x, i) => { out[one.at + i] = x; });
        }
      }
      return out;
    },
  };
}

const done = [];
for (const { model, targets, starts, tolerance } of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  const body = bodyOf(model, tolerance), q = [], times = [];
  for (const [i, target] of targets.entries()) {
    body.start(starts[i]);
    const begun = process.hrtime.bigint();
    body.solve(target);
    times.push(Number(process.hrtime.bigint() - begun) / 1000);
    q.push(body.q(model.nq));
  }
  done.push({ q, times });
}
console.log(JSON.stringify(done));
