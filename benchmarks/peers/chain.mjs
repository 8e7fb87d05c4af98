// Chains of ball joints to positions by the two solvers of the JavaScript world, for chain.py --node FOLDER.
//
// Reads {points, targets, tolerance, rounds, budget} as JSON on standard input; writes one row for each solver. Each
// target starts from the points, the tolerance is looked at before every iteration, and its best round counts.
import fs from 'node:fs';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const folder = path.resolve(process.argv[2]);
const open = (file) => import(pathToFileURL(file).href);
const THREE = await open(path.join(folder, 'node_modules/three/build/three.module.js'));
const { CCDIKSolver } = await open(path.join(folder, 'node_modules/three/examples/jsm/animation/CCDIKSolver.js'));
const CLOSED = await open(path.join(folder, 'node_modules/closed-chain-ik/src/core/index.js'));

const away = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
const between = (a, b) => [b[0] - a[0], b[1] - a[1], b[2] - a[2]];

/** three.js: a skinned mesh without a surface; one update is one sweep. */
function ccd(points) {
  const bones = points.map((p, i) => {
    const bone = new THREE.Bone();
    if (i > 0) bone.position.set(...between(points[i - 1], p));
    return bone;
  });
  bones.slice(1).forEach((bone, i) => bones[i].add(bone));
  const goal = new THREE.Bone();
  const scene = new THREE.Object3D();
  scene.add(bones[0], goal);
  const surface = new THREE.BufferGeometry();
  for (const [name, kind, size] of [['position', Float32Array, 3], ['skinIndex', Uint16Array, 4], ['skinWeight', Float32Array, 4]])
    surface.setAttribute(name, new THREE.BufferAttribute(new kind(3 * size), size));
  const mesh = new THREE.SkinnedMesh(surface, new THREE.MeshBasicMaterial());
  mesh.add(scene);
  scene.updateMatrixWorld(true);
  mesh.bind(new THREE.Skeleton([...bones, goal]));
  const tip = bones.length - 1;
  const links = bones.slice(0, tip).map((_, i) => ({ index: tip - 1 - i }));
  const solver = new CCDIKSolver(mesh, [{ target: tip + 1, effector: tip, links, iteration: 1 }]);
  return {
    reset() {
      bones.forEach((bone) => bone.quaternion.identity());
      scene.updateMatrixWorld(true);
    },
    aim(t) {
      goal.position.set(...t);
      goal.updateMatrixWorld(true);
    },
    tip() {
      return bones[tip].matrixWorld.elements.slice(12, 15);
    },
    step() {
      solver.update();
    },
    most: 2000,
  };
}

/** closed-chain-ik: damped least squares over three angles a joint. */
function leastSquares(points, tolerance) {
  const { Joint, Link, Goal, Solver, DOF } = CLOSED;
  const root = new Link();
  const joints = [];
  let below = root;
  points.slice(0, -1).forEach((p, i) => {
    const joint = new Joint();
    joint.setDoF(DOF.EX, DOF.EY, DOF.EZ);
    if (i > 0) joint.setPosition(...between(points[i - 1], p));
    below.addChild(joint);
    below = new Link();
    joint.addChild(below);
    joints.push(joint);
  });
  const held = new Joint();
  held.setDoF();
  const end = new Link();
  end.setPosition(...between(points.at(-2), points.at(-1)));
  below.addChild(held);
  held.addChild(end);
  root.updateMatrixWorld(true);
  const goal = new Goal();
  goal.setGoalDoF(DOF.X, DOF.Y, DOF.Z);
  goal.setPosition(...points.at(-1));
  goal.makeClosure(end);
  const solver = new Solver([root]);
  Object.assign(solver, {
    maxIterations: 1, translationConvergeThreshold: tolerance, stallThreshold: 1e-12, divergeThreshold: 1e3,
    restPoseFactor: 0, translationErrorClamp: 0.5,
  });
  const at = new Float64Array(3);
  return {
    reset() {
      joints.forEach((joint) => joint.setDoFValues(0, 0, 0));
      root.updateMatrixWorld(true);
    },
    aim(t) {
      goal.setPosition(...t);
      goal.updateMatrixWorld();
    },
    tip() {
      end.updateMatrixWorld();
      end.getWorldPosition(at);
      return at;
    },
    step() {
      solver.solve();
    },
    most: 500,
  };
}

const task = JSON.parse(fs.readFileSync(0, 'utf8'));
const rows = [];
for (const [name, make] of [['three.js CCDIKSolver', ccd], ['closed-chain-ik', leastSquares]]) {
  const body = make(task.points, task.tolerance);
  const best = [], good = [], steps = [];
  const began = performance.now();
  for (let round = 0; round < task.rounds; round++) {
    for (const [i, t] of task.targets.entries()) {
      if (performance.now() - began > 1000 * task.budget) break;
      body.reset();
      const start = process.hrtime.bigint();
      body.aim(t);
      let k = 0;
      while (k < body.most && away(body.tip(), t) > task.tolerance) {
        body.step();
        k++;
      }
      const took = Number(process.hrtime.bigint() - start) / 1000;
      best[i] = Math.min(best[i] ?? Infinity, took);
      good[i] = away(body.tip(), t) <= task.tolerance;
      steps[i] = k;
    }
  }
  rows.push({ name, best, good, steps });
}
console.log(JSON.stringify(rows));
